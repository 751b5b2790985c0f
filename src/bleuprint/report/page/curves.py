"""The section of training curves: a chart per quantity, with a line for each training."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from bleuprint.config.paths import Cell
from bleuprint.config.system import LrSchedule, Noam
from bleuprint.report.page.chart import Chart, chart, legend, line_id, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.training.history import Curves
from bleuprint.training.lr_schedule import learning_rate

# Points of all lines of a chart together: more cannot be seen, and make the page large.
_POINTS = 5000
# What The Annotated Transformer draws: d_model and warmup, factor 1, over 20,000 updates.
_ANNOTATED = ((512, 4000), (512, 8000), (256, 4000))
_ANNOTATED_UPDATES = 20_000
# A longer table is folded away.
_ROWS = 8

_Line = Sequence[tuple[float, float]]


class _Quantity(NamedTuple):
    """What a chart shows: a field of `points`, training or validation of Curves."""

    name: str
    axis: str
    points: str
    field: str


_RATE = _Quantity("Target tokens per second", "Tokens per second", "", "")
_QUANTITIES = (
    _Quantity("Training loss", "Nats per token", "training", "loss"),
    _Quantity("Validation loss", "Nats per token", "validation", "loss"),
    _Quantity("Validation BLEU", "BLEU", "validation", "bleu"),
    _Quantity("Learning rate", "Learning rate", "training", "learning_rate"),
    _Quantity("Gradient norm, before clipping", "Norm", "training", "gradient_norm"),
)


def curves(context: ReportContext) -> Section | None:
    if not context.curves:
        return None
    corpora = []
    for number, name in enumerate(context.settings.corpora):
        trained = {cell: read for cell, read in context.curves.items() if cell.corpus == name}
        if trained:
            validated = {cell: read for cell, read in trained.items() if read.validation}
            charts = list(_charts(context, number, trained))
            corpora.append({"name": name, "charts": charts, "curves": validated})
    data = {
        "corpora": corpora,
        "legend": legend(list(context.settings.systems)),
        "seeds": context.settings.seeds,
        "rows": _ROWS,
        "perplexity": math.exp,
        "schedules": _schedules(context),
        "noam": any(s.train.lr_schedule.noam for s in context.settings.systems.values()),
    }
    return Section("curves", "Training curves", data)


def _charts(
    context: ReportContext, number: int, curves: Mapping[Cell, Curves]
) -> Iterator[tuple[Markup, str]]:
    """The charts of a corpus with their captions; none of a quantity without points."""
    for place, quantity in enumerate(_QUANTITIES):
        lines: dict[Cell, _Line] = {
            cell: [(point.update, getattr(point, quantity.field)) for point in points]
            for cell, read in curves.items()
            if (points := getattr(read, quantity.points))
        }
        if lines:
            yield _chart(context, f"curves-{number}-{place}", quantity, lines), quantity.name
    if rates := _rates(context, curves):
        yield _chart(context, f"curves-{number}-rate", _RATE, rates), _RATE.name


def _rates(context: ReportContext, curves: Mapping[Cell, Curves]) -> dict[Cell, _Line]:
    """Target tokens per second at the points of each curve, if they were measured."""
    measured = dict(zip(context.cells, context.trainings.rates, strict=True))
    return {
        cell: [(point.update, rate) for point, rate in zip(read.training, rates, strict=True)]
        for cell, read in curves.items()
        if isinstance(rates := measured[cell], list) and len(rates) == len(read.training)
    }


def _chart(
    context: ReportContext, name: str, quantity: _Quantity, lines: Mapping[Cell, _Line]
) -> Markup:
    systems = list(context.settings.systems)
    styles = line_styles(systems)
    points = max(50, _POINTS // len(lines))
    width = 1.6 if len(context.settings.seeds) == 1 else 0.9
    with chart(name, f"{quantity.name} by update", 4.6, 2.9) as made:
        for cell, line in lines.items():
            sparse: dict[str, Any] = {"marker": "o", "markersize": 3} if len(line) < 20 else {}
            style = {"linewidth": width, **styles[cell.system], **sparse}
            gid = line_id(systems.index(cell.system), cell.seed)
            made.axes.plot(*thinned(line, points), gid=gid, **style)
        if quantity.field == "gradient_norm":
            _logarithmic(made)
        made.axes.set_xlabel("Update")
        made.axes.xaxis.set_major_formatter("{x:,.0f}")
        made.axes.set_ylabel(quantity.axis)
        if quantity is _RATE:
            made.axes.yaxis.set_major_formatter("{x:,.0f}")
        if quantity.name == "Validation loss":
            made.axes.secondary_yaxis("right", functions=(np.exp, _log)).set_ylabel("Perplexity")
    return made.svg


def _logarithmic(made: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = made.axes.yaxis
    made.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _log(perplexity: ArrayLike) -> ArrayLike:
    """matplotlib also calls it with 0, before the axis has its limits."""
    return np.log(np.maximum(perplexity, 1e-9))


def _schedules(context: ReportContext) -> Markup:
    """The learning rates of the settings, whether trained or not."""
    systems = context.settings.systems
    names: dict[tuple[LrSchedule, int], list[str]] = {}
    for name, system in systems.items():
        width = system.model.d_model if system.train.lr_schedule.noam else 0
        names.setdefault((system.train.lr_schedule, width), []).append(name)
    lines = {
        _label(shared): (schedule, width, max(_last_update(context, name) for name in shared))
        for (schedule, width), shared in names.items()
    }
    if any(system.train.lr_schedule.noam for system in systems.values()):
        for width, warmup in _ANNOTATED:
            schedule = LrSchedule(noam=Noam(factor=1.0, warmup_updates=warmup))
            lines[f"{width}:{warmup}"] = schedule, width, _ANNOTATED_UPDATES
    with chart("schedules", "Learning-rate schedules", 5.0, 3.0) as made:
        styles = line_styles(list(lines))
        for name, (schedule, width, end) in lines.items():
            updates = sorted({1 + round((end - 1) * i / 400) for i in range(401)})
            rates = [learning_rate(schedule, update, width) for update in updates]
            made.axes.plot(updates, rates, **styles[name], label=name)
        made.axes.set_xlabel("Update")
        made.axes.xaxis.set_major_formatter("{x:,.0f}")
        made.axes.set_ylabel("Learning rate")
        made.axes.legend(fontsize=9)
    return made.svg


def _last_update(context: ReportContext, name: str) -> int:
    system = context.settings.system(name)
    if system.train.max_updates is not None:
        return system.train.max_updates
    records = context.records
    return int(records.updates[records.system == name].max())


def _label(names: Sequence[str]) -> str:
    if len(names) < 4:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more"


def thinned(
    line: Sequence[tuple[float, float]], points: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """x and y of a line in at most `points` points: each the mean of as many neighbors."""
    groups = np.array_split(np.array(line, float).reshape(-1, 2), min(points, len(line)) or 1)
    means = [group.mean(axis=0) for group in groups if len(group)]
    return tuple(float(x) for x, _ in means), tuple(float(y) for _, y in means)
