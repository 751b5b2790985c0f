"""The columns of training cost: means over the trainings of a system, one a seed."""

from collections.abc import Callable

import pandas as pd

from bleuprint.report.grid import NONE, Number
from bleuprint.runtime.counts import counted

_Cell = Callable[[pd.DataFrame], str]


def _mean(column: str, form: Callable[[float], str]) -> Callable[[pd.DataFrame], Number]:
    """The cell of a column's mean over the trainings that have a value."""
    return lambda trainings: Number.of(trainings[column].mean(), form)


def power(number: float) -> str:
    return f"{number:.1e}".replace("e+", "e")


def _millions(number: float) -> str:
    return f"{number / 1e6:,.2f}M"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def machine(device: str, processes: int | str, threads: int | str) -> str:
    """Return what a training ran on; processes and threads of several machines are `1 + 2`."""
    shape = f"{device}, {processes} x"
    if str(threads).isdigit():
        return f"{shape} {counted(int(threads), 'thread')}"
    return f"{shape} {threads} threads"


def _devices(trainings: pd.DataFrame) -> str:
    known = trainings.loc[trainings.device.notna(), ["device", "processes", "threads"]]
    shapes = [machine(t.device, t.processes, t.threads) for t in known.itertuples()]
    return "; ".join(dict.fromkeys(shapes)) or NONE


COUNTED: dict[str, _Cell] = {
    "Parameters": _mean("parameters", _millions),
    "Updates": _mean("updates", "{:,.0f}".format),
    "Target tokens": _mean("target_tokens", _millions),
    "FLOPs": _mean("training_flops", power),
}
MEASURED: dict[str, _Cell] = {
    "Time": _mean("train_seconds", duration),
    "Tokens/s": _mean("train_tokens_per_second", "{:,.0f}".format),
    "Memory": _mean("peak_memory", lambda size: f"{size / 1e9:.1f} GB"),
    "Seconds x devices x sustained FLOPS": _mean("training_flops_by_time", power),
    "MFU": _mean("mfu", "{:.1%}".format),
    "Device": _devices,
}
