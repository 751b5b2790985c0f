"""Train one system on one corpus with one seed."""

from bleuprint.allocator import keep_memory

keep_memory()

import argparse
from pathlib import Path

from bleuprint import environment, errors, settings
from bleuprint.export import export_checkpoints, export_facts, export_timing
from bleuprint.processes import join, relaunch_if_several
from bleuprint.train import Job, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("corpus")
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    experiment = settings.load()
    relaunch_if_several()
    cell = Path(arguments.system, arguments.corpus, str(arguments.seed))
    job = Job(
        experiment=experiment.experiment,
        system_name=arguments.system,
        corpus_name=arguments.corpus,
        seed=arguments.seed,
        system=experiment.system(arguments.system),
        corpus=Path("data", arguments.corpus, "binary"),
        texts=Path("data", arguments.corpus, "split"),
        work=environment.work(),
    )
    group = join()
    folder, state, marks = train(job, group)
    if group.first:
        export_checkpoints(job, folder, marks, Path("models", cell, "checkpoints"))
        results = Path("results", cell)
        export_facts(job, state, marks, results / "training.json", results / "curves.json")
        export_timing(state, group, Path("timings", cell, "train.json"))
    group.close()


errors.run(main)
