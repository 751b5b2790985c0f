"""What a training took and cost: seconds, tokens a second, FLOPs by time, hardware."""

from typing import Any

from bleuprint.tracking.hardware import paper_flops, peak_flops, utilization
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.tracking.timings import Training
from bleuprint.training.train_state import TrainState


def training_cost(state: TrainState, stopwatch: Stopwatch, precision: str) -> Training:
    """The durations and the hardware of a training; of a resumed one, all its machines."""

    def joined(name: str) -> Any:
        values = list(dict.fromkeys(machine[name] for machine in stopwatch.machines))
        return values[0] if len(values) == 1 else " + ".join(map(str, values))

    rates = [stopwatch.rates.get(int(point["update"])) for point in state.curve]
    return Training(
        seconds=round(stopwatch.seconds, 3),
        **{name: joined(name) for name in ("device", "processes", "threads", "commit", "versions")},
        tokens_per_second=round(state.target_tokens / max(stopwatch.seconds, 1e-9), 1),
        peak_memory=stopwatch.peak_memory or None,
        rates=None if None in rates else [round(rate, 1) for rate in rates if rate],
        **_cost_by_time(state, stopwatch, precision),
    )


def _cost_by_time(state: TrainState, stopwatch: Stopwatch, precision: str) -> dict[str, Any]:
    """The cost by time and the MFU, by published rates; nothing for unlike machines.

    A rate measured on the device would be as noisy as the time: with it, the costs of one training
    alone and beside other work differed fivefold.
    """
    hardware = {(m["device"], m["processes"], m["threads"]) for m in stopwatch.machines}
    if len(hardware) > 1:
        return {}
    ((device, devices, _),) = hardware
    seconds = max(stopwatch.seconds, 1e-9)
    sustained, peak = paper_flops(device), peak_flops(device, precision)
    return {
        "devices": devices,
        "sustained_flops": sustained,
        "flops_by_time": sustained and seconds * devices * sustained,
        "peak_flops": peak,
        "mfu": peak and round(utilization(state.flops, seconds, devices, peak), 4),
    }
