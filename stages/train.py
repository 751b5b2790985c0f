"""Train one system on one corpus with one seed."""

from bleuprint.allocator import keep_memory

keep_memory()

from bleuprint import command, environment
from bleuprint.errors import run
from bleuprint.export import export_checkpoints, export_facts, export_timing
from bleuprint.job import Job
from bleuprint.layout import folder
from bleuprint.processes import join, relaunch_if_several
from bleuprint.settings import load
from bleuprint.train import train


def main() -> None:
    cell = command.cell(__doc__)
    settings = load()
    job = Job(
        experiment=settings.experiment,
        cell=cell,
        system=settings.system(cell.system),
        corpus=folder(cell.corpus, "binary"),
        texts=folder(cell.corpus, "split"),
        work=environment.work(),
    )
    relaunch_if_several()
    group = join()
    work, state, marks = train(job, group)
    if group.first:
        export_checkpoints(job, work, marks, cell.models / "checkpoints")
        export_facts(state, marks, cell.results)
        export_timing(state, cell.timings / "train.json", job.system.train.precision, group)
    group.close()


if __name__ == "__main__":
    run(main)
