"""What a training took and cost: seconds, tokens a second, FLOPs by time, hardware."""

from pathlib import Path
from typing import Any

from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import write_json
from bleuprint.tracking.hardware import (
    machine_of,
    measured_flops,
    paper_flops,
    peak_flops,
    utilization,
)
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training.train_state import TrainState


def write_training(
    path: Path, state: TrainState, stopwatch: Stopwatch, precision: str, group: Group
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
    state: TrainState, stopwatch: Stopwatch, precision: str, group: Group
) -> dict[str, Any]:
    """The cost by time and the MFU; nothing if the training ran on different machines.

    Values are None if they would have to be measured on other devices than are here, or if the
    devices here are slower now, with other work, than the training was.
    """
    ran, here = map(_hardware, stopwatch.machines), _hardware(machine_of(group))
    first, *others = dict.fromkeys(ran)
    if others:
        return {}
    (device, devices, _), seconds = first, max(stopwatch.seconds, 1e-9)
    measured = measured_flops(group.device, precision) if first == here else None
    if measured and utilization(state.flops, seconds, devices, measured) > 1:
        measured = None
    paper, known = paper_flops(device), peak_flops(device, precision)
    sustained, peak = paper or measured, known or measured
    mfu = peak and utilization(state.flops, seconds, devices, peak)
    return {
        "devices": devices,
        "sustained_flops": sustained,
        "sustained_from": "paper" if paper else measured and "measured",
        "flops_by_time": sustained and seconds * devices * sustained,
        "peak_flops": peak,
        "peak_from": "known" if known else measured and "measured",
        "mfu": mfu and round(mfu, 4),
    }


def _hardware(machine: dict[str, Any]) -> tuple[str, int, int]:
    return machine["device"], machine["processes"], machine["threads"]
