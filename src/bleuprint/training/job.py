"""A training job: the fingerprints of everything that determines its result, and its outputs."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from bleuprint.config.cells import training_settings_sha256
from bleuprint.config.paths import Cell
from bleuprint.config.system import System
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.weights import write_description
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, whole_folder, write_json
from bleuprint.training import checkpoint
from bleuprint.training.history import CHECKPOINTS, CheckpointsRecord, EarlyEnd, TrainingFacts
from bleuprint.training.optimizer import ema_weights
from bleuprint.training.start_files import StartFiles
from bleuprint.training.train_state import TrainState


@dataclass(frozen=True)
class Job:
    """One cell to train.

    `corpus`: the folder of the binarized corpus; `texts`: the folder of the validation references;
    `code`: the fingerprint of the code that determines the result; `start`: the files of the first
    weights, None if these are random.
    """

    cell: Cell
    system: System
    corpus: Path
    texts: Path
    code: str
    start: StartFiles | None = None


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
        settings = training_settings_sha256(job.system, job.cell.seed)
        references = [sha256_of(path) for path in sorted(job.texts.glob("valid.*"))]
        data = fingerprint.of_settings(BinaryCorpus(job.corpus).training_sha256, *references)
        return cls(settings, job.code, data, job.start.fingerprint() if job.start else None)

    @property
    def all(self) -> str:
        return fingerprint.of_settings(*self.each().values())

    def each(self) -> dict[str, str]:
        """Those that there are, by name."""
        return {name: mark for name, mark in vars(self).items() if mark is not None}


def export_checkpoints(job: Job, folder: Path, fingerprints: Fingerprints, output: Path) -> None:
    """Export the kept checkpoints: UPDATE.safetensors, model.json, and checkpoints.json.

    With `train.ema`, also UPDATE.ema.safetensors: the moving average at the last one.
    """
    try:
        with whole_folder(output) as partial:
            for path in checkpoint.paths(folder):
                state = checkpoint.read_state(path)
                weights = partial / f"{checkpoint.update_of(path):07d}.safetensors"
                shutil.copyfile(path / checkpoint.MODEL, weights)
            if (decay := job.system.train.ema) is not None:
                last = checkpoint.load(path)
                mean = ema_weights(last.optimizer, decay, last.update)
                file = partial / f"{last.update:07d}.ema.safetensors"
                checkpoint.save_tensors(mean, file, {"fingerprint": fingerprints.all})
            metric, validations = job.system.train.validation_metric, state["validations"]
            record = CheckpointsRecord(fingerprints.all, metric, validations)
            write_json(partial / CHECKPOINTS, asdict(record))
            corpus = BinaryCorpus(job.corpus)
            write_description(partial, job.system.model, corpus, fingerprints.all)
    except checkpoint.DamagedCheckpoint as error:
        raise UserError(f"{error}: remove it, or remove {folder} to train again") from None


def export_results(
    state: TrainState,
    fingerprints: Fingerprints,
    results: Path,
    early_end: EarlyEnd | None = None,
) -> None:
    """Write the reproducible results: training.json (counts, fingerprints) and curves.json.

    `early_end`: why the training ended early, if it did, which training.json then holds.
    """
    facts = TrainingFacts(
        parameters=state.parameters,
        updates=state.update,
        source_tokens=state.source_tokens,
        target_tokens=state.target_tokens,
        flops=state.flops,
        skipped=state.skipped,
        valid_loss=state.validations[-1]["loss"],
        fingerprint=fingerprints.all,
        early_end=early_end,
        **fingerprints.each(),
    )
    given = {name: fact for name, fact in asdict(facts).items() if fact is not None}
    write_json(results / "training.json", given)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})
