"""The fingerprints of a training: hashes of everything that decides its result.

Two trainings with equal fingerprints give the same weights, so the second one is not run.
Nothing here imports torch: `bleuprint plan` looks for a training that is finished under another
name.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from bleuprint.config.runs import training_settings_sha256
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.accepted_code import equal_codes, read_accepted_changes
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.training.job import Job

# How many hexadecimal digits of a training's fingerprint are in the name of its folder: 64 bits, so
# that two trainings never share a folder by chance.
_DIGITS_IN_FOLDER_NAME = 16


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprints of a training: hashes of the four things that decide its result.

    Each is a SHA-256 with 64 hexadecimal digits.

    Attributes:
        settings: The fingerprint of the system's settings and the seed.
        code: The fingerprint of the code that computes the weights.
        data: The fingerprint of the training and validation sets.
        start: The fingerprint of the weights that the training starts from; None if they are
            random.
    """

    settings: str
    code: str
    data: str
    start: str | None = None

    @classmethod
    def from_job(cls, job: Job) -> "Fingerprints":
        """Compute the fingerprints of a training.

        This reads and hashes the validation references. The hashes of the binarized corpus are
        stored in its folder. If the training has begun with code that counts as equal to the
        present code (`bleuprint accept`), the fingerprint is of the code with which it began, so
        that it continues from its checkpoints.

        Args:
            job: The training: its settings, its files and its seed.
        """
        corpus_sha256 = BinaryCorpus(job.corpus_folder).training_sha256
        reference_sha256s = [sha256_of(path) for path in job.validation_references()]
        fingerprints = cls(
            settings=training_settings_sha256(job.system, job.run.seed),
            code=job.code_fingerprint,
            data=fingerprint.of_settings(corpus_sha256, *reference_sha256s),
            start=job.first_weights_fingerprint(),
        )
        for code in equal_codes(read_accepted_changes(), "train", job.code_fingerprint):
            with_equal_code = replace(fingerprints, code=code)
            if with_equal_code.existing_folder() is not None:
                return with_equal_code
        return fingerprints

    @property
    def combined(self) -> str:
        """Return one hash of all these fingerprints, which identifies the training."""
        return fingerprint.of_settings(*self.by_name().values())

    def existing_folder(self) -> Path | None:
        """Return the folder of the training in work/trainings; None if it has not begun here.

        The folder may be named after another system: one that has been renamed since, or one with
        the same training.
        """
        short_hash = self.combined[:_DIGITS_IN_FOLDER_NAME]
        # Normally there is only one. Sorting makes the choice the same in every process.
        existing_folders = sorted(_trainings_folder().glob(f"*.{short_hash}"))
        return existing_folders[0] if existing_folders else None

    def by_name(self) -> dict[str, str]:
        """Return the fingerprints by name; `start` is absent if the weights start at random."""
        return {name: sha256 for name, sha256 in vars(self).items() if sha256 is not None}


def work_folder(job: Job, fingerprints: Fingerprints) -> Path:
    """Return the folder where a training keeps its checkpoints while it runs.

    The folder is named SYSTEM.CORPUS.SEED.HASH. HASH is a hash of everything that decides the
    result, so two trainings with the same HASH give the same weights. A folder with this HASH may
    already exist under the name of another system: because the system has been renamed, or because
    the two systems differ only in averaging or decoding. Then that folder is returned, and nothing
    is trained twice.

    Args:
        job: The training, with the names of its system and corpus, and its seed.
        fingerprints: The hashes of everything that decides the result.
    """
    existing_folder = fingerprints.existing_folder()
    if existing_folder is not None:
        return existing_folder
    system, corpus, seed = job.run
    short_hash = fingerprints.combined[:_DIGITS_IN_FOLDER_NAME]
    return _trainings_folder() / f"{system}.{corpus}.{seed}.{short_hash}"


def _trainings_folder() -> Path:
    """Return the folder with the checkpoints of all trainings that have begun in this project."""
    return environment.work_folder() / "trainings"
