"""The lines of `bleuprint plan`: what would run, why, and how long it took before."""

import shlex
from collections.abc import Iterator
from itertools import groupby

from bleuprint.config.paths import Cell
from bleuprint.pipeline.graph import Stage
from bleuprint.pipeline.plan import planned_stages
from bleuprint.report.cost_columns import duration
from bleuprint.tracking.timings import last_training_seconds, read_seconds, stage_file


def lines() -> Iterator[str]:
    """The stages that would run, those of one kind together, and the sum of what is known."""
    planned, known, new = planned_stages(), list[float](), 0
    if not planned:
        yield "all stages are up to date: dvc repro would run none"
    for kind, group in groupby(planned, lambda each: each.stage.kind):
        stages = list(group)
        name = stages[0].stage.name if len(stages) == 1 else f"{kind}, {len(stages)} stages"
        took = [s for each in stages if (s := seconds_before(each.stage)) is not None]
        text = f"; took {duration(sum(took))}" if len(took) == len(stages) else ""
        yield f"{name:<36}  {stages[0].why}{text}"
        known += took
        new += len(stages) - len(took)
    if known:
        unknown = f"; {new} others have not run here" if new else ""
        yield f"{len(known)} of these took {duration(sum(known))} when they last ran here{unknown}"


def seconds_before(stage: Stage) -> float | None:
    """The duration of a stage when it last ran here, with whatever settings; None: unknown."""
    if stage.kind != "train":
        return read_seconds(stage_file(shlex.split(stage.command)[3:]))
    system, corpus, seed = shlex.split(stage.command)[-3:]
    return last_training_seconds(Cell(system, corpus, int(seed)))
