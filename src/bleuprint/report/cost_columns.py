"""The columns of training cost: means over the trainings of a system, one a seed."""

from collections.abc import Callable

import pandas as pd

from bleuprint.report.grid import NONE, Number

_Cell = Callable[[pd.DataFrame], str]


def _mean(column: str, form: Callable[[float], str]) -> Callable[[pd.DataFrame], Number]:
    """The cell of a column's mean over the trainings that have a value."""

    def cell(trainings: pd.DataFrame) -> Number:
        mean = trainings[column].mean()
        return Number(NONE, None) if pd.isna(mean) else Number(form(mean), float(mean))

    return cell


def _power(number: float) -> str:
    return f"{number:.1e}".replace("e+", "e")


def _millions(number: float) -> str:
    return f"{number / 1e6:,.2f}M"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _each(values: pd.Series) -> str:
    """The distinct values, as text."""
    return "; ".join(map(str, values.dropna().unique()))


def _with_rate(trainings: pd.DataFrame) -> Number:
    """Seconds x devices x sustained FLOPS: 3.3e18 (8 x 9.5e12)."""
    flops = _mean("training_flops_by_time", _power)(trainings)
    if flops.value is None:
        return flops
    rate = _power(trainings.sustained_flops.mean())
    return Number(f"{flops} ({_each(trainings.devices)} x {rate})", flops.value)


def _utilization(trainings: pd.DataFrame) -> Number:
    """With the peak: 35.1 % of 9.3e12."""
    share = _mean("mfu", lambda mfu: f"{100 * mfu:.1f} %")(trainings)
    if share.value is None:
        return share
    return Number(f"{share} of {_power(trainings.peak_flops.mean())}", share.value)


def _devices(trainings: pd.DataFrame) -> str:
    known = trainings[trainings.device.notna()]
    shapes = [f"{t.device}, {t.processes} x {t.threads} threads" for t in known.itertuples()]
    return _each(pd.Series(shapes, dtype=object)) or NONE


def _commits(trainings: pd.DataFrame) -> str:
    """The first digits of each; + if the code had uncommitted changes."""
    short = trainings.commit.dropna().map(lambda commit: commit[:8] + "+" * commit.endswith("+"))
    return _each(short) or NONE


counted_flops = _mean("training_flops", _power)

COUNTED: dict[str, _Cell] = {
    "Parameters": _mean("parameters", _millions),
    "Updates": _mean("updates", "{:,.0f}".format),
    "Target tokens": _mean("target_tokens", _millions),
    "FLOPs": counted_flops,
}
MEASURED: dict[str, _Cell] = {
    "Time": _mean("train_seconds", _duration),
    "Tokens/s": _mean("train_tokens_per_second", "{:,.0f}".format),
    "Memory": _mean("peak_memory", lambda size: f"{size / 1e9:.1f} GB"),
    "Seconds x devices x sustained FLOPS": _with_rate,
    "MFU": _utilization,
}
TEXTS: dict[str, _Cell] = {"Device": _devices, "Commit": _commits}
