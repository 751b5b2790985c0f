"""A training to be done, and the fingerprints of all that decides what comes of it."""

from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Cell
from bleuprint.config.system import System
from bleuprint.dataset.binarized import CORPUS
from bleuprint.runtime import fingerprint
from bleuprint.runtime.files import sha256_of


@dataclass(frozen=True)
class Job:
    """One cell to train: the system, the folders of its ids and of its validation text.

    `code`: the fingerprint of the code that decides the result.
    """

    cell: Cell
    system: System
    corpus: Path
    texts: Path
    code: str


@dataclass(frozen=True)
class Fingerprints:
    """What decides the result: settings (with the seed), code and data; `all` of them in one."""

    settings: str
    code: str
    data: str

    @classmethod
    def of(cls, job: Job) -> "Fingerprints":
        settings = fingerprint.of_settings(job.system.model, job.system.train, job.cell.seed)
        corpus = sha256_of(job.corpus / CORPUS)  # which holds the sums of all its files
        references = [sha256_of(path) for path in sorted(job.texts.glob("valid.*"))]
        return cls(settings, job.code, fingerprint.of_settings(corpus, *references))

    @property
    def all(self) -> str:
        return fingerprint.of_settings(self.settings, self.code, self.data)
