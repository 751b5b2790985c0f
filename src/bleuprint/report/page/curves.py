"""The section of training curves: a chart per quantity, with a line for each training."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from bleuprint.config.paths import Cell
from bleuprint.report.page.chart import Chart, chart, legend, line_id, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.training.history import Curves

# Points of all lines of a chart together: more cannot be seen, and make the page large.
_POINTS = 5000
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
    with chart(name, f"{quantity.name} by update", 4.6, 2.9) as drawing:
        for cell, line in lines.items():
            sparse: dict[str, Any] = {"marker": "o", "markersize": 3} if len(line) < 20 else {}
            style = {"linewidth": width, **styles[cell.system], **sparse}
            gid = line_id(systems.index(cell.system), cell.seed)
            drawing.axes.plot(*thinned(line, points), gid=gid, **style)
        if quantity.field == "gradient_norm":
            _logarithmic(drawing)
        drawing.axes.set_xlabel("Update")
        drawing.axes.xaxis.set_major_formatter("{x:,.0f}")
        drawing.axes.set_ylabel(quantity.axis)
        if quantity is _RATE:
            drawing.axes.yaxis.set_major_formatter("{x:,.0f}")
        if quantity.name == "Validation loss":
            drawing.axes.secondary_yaxis("right", functions=(np.exp, _log)).set_ylabel("Perplexity")
    return drawing.svg


def _logarithmic(drawing: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = drawing.axes.yaxis
    drawing.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _log(perplexity: ArrayLike) -> ArrayLike:
    """matplotlib also calls it with 0, before the axis has its limits."""
    return np.log(np.maximum(perplexity, 1e-9))


def thinned(
    line: Sequence[tuple[float, float]], points: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """x and y of a line reduced to at most `points` points, each the mean of neighbors."""
    groups = np.array_split(np.array(line, float).reshape(-1, 2), min(points, len(line)) or 1)
    means = [group.mean(axis=0) for group in groups if len(group)]
    return tuple(float(x) for x, _ in means), tuple(float(y) for _, y in means)
