"""What identifies a training: the fingerprints of everything that decides its result.

Without torch: `bleuprint plan` looks for a training that is finished under another name.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, folder
from bleuprint.config.runs import training_settings_sha256
from bleuprint.config.system import System
from bleuprint.dataset.binarized import CORPUS, BinaryCorpus
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.files import sha256_of
from bleuprint.training.init_weights import InitFiles, init_files, take_weights

if TYPE_CHECKING:
    from bleuprint.model.transformer import Transformer


@dataclass(frozen=True)
class Job:
    """One run to train.

    `corpus`: the folder of the binarized corpus; `texts`: the folder of the validation references;
    `code`: the fingerprint of the code that determines the result; `start`: the files of the first
    weights, None if these are random.
    """

    run: Run
    system: System
    corpus: Path
    texts: Path
    code: str
    start: InitFiles | None = None

    def initialize(self, model: "Transformer", corpus: BinaryCorpus) -> list[str]:
        """Give a model with random weights those that the training starts from, if there are any.

        Args:
            model: The model, which is changed.
            corpus: The corpus of the training.

        Returns:
            What to say of it, a line each; empty if the weights stay random.

        Raises:
            UserError: The weights are of another architecture, or damaged.
        """
        if self.start is None:
            return []
        return take_weights(model, corpus, self.start)

    def file_hashes(self, kind: str) -> dict[str, str]:
        """The SHA-256 of the files that a fingerprint stands for, by path.

        `kind`: one of the fingerprints, data or start; the others are of no files.
        """
        if kind == "data":
            return self._data_hashes()
        if kind == "start" and self.start is not None:
            return self.start.hashes()
        return {}

    def _data_hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each file of the corpus that a training reads, by its path.

        A message names the first file that has changed. The corpus's header holds the hashes of
        the other files, so it changes with each of them, and stands last.
        """
        corpus = BinaryCorpus(self.corpus)
        hashes = {}
        for name, sha256 in corpus.file_hashes.items():
            if not name.startswith("test."):  # a training reads no test set
                hashes[str(self.corpus / name)] = sha256
        for path in sorted(self.texts.glob("valid.*")):
            hashes[str(path)] = sha256_of(path)
        hashes[str(self.corpus / CORPUS)] = corpus.training_sha256
        return hashes


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of the settings (with the seed), the code, the data, and the start (None: there
    is none); `all` combines them.
    """

    settings: str
    code: str
    data: str
    start: str | None = None

    @classmethod
    def from_job(cls, job: Job) -> "Fingerprints":
        settings = training_settings_sha256(job.system, job.run.seed)
        references = [sha256_of(path) for path in sorted(job.texts.glob("valid.*"))]
        data = fingerprint.of_settings(BinaryCorpus(job.corpus).training_sha256, *references)
        return cls(settings, job.code, data, job.start.fingerprint() if job.start else None)

    @property
    def all(self) -> str:
        return fingerprint.of_settings(*self.each().values())

    def each(self) -> dict[str, str]:
        """Those that there are, by name."""
        return {name: mark for name, mark in vars(self).items() if mark is not None}


def job_of(run: Run, settings: Settings) -> Job:
    """The training of a run; raises UserError if there is no such run."""
    system = settings.system_on(run.system, run.corpus)
    settings.check_seed(run.seed)
    corpus, texts = (folder(run.corpus, stage) for stage in ("binary", "split"))
    start = init_files(system.train.init_from, run) if system.train.init_from else None
    code = code_fingerprint("train")
    return Job(run=run, system=system, corpus=corpus, texts=texts, code=code, start=start)


def work_folder(job: Job, fingerprints: Fingerprints) -> Path:
    """The folder of a training's checkpoints, named by its run and the fingerprint of all that
    decides it.

    If another run has the same training (a system that was renamed, a row that differs only in
    averaging or decoding), it is that run's folder, so that nothing is trained twice.
    """
    trainings, mark = environment.work_folder() / "trainings", fingerprints.all[:16]
    own = trainings / ".".join((*map(str, job.run), mark))
    return next(iter(sorted(trainings.glob(f"*.{mark}"))), own)
