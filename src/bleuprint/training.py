"""A cell's training as a command: the processes that it takes, the training, what it leaves."""

import os

from bleuprint import environment, slurm
from bleuprint.errors import UserError
from bleuprint.export import export_checkpoints, export_facts, export_timing
from bleuprint.job import Job
from bleuprint.launch import spread_over_nodes
from bleuprint.layout import Cell, folder
from bleuprint.processes import join, relaunch_if_several
from bleuprint.settings import load
from bleuprint.train import train


def train_cell(cell: Cell) -> None:
    """Train what `cell` names, with all processes that there are, and write the stage's outputs.

    Raises UserError at a mistake in params.yaml, and what `train` raises.
    """
    try:
        job = _job(cell)
    except UserError:
        if "WORLD_SIZE" in os.environ or slurm.task():
            join()  # the others would wait for us, and may have other settings
        raise
    spread_over_nodes()
    relaunch_if_several()
    group = join()
    work, state, marks = train(job, group)
    if group.first:
        export_checkpoints(job, work, marks, cell.models / "checkpoints")
        export_facts(state, marks, cell.results)
        export_timing(state, cell.timings / "train.json", job.system.train.precision, group)
    group.close()


def _job(cell: Cell) -> Job:
    settings = load()
    return Job(
        experiment=settings.experiment,
        cell=cell,
        system=settings.system(cell.system),
        corpus=folder(cell.corpus, "binary"),
        texts=folder(cell.corpus, "split"),
        work=environment.work(),
    )
