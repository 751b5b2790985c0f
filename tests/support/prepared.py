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
    """The folders that the stages left."""

    root: Path
    source: str = "de"
    target: str = "en"

    def text(self, stage):
        return TextFolder(self.root / stage, self.source, self.target)

    def ledger(self, stage):
        return self.root / "ledgers" / f"{stage}.json"

    @property
    def binary(self):
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
    """Send raw sets (train, valid, test.x, ...) through every stage after download."""
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
