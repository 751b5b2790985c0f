"""Paths of the pipeline's files, relative to the project's root.

Functions take another `root` for previews, which have data of their own. In a path, the stage
stands before the corpus, so that the report can depend on one folder: a stage's output for all
corpora.

A corpus is given by its name, CORPUS, or by the name of one of its language pairs,
CORPUS/DIRECTION.
"""

from pathlib import Path
from typing import NamedTuple

from bleuprint.config.pair_name import PairName

# All settings, with inherited ones and defaults; DVC compares its values.
RESOLVED = Path("reports", "resolved.json")
# The measured costs of the training runs, committed for clones that have not trained themselves.
COSTS_CSV = Path("reports", "costs.csv")
# The name of the file in a corpus's folder of statistics.
STATISTICS = "statistics.json"


def corpus_folder(corpus: str, stage: str, root: Path = Path()) -> Path:
    """Return the folder that a stage of the pipeline writes for a corpus, such as data/clean/news.

    Args:
        corpus: The name of the corpus, such as `many`; or of one of its language pairs, if it has
            several: `many/en-de`.
        stage: raw, clean, dedup, filter, split, tokens, bpe, binary, test_stats or corpus_stats.
        root: The project's folder.
    """
    return root / "data" / stage / corpus


def download_folder(corpus: str, root: Path = Path()) -> Path:
    """Return the folder with the downloaded text of a corpus, such as data/raw/news/given.

    Args:
        corpus: The name of the corpus, such as `many`; or of one of its language pairs, if it has
            several: `many/en-de`.
        root: The project's folder.
    """
    corpus_name = PairName.parse(corpus).corpus
    folder_of_corpus = corpus_folder(corpus_name, "raw", root) / "given"
    return pair_folder(folder_of_corpus, corpus)


def cleaned_folder(corpus: str, root: Path = Path()) -> Path:
    """Return the folder with the cleaned text of a corpus, such as data/clean/news/together.

    Next to it are the folders of the parts, which are cleaned and filtered by themselves.

    Args:
        corpus: The name of the corpus, such as `many`; or of one of its language pairs, if it has
            several: `many/en-de`.
        root: The project's folder.
    """
    corpus_name = PairName.parse(corpus).corpus
    folder_of_corpus = corpus_folder(corpus_name, "clean", root) / "together"
    return pair_folder(folder_of_corpus, corpus)


def pair_folder(folder: Path, pair_name: str) -> Path:
    """Return the folder of a language pair in a folder of its corpus.

    In data/raw/many, the pair `many/en-de` has the folder data/raw/many/en-de. A corpus with one
    language pair has no such folders; the folder of the corpus itself is returned.

    Args:
        folder: A folder of the corpus, such as data/raw/many.
        pair_name: The name of the language pair: `many/en-de`, or the name of a corpus with one
            pair.
    """
    return folder / PairName.parse(pair_name).subfolder


def document_ids_file(folder: Path, set_name: str) -> Path:
    """Return the file that says, for each line of a set, which document the line belongs to.

    Args:
        folder: The folder of the downloaded text.
        set_name: The set: train, valid or test.NAME.
    """
    return folder / f"{set_name}.documents"


def vocabulary_folder(corpus: str, shared_from: str | None, root: Path = Path()) -> Path:
    """Return the folder with the vocabularies of a corpus, and its BPE merges if it has any.

    The folder `own` contains vocabularies that are learned from the text of the corpus; the folder
    `shared` contains a copy of the vocabularies of another corpus.

    Args:
        corpus: The name of the corpus.
        shared_from: The name of the corpus whose vocabularies are copied; None if the vocabularies
            are learned.
        root: The project's folder.
    """
    name = "own" if shared_from is None else "shared"
    return corpus_folder(corpus, "bpe", root) / name


def filter_stats_file(corpus: str, stage: str, root: Path = Path()) -> Path:
    """Return the file that says how many pairs a stage has read, kept, changed and dropped.

    Args:
        corpus: The name of the corpus.
        stage: The stage that has written the file, such as `filter`.
        root: The project's folder.
    """
    return root / "data" / "filter_stats" / corpus / f"{stage}.json"


def shards_folder(corpus: str, stage: str, root: Path = Path()) -> Path:
    """Return the folder for the shards of a corpus: parts that several jobs process in parallel.

    Snakemake removes the folder when the results of the jobs are merged.

    Args:
        corpus: The name of the corpus.
        stage: The stage that writes the shards.
        root: The project's folder.
    """
    return root / "work" / "shards" / stage / corpus


class Run(NamedTuple):
    """One run: a system on a corpus with a seed; and the folders of its outputs.

    Attributes:
        system: The name of the system.
        corpus: The name of the corpus.
        seed: The seed.
    """

    system: str
    corpus: str
    seed: int

    @property
    def models_folder(self) -> Path:
        """The folder of the weights, with checkpoints/ and averaged/."""
        return Path("models", self._path)

    @property
    def results_folder(self) -> Path:
        """The folder of outputs that do not depend on the machine, such as scores.json."""
        return Path("results", self._path)

    @property
    def timings_folder(self) -> Path:
        """The folder of measured durations; no stage depends on it."""
        return Path("timings", self._path)

    def __str__(self) -> str:
        """Return the run as messages name it."""
        return f"system {self.system}, corpus {self.corpus}, seed {self.seed}"

    @property
    def _path(self) -> Path:
        """SYSTEM/CORPUS/SEED."""
        return Path(self.system, self.corpus, str(self.seed))
