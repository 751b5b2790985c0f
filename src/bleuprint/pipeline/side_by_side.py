"""Trainings of one thread beside each other; `dvc repro` takes one stage after the other."""

import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from bleuprint.pipeline.graph import Stage, inputs, stages
from bleuprint.pipeline.recording import begin, record


def trainings(planned: Iterable[Stage]) -> list[Stage]:
    """The stages that gain by running beside each other: if there are several, and cores."""
    found = [stage for stage in planned if stage.kind == "train" and stage.threads == 1]
    return found if min(len(found), _cores()) > 1 else []


def makers(wanted: Iterable[Stage]) -> list[str]:
    """The names of the stages that write what these read."""
    graph = stages()
    of_output = {path: stage.name for stage in graph for path in stage.outputs}
    needed, names = inputs(graph), [stage.name for stage in wanted]
    return sorted({of_output[path] for name in names for path in needed[name]})


def run(wanted: Iterable[Stage], started: Callable[[str], None]) -> int:
    """Run these stages, a core each, and record in DVC those that succeed; `started` gets names.

    Returns the status of one that has failed, else 0. After a failure none is started.
    """
    wanted = list(wanted)
    needed, failures = inputs(stages()), list[int]()

    def run_one(stage: Stage) -> None:
        if not failures:
            begin(stage.name, stage.digest, *needed[stage.name])
            started(stage.name)
            if status := subprocess.call(stage.marked_command(), shell=True):
                failures.append(status)

    with ThreadPoolExecutor(_cores()) as pool:
        list(pool.map(run_one, wanted))
    record()
    return max(failures, default=0)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
