"""Measured durations of a cell. They do not repeat, so no record contains them."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Cell
from bleuprint.runtime.files import read_object


@dataclass(frozen=True)
class Training:
    """The duration, hardware and cost by time of a training.

    `flops_by_time` = seconds x `devices` x `sustained_flops` (from the `paper`, or `measured`);
    `mfu`: counted operations as a share of `peak_flops` (`known` or `measured`). `rates`: target
    tokens per second at the points of the curve. None: unknown, or written by an older version.
    """

    seconds: float
    device: str
    processes: int
    threads: int
    commit: str | None
    tokens_per_second: float
    devices: int | None = None
    sustained_flops: float | None = None
    sustained_from: str | None = None
    flops_by_time: float | None = None
    peak_flops: float | None = None
    peak_from: str | None = None
    mfu: float | None = None
    versions: str | None = None
    rates: Sequence[float] | None = None


@dataclass(frozen=True)
class Timing:
    """The durations of a cell; None if nothing was measured."""

    training: Training | None
    translate_seconds: float | None


def timing(cell: Cell, root: Path = Path()) -> Timing:
    """The durations of a cell, as far as their files exist."""
    train, translate = (root / cell.timings / f"{name}.json" for name in ("train", "translate"))
    training, seconds = None, None
    if train.exists():
        fields = dataclasses.fields(Training)
        required = [field.name for field in fields if field.default is dataclasses.MISSING]
        measured = read_object(train, required)
        names = [field.name for field in fields if field.name in measured]
        training = Training(**{name: measured[name] for name in names})
    if translate.exists():
        seconds = read_object(translate, ("seconds",))["seconds"]
    return Timing(training, seconds)
