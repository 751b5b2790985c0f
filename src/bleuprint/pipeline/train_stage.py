"""The stage train: its processes, the training, its outputs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import Cell, folder
from bleuprint.pipeline.train_checks import check_training
from bleuprint.pipeline.work_files import training_lock
from bleuprint.runtime import environment
from bleuprint.runtime.code import code_fingerprint
from bleuprint.runtime.distributed.group import Group, init_process_group, started
from bleuprint.runtime.distributed.launch import start_processes
from bleuprint.runtime.errors import UserError, say
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
        load().system_on(cell.system, cell.corpus)  # refuses wrong settings before the start
    start_processes()
    group = init_process_group()
    settings = load()
    job = _job(cell, settings)
    fingerprints = Fingerprints.from_job(job)
    check_training(job, fingerprints, group)
    with _locked(work_folder(job, fingerprints), group):
        work = work_folder(job, fingerprints)  # another cell may just have had this training
        log = TrainingLog(settings.experiment, job, fingerprints, group, work)
        state = train(job, group, work, fingerprints, log)
        if group.is_main:
            export_checkpoints(job, work, fingerprints, cell.models / "checkpoints")
            export_results(state, fingerprints, cell.results)
            cost = training_cost(state, log.stopwatch, job.system.train.precision)
            write_training(cell, fingerprints.all, cost)
    group.close()


def train(
    job: Job, group: Group, work: Path, fingerprints: Fingerprints, observer: Observer
) -> TrainState:
    """Train to the end, from the newest checkpoint in `work` if there is one; the final state.

    Raises Interrupted, after saving, on SIGTERM.
    """
    work.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(job, group, work, fingerprints, observer)
    trainer.run()
    return trainer.state


def work_folder(job: Job, fingerprints: Fingerprints) -> Path:
    """The folder of a training's checkpoints, named by its cell and the fingerprint of all that
    decides it.

    If another cell has the same training (a system that was renamed, a row that differs only in
    averaging or decoding), it is that cell's folder, so that nothing is trained twice.
    """
    mark = fingerprints.all[:16]
    trainings = environment.work() / "trainings"
    known = sorted(trainings.glob(f"*.{mark}"))
    return known[0] if known else trainings / ".".join((*map(str, job.cell), mark))


@contextmanager
def _locked(work: Path, group: Group) -> Iterator[None]:
    """Keep other processes from a training; wait for one that has it.

    Raises UserError instead if the training has several processes, which would time out waiting.
    """
    work.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(training_lock(work))
    if group.is_main:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            message = f"{work}: another process has this training"
            if group.size > 1:
                raise UserError(message) from None
            say(f"{message}: waiting for it", "note")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _job(cell: Cell, settings: Settings) -> Job:
    return Job(
        cell=cell,
        system=settings.system_on(cell.system, cell.corpus),
        corpus=folder(cell.corpus, "binary"),
        texts=folder(cell.corpus, "split"),
        code=code_fingerprint("train"),
    )
