"""A training job, and the fingerprints of everything that determines its result."""

from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Cell
from bleuprint.config.system import System
from bleuprint.dataset.binarized import CORPUS
from bleuprint.runtime import fingerprint
from bleuprint.runtime.files import sha256_of


@dataclass(frozen=True)
class Job:
    """One cell to train.

    `corpus`: the folder of the binarized corpus; `texts`: the folder of the validation references;
    `code`: the fingerprint of the code that determines the result.
    """

    cell: Cell
    system: System
    corpus: Path
    texts: Path
    code: str


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of the settings (with the seed), the code and the data; `all` combines them."""

    settings: str
    code: str
    data: str

    @classmethod
    def from_job(cls, job: Job) -> "Fingerprints":
        system = job.system
        arithmetic = () if system.arithmetic == "native" else (system.arithmetic,)
        settings = fingerprint.of_settings(system.model, system.train, job.cell.seed, *arithmetic)
        corpus = sha256_of(job.corpus / CORPUS)  # contains the hashes of all files
        references = [sha256_of(path) for path in sorted(job.texts.glob("valid.*"))]
        return cls(settings, job.code, fingerprint.of_settings(corpus, *references))

    @property
    def all(self) -> str:
        return fingerprint.of_settings(self.settings, self.code, self.data)
