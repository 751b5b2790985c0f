"""The stage train: its processes, the training, its outputs."""

from pathlib import Path

from filelock import FileLock, Timeout

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import Cell, folder
from bleuprint.pipeline.train_checks import check_training
from bleuprint.runtime import environment
from bleuprint.runtime.code import code_fingerprint
from bleuprint.runtime.distributed.group import Group, init_process_group, started
from bleuprint.runtime.distributed.launch import start_processes
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.timings import write_training
from bleuprint.tracking.training_cost import training_cost
from bleuprint.tracking.training_log import TrainingLog
from bleuprint.training.job import Fingerprints, Job
from bleuprint.training.observer import Observer
from bleuprint.training.outputs import export_checkpoints, export_results
from bleuprint.training.train_state import TrainState
from bleuprint.training.trainer import Trainer


def train_cell(cell: Cell) -> None:
    """Train one cell, in the processes that the machine or the user sets, and write its outputs.

    Raises UserError at an error in params.yaml, and what `train` raises.
    """
    if not started():
        _job(cell, load())  # refuses wrong settings before any process is started
    start_processes()
    group = init_process_group()
    settings = load()
    job = _job(cell, settings)
    fingerprints = Fingerprints.from_job(job)
    work = work_folder(job, fingerprints)
    check_training(job, fingerprints, group)
    log = TrainingLog(settings.experiment, job, fingerprints, group, work)
    state = train(job, group, work, fingerprints, log)
    if group.is_main:
        export_checkpoints(job, work, fingerprints, cell.models / "checkpoints")
        export_results(state, fingerprints, cell.results)
        precision = job.system.train.precision
        cost = training_cost(state, log.stopwatch, precision, group.device)
        write_training(cell, fingerprints.all, cost)
    group.close()


def train(
    job: Job, group: Group, work: Path, fingerprints: Fingerprints, observer: Observer
) -> TrainState:
    """Train to the end, from the newest checkpoint in `work` if there is one; the final state.

    Raises Interrupted, after saving, on SIGTERM, and UserError if another command trains in
    `work`.
    """
    work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work / ".lock")
    try:
        if group.is_main:
            lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"{work}: another process is training this cell") from None
    try:
        trainer = Trainer(job, group, work, fingerprints, observer)
        trainer.run()
    finally:
        lock.release()
    return trainer.state


def work_folder(job: Job, fingerprints: Fingerprints) -> Path:
    """The folder of a training's checkpoints, named by the fingerprint of its settings and data."""
    name = ".".join((*map(str, job.cell), fingerprints.all[:16]))
    return environment.work() / "trainings" / name


def _job(cell: Cell, settings: Settings) -> Job:
    return Job(
        cell=cell,
        system=settings.system(cell.system),
        corpus=folder(cell.corpus, "binary"),
        texts=folder(cell.corpus, "split"),
        code=code_fingerprint("train"),
    )
