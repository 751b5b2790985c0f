"""The lines of `bleuprint plan`."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.pipeline.graph import Stage
from bleuprint.pipeline.plan import PlannedStage, planned_stages
from bleuprint.report.cost_columns import duration, power
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.tracking.timings import forecast_file, read_seconds, stage_file, write_seconds

if TYPE_CHECKING:
    from bleuprint.pipeline.forecast import Forecast


def lines(settings: Settings) -> Iterator[str]:
    """The stages that would run, each training with its forecast, and the sums."""
    planned = planned_stages()
    if not planned:
        yield "all stages are up to date: dvc repro would run none"
        return
    trainings = []
    for kind, group in groupby(planned, lambda each: each.stage.kind):
        stages = list(group)
        if kind != "train":
            yield _line(stages)
            continue
        # imported here and below: they load torch, which takes more than a second
        from bleuprint.pipeline.forecast import forecast

        for each in stages:
            cell = cell_of(each.stage)
            if settings.system(cell.system).on(cell.corpus) is None:
                continue  # a stage that does nothing (stage_args)
            made = forecast(settings, cell)
            _write(made, settings, cell)
            trainings.append(made)
            yield f"{_line([each])}: {_forecast(made)}"
    if trainings:
        yield _sum_of_trainings(trainings)
    yield from _sum_of_others([each.stage for each in planned if each.stage.kind != "train"])


def _line(stages: Sequence[PlannedStage]) -> str:
    first = stages[0]
    name = first.stage.name if len(stages) == 1 else f"{first.stage.kind}, {len(stages)} stages"
    return f"{name:<36}  {first.why}"


def _forecast(made: "Forecast") -> str:
    if made.updates is None or made.seconds is None:
        return "as many updates as the corpus has, which is not prepared yet"
    done = f", {made.done:,} of them done" if made.done else ""
    flops = power(made.updates * made.flops)
    return f"{made.updates:,} updates{done}, {flops} FLOPs, {duration(made.seconds)}"


def _sum_of_trainings(trainings: Sequence["Forecast"]) -> str:
    from bleuprint.runtime.distributed.group import init_process_group
    from bleuprint.tracking.hardware import machine_of

    machine = machine_of(init_process_group())
    known = [made for made in trainings if made.seconds is not None]
    text = f"trainings: {duration(sum(made.seconds or 0 for made in known))}"
    if unknown := len(trainings) - len(known):
        text += f" and {unknown} unknown"
    text += f" one after the other on {machine['device']} with {machine['threads']} threads, "
    text += f"{sum(made.disk for made in trainings) / 1e9:,.1f} GB in work/ and models/"
    if known and all(made.joules is not None for made in known):
        text += f", {sum(made.joules or 0 for made in known) / 3.6e6:,.3f} kWh"
    if not all(made.prepared for made in trainings):
        text += " (by random tokens where the corpus is not prepared yet)"
    return text


def _sum_of_others(stages: Sequence[Stage]) -> Iterator[str]:
    measured = [read_seconds(stage_file(shlex.split(stage.command)[3:])) for stage in stages]
    known = [seconds for seconds in measured if seconds is not None]
    if known:
        yield f"other stages that ran here before ({len(known)}): {duration(sum(known))}"
    if unknown := len(stages) - len(known):
        yield f"other stages, without a forecast since they have not run here: {unknown}"


def cell_of(stage: Stage) -> Cell:
    """The cell of a stage that trains."""
    system, corpus, seed = shlex.split(stage.command)[-3:]
    return Cell(system, corpus, int(seed))


def forecast_of(settings: Settings, cell: Cell) -> float | None:
    """The forecast in seconds that `lines` has written, if it has."""
    return (
        read_seconds(_file(settings, cell))
        if settings.system(cell.system).on(cell.corpus)
        else None
    )


def _write(made: "Forecast", settings: Settings, cell: Cell) -> None:
    if made.seconds is not None:
        write_seconds(_file(settings, cell), made.seconds)


def _file(settings: Settings, cell: Cell) -> Path:
    system = settings.system_on(cell.system, cell.corpus)
    return forecast_file(cell, of_settings(system.model, system.train, cell.seed))
