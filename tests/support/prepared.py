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

    def ledger(self, stage):
        """Return the path of a stage's ledger."""
        return self.root / "ledgers" / f"{stage}.json"

    @property
    def binary(self):
        """The corpus as token ids."""
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
    """
    made = Prepared(root, *languages)
    for name, pairs in sets.items():
        write_set(made.text("raw"), name, pairs)
    text, ledger = made.text, made.ledger

    def files(before, after, stage=""):
        return "c", text(before), root / after, ledger(stage or after)

    def run(step, stage):
        run_sharded(step, root / "shards" / stage, shards, workers)

    run(Cleaning(*files("raw", "clean"), edits), "clean")
    run(Deduplication(*files("clean", "dedup"), DEDUP, edits), "dedup")
    run(Filtering(*files("dedup", "filter"), checks, tokenize), "filter")
    drawing = Split(0.2, 0.2, 1), "normalized", text("filter")
    split_folder("c", *drawing, root / "split", ledger("split"), workers)
    tokens = files("split", "tokens", "tokenize")
    run(Tokenizing(*tokens, tokenize, edits, frozenset(sets)), "tokenize")
    learn_segmentation("c", units, text("tokens"), root / "bpe")
    binary = files("tokens", "binary", "binarize")
    run(Binarizing(*binary, root / "bpe", tokenize, edits, units), "binarize")
    return made
