"""Paths of the pipeline's files, relative to the project's root.

A `root` other than that is for previews, which have their own data. The stage comes before the
corpus, so that the report can depend on one folder: a stage's output for all corpora.
"""

from pathlib import Path
from typing import NamedTuple

from bleuprint.config.directions import PairName

# All settings, after inheritance and defaults; DVC compares its keys.
RESOLVED = Path("reports", "resolved.json")
# The file in a corpus's statistics folder.
STATISTICS = "statistics.json"


def corpus_folder(corpus: str, stage: str, root: Path = Path()) -> Path:
    """The folder of a corpus: raw, clean, dedup, filter, split, tokens, tests, bpe, binary or
    statistics; also that of one language pair of a corpus with several.
    """
    return root / "data" / stage / corpus


def download_folder(corpus: str, root: Path = Path()) -> Path:
    """The text of a corpus as it was downloaded."""
    name = PairName.parse(corpus).corpus
    return pair_folder(corpus_folder(name, "raw", root) / "given", corpus)


def pair_folder(place: Path, corpus: str) -> Path:
    """The folder of a language pair in a folder of its corpus, which may have only this one."""
    return place / PairName.parse(corpus).direction


def document_ids_file(given: Path, name: str) -> Path:
    """The ids of the documents of a set's lines, in the folder of the downloaded text."""
    return given / f"{name}.documents"


def vocabulary_folder(corpus: str, of: str | None, root: Path = Path()) -> Path:
    """Codes and vocabularies of a corpus: its own, or a copy of those `of` another."""
    return corpus_folder(corpus, "bpe", root) / ("shared" if of else "own")


def filter_stats_file(corpus: str, stage: str, root: Path = Path()) -> Path:
    """The filtering statistics of a data stage: counts of pairs in, out, changed and dropped."""
    return root / "data" / "filter_stats" / corpus / f"{stage}.json"


def shards_folder(corpus: str, stage: str, root: Path = Path()) -> Path:
    """Shards of a stage's output that are not merged yet; Snakemake removes them."""
    return root / "work" / "shards" / stage / corpus


class Run(NamedTuple):
    """One training: a system on a corpus with a seed; and the folders of its outputs."""

    system: str
    corpus: str
    seed: int

    @property
    def models_folder(self) -> Path:
        """Weights: checkpoints/ and averaged/."""
        return Path("models", self._path)

    @property
    def results_folder(self) -> Path:
        """Reproducible outputs: training.json, curves.json, hypotheses/, translation.json
        and scores.json.
        """
        return Path("results", self._path)

    @property
    def timings_folder(self) -> Path:
        """What was measured of its trainings and translations; no stage depends on it."""
        return Path("timings", self._path)

    def __str__(self) -> str:
        return f"system {self.system}, corpus {self.corpus}, seed {self.seed}"

    @property
    def _path(self) -> Path:
        return Path(self.system, self.corpus, str(self.seed))
