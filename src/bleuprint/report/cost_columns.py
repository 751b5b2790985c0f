"""What trainings cost, as text for the columns of the tables; means over seeds."""

import statistics
from collections.abc import Iterable, Sequence

from bleuprint.report.records import Record
from bleuprint.tracking.timings import Training

NONE = "–"
COUNTED = ("Parameters", "Updates", "Target tokens", "FLOPs")
MEASURED = ("Time", "Tokens/s", "Seconds x devices x sustained FLOPS", "MFU", "Device", "Commit")
TEXTS = ("Device", "Commit")

EXPLAINED = (
    "Counted figures (parameters, updates, target tokens, FLOPs of training from the shapes of "
    "the matrices) repeat exactly. Measured figures hold for the device and the commit beside "
    "them (processes x threads), and for the run that computed the result: a cached one keeps its "
    "own. With several seeds, both are means.\n\n"
    "Seconds x devices x sustained FLOPS is how the paper reckons what a training cost: the time "
    "(validation and saving included) by what the devices could have done in it. In brackets are "
    "the devices (a CPU's are the processes) and the FLOP/s that each sustains: the paper's figure "
    "for a K80, K40, M40 or P100, measured on a large matrix product at the end of the training "
    "for any other. MFU, model FLOPs utilisation, is the counted FLOPs as a share of what the "
    "devices could have done at their peak: known from their data sheet, or else measured in the "
    "same way. Both are left open where the training ran on unlike machines, and where nothing "
    "could be measured: it ended on another machine, or other work there made the measured rate "
    "less than the training's own."
)


def counted(records: Sequence[Record]) -> tuple[str, ...]:
    """The cells of COUNTED."""
    return (
        _millions(statistics.mean(record.parameters for record in records)),
        f"{statistics.mean(record.updates for record in records):,.0f}",
        _millions(statistics.mean(record.target_tokens for record in records)),
        counted_flops(records),
    )


def measured(trained: Sequence[Training]) -> tuple[str, ...]:
    """The cells of MEASURED."""
    return (
        _duration([one.seconds for one in trained]),
        _mean([one.tokens_per_second for one in trained]),
        _by_time(trained),
        _utilization(trained),
        _each(f"{one.device}, {one.processes} x {one.threads} threads" for one in trained),
        _each(_short(one.commit) for one in trained),
    )


def counted_flops(records: Sequence[Record]) -> str:
    return _power(statistics.mean(record.training_flops for record in records))


def flops_by_time(trained: Sequence[Training]) -> str:
    """Seconds x devices x sustained FLOPS, as far as it is known."""
    known = [one.flops_by_time for one in trained if one.flops_by_time is not None]
    return _power(statistics.mean(known)) if known else NONE


def _by_time(trained: Sequence[Training]) -> str:
    """With what it is made of: 3.3e18 (8 x 9.5e12, paper)."""
    rates = [one.sustained_flops for one in trained if one.sustained_flops is not None]
    if not rates:
        return NONE
    devices = _each(str(one.devices) for one in trained if one.devices is not None)
    sources = _each(one.sustained_from for one in trained if one.sustained_from)
    return f"{flops_by_time(trained)} ({devices} x {_power(statistics.mean(rates))}, {sources})"


def _utilization(trained: Sequence[Training]) -> str:
    """With the peak: 35.1 % of 9.3e12, known."""
    shares = [one.mfu for one in trained if one.mfu is not None]
    peaks = [one.peak_flops for one in trained if one.peak_flops is not None]
    if not shares:
        return NONE
    sources = _each(one.peak_from for one in trained if one.peak_from)
    share = 100 * statistics.mean(shares)
    return f"{share:.1f} % of {_power(statistics.mean(peaks))}, {sources}"


def _power(number: float) -> str:
    return f"{number:.1e}".replace("e+", "e")


def _millions(number: float) -> str:
    return f"{number / 1e6:,.2f}M"


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):,.0f}" if values else NONE


def _duration(seconds: Sequence[float]) -> str:
    if not seconds:
        return NONE
    minutes, rest = divmod(round(statistics.mean(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _each(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or NONE


def _short(commit: str | None) -> str:
    """A commit's first digits; + where the code was not as committed."""
    return commit[:8] + "+" * commit.endswith("+") if commit else NONE
