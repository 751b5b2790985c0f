"""A small text sent through all data stages."""

from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.corpus import Split
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.split import split_folder
from bleuprint.corpus.tokenize import Tokenizing
from bleuprint.dataset.binarize import Binarizing
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.text.parallel import TextFolder
from corpora import CHECKED, DEDUP, EDITS, TOKENIZE, UNITS, write_set
from steps import run_sharded

# The name of the corpus, which filtering statistics and messages contain.
_CORPUS = "c"


@dataclass(frozen=True)
class Prepared:
    """The folder with the outputs of all data stages.

    Attributes:
        root: The folder.
        source: The source language.
        target: The target language.
    """

    root: Path
    source: str = "de"
    target: str = "en"

    def text(self, stage):
        """Return the texts that a stage has written."""
        return TextFolder(self.root / stage, self.source, self.target)

    def filter_stats(self, stage):
        """Return the path of a stage's filtering statistics."""
        return self.root / "filter_stats" / f"{stage}.json"

    @property
    def binary(self):
        """Return the corpus as token ids, the output of the last stage."""
        return BinaryCorpus(self.root / "binary")


def prepare(
    root,
    sets,
    edits=EDITS,
    checks=CHECKED,
    tokenize=TOKENIZE,
    units=UNITS,
    workers=1,
    shards=1,
    languages=("de", "en"),
):
    """Send a text through all data stages after download.

    Without a validation or test set in `sets`, the stage split draws it from train.

    Args:
        root: The folder for the outputs.
        sets: The pairs of each set: train, valid and test sets such as test.x.
        edits: The edits of the stage clean.
        checks: The checks of the stage filter.
        tokenize: The tokenizer.
        units: The units of the vocabulary.
        workers: The number of processes of each stage.
        shards: The number of parts in which each stage works.
        languages: The source and the target language.

    Returns:
        The folder with the outputs, which has a subfolder for each stage.
    """
    source, target = languages
    outputs = Prepared(root, source, target)
    for name, pairs in sets.items():
        write_set(outputs.text("raw"), name, pairs)

    def run(step):
        run_sharded(step, root / "shards" / step.stage, shards, workers)

    run(_cleaning(outputs, edits))
    run(_deduplication(outputs, edits))
    run(_filtering(outputs, checks, tokenize))
    _split(outputs, workers)
    run(_tokenizing(outputs, tokenize, edits, given_sets=frozenset(sets)))
    learn_segmentation(_CORPUS, units, outputs.text("tokens"), root / "bpe")
    run(_binarizing(outputs, tokenize, edits, units))
    return outputs


def _cleaning(outputs, edits):
    """Return the step of the stage clean, which edits sentences."""
    return Cleaning(
        corpus=_CORPUS,
        input_text=outputs.text("raw"),
        output=outputs.root / "clean",
        filter_stats_path=outputs.filter_stats("clean"),
        edits=edits,
    )


def _deduplication(outputs, edits):
    """Return the step of the stage dedup, which drops repeated pairs."""
    return Deduplication(
        corpus=_CORPUS,
        input_text=outputs.text("clean"),
        output=outputs.root / "dedup",
        filter_stats_path=outputs.filter_stats("dedup"),
        settings=DEDUP,
        edits=edits,
    )


def _filtering(outputs, checks, tokenize):
    """Return the step of the stage filter, which drops pairs that fail a check."""
    return Filtering(
        corpus=_CORPUS,
        input_text=outputs.text("dedup"),
        output=outputs.root / "filter",
        filter_stats_path=outputs.filter_stats("filter"),
        checks=checks,
        tokenize=tokenize,
    )


def _split(outputs, workers):
    """Run the stage split, which draws a fifth of the pairs for each missing set."""
    split_folder(
        corpus=_CORPUS,
        settings=Split(valid=0.2, test=0.2, seed=1),
        decontaminate=DEDUP.decontaminate,
        filtered_text=outputs.text("filter"),
        split=outputs.root / "split",
        filter_stats_path=outputs.filter_stats("split"),
        workers=workers,
    )


def _tokenizing(outputs, tokenize, edits, given_sets):
    """Return the step of the stage tokenize.

    Args:
        outputs: The folder with the outputs of the stages.
        tokenize: The tokenizer.
        edits: The edits of the stage clean.
        given_sets: The names of the sets that were not drawn from train.
    """
    return Tokenizing(
        corpus=_CORPUS,
        input_text=outputs.text("split"),
        output=outputs.root / "tokens",
        filter_stats_path=outputs.filter_stats("tokenize"),
        settings=tokenize,
        edits=edits,
        sets_with_files=given_sets,
    )


def _binarizing(outputs, tokenize, edits, units):
    """Return the step of the stage binarize, which turns tokens into ids."""
    return Binarizing(
        corpus=_CORPUS,
        input_text=outputs.text("tokens"),
        output=outputs.root / "binary",
        filter_stats_path=outputs.filter_stats("binarize"),
        segmentation=outputs.root / "bpe",
        tokenize=tokenize,
        edits=edits,
        vocabulary=units,
    )
