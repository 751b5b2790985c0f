"""Measured durations of a cell. They do not repeat, so no record contains them."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import Cell
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import read_object, write_json
from bleuprint.tracking import hardware
from bleuprint.tracking.hardware import measured_flops
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training.train_state import State


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


def write_training(
    path: Path, state: State, stopwatch: Stopwatch, precision: str, group: Group
) -> None:
    """Write the durations and the hardware of a training; of a resumed one, all its machines."""

    def joined(name: str) -> Any:
        values = list(dict.fromkeys(machine[name] for machine in stopwatch.machines))
        return values[0] if len(values) == 1 else " + ".join(map(str, values))

    rates = [stopwatch.rates.get(int(point["update"])) for point in state.curve]
    content = {
        "seconds": round(stopwatch.seconds, 3),
        **{name: joined(name) for name in ("device", "processes", "threads", "commit", "versions")},
        "tokens_per_second": round(state.target_tokens / max(stopwatch.seconds, 1e-9), 1),
        "rates": None if None in rates else [round(rate, 1) for rate in rates if rate],
        **_cost_by_time(state, stopwatch, precision, group),
    }
    write_json(path, content)


def _cost_by_time(
    state: State, stopwatch: Stopwatch, precision: str, group: Group
) -> dict[str, Any]:
    """The cost by time and the MFU; nothing if the training ran on different machines.

    Values are None if they would have to be measured on other devices than are here, or if the
    devices here are slower now, with other work, than the training was.
    """
    here = hardware.hardware_of(group)
    ran = [{name: machine[name] for name in here} for machine in stopwatch.machines]
    if any(machine != ran[0] for machine in ran):
        return {}
    device, devices, seconds = ran[0]["device"], ran[0]["processes"], max(stopwatch.seconds, 1e-9)
    measured = measured_flops(group.device, precision) if ran[0] == here else None
    if measured and hardware.utilization(state.flops, seconds, devices, measured) > 1:
        measured = None
    paper, known = hardware.paper_flops(device), hardware.peak_flops(device, precision)
    sustained, peak = paper or measured, known or measured
    mfu = peak and hardware.utilization(state.flops, seconds, devices, peak)
    return {
        "devices": devices,
        "sustained_flops": sustained,
        "sustained_from": "paper" if paper else measured and "measured",
        "flops_by_time": sustained and hardware.flops_by_time(seconds, devices, sustained),
        "peak_flops": peak,
        "peak_from": "known" if known else measured and "measured",
        "mfu": mfu and round(mfu, 4),
    }
