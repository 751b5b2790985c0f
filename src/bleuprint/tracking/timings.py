"""What a clock measured of a cell: in no record, since it does not repeat."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import Cell
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import read_object, write_json
from bleuprint.tracking.hardware import (
    flops_by_time,
    hardware_of,
    measured_flops,
    paper_flops,
    peak_flops,
    utilization,
)
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training.train_state import State


@dataclass(frozen=True)
class Training:
    """How long a training took, and where; and what it cost by time.

    `devices` that each sustain `sustained_flops` a second (the `paper`'s figure, or `measured`)
    would have done `flops_by_time`; `mfu` is the share that they did of `peak_flops` a second
    (`known` or `measured`). `rates` are the target tokens a second at the curve's points. None is
    what is not known, or was not yet written down.
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
    """What was measured of a cell; None where nothing was."""

    training: Training | None
    translate_seconds: float | None


def timing(cell: Cell, root: Path = Path()) -> Timing:
    """What was measured when a cell was trained and translated, as far as it is there."""
    train, translate = ((root / cell.timings) / f"{n}.json" for n in ("train", "translate"))
    training = None
    if train.exists():
        fields = dataclasses.fields(Training)
        names = [field.name for field in fields]
        required = [field.name for field in fields if field.default is dataclasses.MISSING]
        measured = read_object(train, required)
        training = Training(**{name: measured[name] for name in names if name in measured})
    return Timing(
        training, read_object(translate, ("seconds",))["seconds"] if translate.exists() else None
    )


def write_training(
    path: Path, state: State, stopwatch: Stopwatch, precision: str, group: Group
) -> None:
    """Write the durations and the hardware of a training; if it was resumed, all its machines."""

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
    """What the training cost as the paper reckons, and the share it got of the devices' peak.

    Nothing where it ran on unlike machines: how long on each is not known. None for what would
    have to be measured but cannot be: here are other devices, or they are slower now, with other
    work, than the training was.
    """
    here = hardware_of(group)
    ran = [{name: machine[name] for name in here} for machine in stopwatch.machines]
    if any(hardware != ran[0] for hardware in ran):
        return {}
    device, devices, seconds = ran[0]["device"], ran[0]["processes"], max(stopwatch.seconds, 1e-9)
    measured = measured_flops(group.device, precision) if ran[0] == here else None
    if measured and utilization(state.flops, seconds, devices, measured) > 1:
        measured = None
    paper, known = paper_flops(device), peak_flops(device, precision)
    sustained, peak = paper or measured, known or measured
    return {
        "devices": devices,
        "sustained_flops": sustained,
        "sustained_from": "paper" if paper else measured and "measured",
        "flops_by_time": sustained and flops_by_time(seconds, devices, sustained),
        "peak_flops": peak,
        "peak_from": "known" if known else measured and "measured",
        "mfu": peak and round(utilization(state.flops, seconds, devices, peak), 4),
    }
