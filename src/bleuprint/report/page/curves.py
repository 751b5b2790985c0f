"""The section of training curves: a chart per quantity, with a line for each training."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from bleuprint.config.paths import Cell
from bleuprint.report.page.chart import chart, legend, line_id, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.training.history import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of all lines of a chart together: more cannot be seen, and make the page large.
_POINTS = 5000
# A longer table is folded away.
_ROWS = 8

_Line = Sequence[tuple[float, float]]


# Title, axis, and the field of the points, training or validation, of Curves.
_QUANTITIES = (
    ("Training loss", "Nats per token", "training", "loss"),
    ("Validation loss", "Nats per token", "validation", "loss"),
    ("Validation BLEU", "BLEU", "validation", "bleu"),
    ("Learning rate", "Learning rate", "training", "learning_rate"),
    ("Gradient norm, before clipping", "Norm", "training", "gradient_norm"),
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
    for place, (title, axis, points_of, field) in enumerate(_QUANTITIES):
        lines: dict[Cell, _Line] = {
            cell: [(point.update, getattr(point, field)) for point in points]
            for cell, read in curves.items()
            if (points := getattr(read, points_of))
        }
        if lines:
            yield _chart(context, f"curves-{number}-{place}", title, axis, lines), title


def _chart(
    context: ReportContext, name: str, title: str, axis: str, lines: Mapping[Cell, _Line]
) -> Markup:
    systems = list(context.settings.systems)
    styles = line_styles(systems)
    points = max(50, _POINTS // len(lines))
    width = 1.6 if len(context.settings.seeds) == 1 else 0.9

    def draw(axes: "Axes") -> None:
        for cell, line in lines.items():
            sparse: dict[str, Any] = {"marker": "o", "markersize": 3} if len(line) < 20 else {}
            style = {"linewidth": width, **styles[cell.system], **sparse}
            gid = line_id(systems.index(cell.system), cell.seed)
            means = thinned(line, points)
            axes.plot(means.x, means.y, gid=gid, **style)
        if axis == "Norm":
            axes.set_yscale("log")
        axes.set_xlabel("Update")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylabel(axis)

    return chart(name, f"{title} by update", draw)


def thinned(line: _Line, points: int) -> pd.DataFrame:
    """At most `points` points of a line, each the mean of neighbors."""
    table = pd.DataFrame(line, columns=["x", "y"])
    return table.groupby(table.index // (-(-len(table) // points) or 1)).mean()
