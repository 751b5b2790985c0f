"""Where the pipeline keeps things, relative to the project's root.

With a `root`, what belongs to a corpus lies below that: a preview keeps its own. Stage comes before
corpus, so that what needs one stage of every corpus (the report) can name it.
"""

from pathlib import Path
from typing import NamedTuple

# What is in statistics.
STATISTICS = "statistics.json"


def folder(corpus: str, stage: str, root: Path = Path()) -> Path:
    """The folder of a corpus: raw, clean, dedup, filter, split, tokens, tests, bpe, binary or
    statistics.
    """
    return root / "data" / stage / corpus


def ledger(corpus: str, stage: str, root: Path = Path()) -> Path:
    """The account that a data stage gives of itself."""
    return root / "data" / "ledgers" / corpus / f"{stage}.json"


def shards(corpus: str, stage: str, root: Path = Path()) -> Path:
    """Where shards of a stage's work on a corpus wait to be gathered; Snakemake removes them."""
    return root / "work" / "shards" / stage / corpus


class Cell(NamedTuple):
    """What is trained once: a system on a corpus with a seed; where what comes of it lies."""

    system: str
    corpus: str
    seed: int

    @property
    def models(self) -> Path:
        """Weights: checkpoints/ and averaged/."""
        return Path("models", self._path)

    @property
    def results(self) -> Path:
        """What repeats exactly: training.json, curves.json, hypotheses/, translation.json,
        attention.json and scores.json.
        """
        return Path("results", self._path)

    @property
    def timings(self) -> Path:
        """What a clock measured: train.json, translate.json."""
        return Path("timings", self._path)

    def __str__(self) -> str:
        return f"system {self.system}, corpus {self.corpus}, seed {self.seed}"

    @property
    def _path(self) -> Path:
        return Path(self.system, self.corpus, str(self.seed))
