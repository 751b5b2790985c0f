"""The fingerprints of a training: hashes of everything that decides its result.

Two trainings with equal fingerprints give the same weights, so the second one is not run.
Nothing here imports torch: `bleuprint plan` looks for a training that is finished under another
name.
"""

from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.runs import training_settings_sha256
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.files import sha256_of
from bleuprint.training.job import Job

# Hexadecimal digits of the combined fingerprint in the name of a training's folder: 64 bits, so
# that two trainings never share a folder by chance.
_DIGITS_IN_FOLDER_NAME = 16


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprints of a training, as hexadecimal SHA-256.

    Attributes:
        settings: Of the settings of the system and the seed.
        code: Of the code that computes the weights.
        data: Of the training and validation sets.
        start: Of the weights that the training starts from; None for random weights.
    """

    settings: str
    code: str
    data: str
    start: str | None = None

    @classmethod
    def from_job(cls, job: Job) -> "Fingerprints":
        """Compute the fingerprints of a job; this reads the validation references."""
        corpus_sha256 = BinaryCorpus(job.corpus_folder).training_sha256
        reference_sha256s = [sha256_of(path) for path in job.validation_references()]
        return cls(
            settings=training_settings_sha256(job.system, job.run.seed),
            code=job.code_fingerprint,
            data=fingerprint.of_settings(corpus_sha256, *reference_sha256s),
            start=job.first_weights_fingerprint(),
        )

    @property
    def combined(self) -> str:
        """Return one fingerprint of all of them."""
        return fingerprint.of_settings(*self.by_name().values())

    def by_name(self) -> dict[str, str]:
        """Return the fingerprints by name; `start` is absent if the weights start at random."""
        return {name: sha256 for name, sha256 in vars(self).items() if sha256 is not None}


def work_folder(job: Job, fingerprints: Fingerprints) -> Path:
    """Return the folder where a training keeps its checkpoints.

    A new folder is named SYSTEM.CORPUS.SEED.FINGERPRINT, by the run and the combined fingerprint of
    its training. A folder with this fingerprint may exist under the name of another run: before a
    system was renamed, or because two systems differ only in averaging or decoding. Then that
    folder is returned, so that nothing is trained twice.

    Args:
        job: The run to train.
        fingerprints: The fingerprints of its training.
    """
    trainings = environment.work_folder() / "trainings"
    digits = fingerprints.combined[:_DIGITS_IN_FOLDER_NAME]
    existing_folders = sorted(trainings.glob(f"*.{digits}"))
    if existing_folders:
        # Normally there is only one. Sorting makes the choice the same in every process.
        return existing_folders[0]
    system, corpus, seed = job.run
    return trainings / f"{system}.{corpus}.{seed}.{digits}"
