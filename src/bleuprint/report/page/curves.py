"""The section of training curves: a chart per quantity, with a line for each system.

With several seeds, the line is their mean, and a band reaches from the lowest to the highest.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from bleuprint.config.paths import Run
from bleuprint.report.page.chart import chart, legend, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.training.history import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of all lines of a chart together: more cannot be seen, and make the page large.
_POINTS = 3000

_Line = Sequence[tuple[float, float]]

# Title, axis, and the field of the points, training or validation, of Curves.
_QUANTITIES = (
    ("Training loss", "Nats per token", "training", "loss"),
    ("Validation loss", "Nats per token", "validation", "loss"),
    ("Validation BLEU", "BLEU", "validation", "bleu"),
)


def curves(context: ReportContext) -> Section | None:
    systems, charts = list(context.settings.trained_systems), list[Any]()
    for number, name in enumerate(context.settings.corpora):
        read = {run: each for run, each in context.curves.items() if run.corpus == name}
        charts.append(list(_charts(systems, number, name, read)))
    data = {
        "charts": [each for each in charts if each],
        "legend": legend(systems),
        "several_seeds": context.several,
    }
    return Section("curves", "Training curves", data) if data["charts"] else None


def _charts(
    systems: Sequence[str], number: int, corpus: str, curves: Mapping[Run, Curves]
) -> Iterator[tuple[Markup, str]]:
    """The charts of a corpus with their captions; none of a quantity without points."""
    for place, (title, axis, points_of, field) in enumerate(_QUANTITIES):
        by_system: dict[str, list[_Line]] = {}
        for run, read in curves.items():
            if points := getattr(read, points_of):
                line = [(point.update, getattr(point, field)) for point in points]
                by_system.setdefault(run.system, []).append(line)
        if by_system:
            svg = _chart(systems, f"curves-{number}-{place}", title, axis, by_system)
            yield svg, f"{corpus}: {title[0].lower()}{title[1:]}"


def _chart(
    systems: Sequence[str], name: str, title: str, axis: str, lines: Mapping[str, Sequence[_Line]]
) -> Markup:
    """`lines` of each system, one for each seed; scripts find them by the ids of-NUMBER."""
    styles, points = line_styles(systems), max(50, _POINTS // len(lines))

    def draw(axes: "Axes") -> None:
        for system, of_seeds in lines.items():
            band, style = thinned(over_seeds(of_seeds), points), styles[system]
            sparse: dict[str, Any] = {"marker": "o", "markersize": 3} if len(band) < 20 else {}
            gid = f"of-{systems.index(system)}"
            if len(of_seeds) > 1:
                look = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
                axes.fill_between(band.x, band.low, band.high, gid=f"{gid}.band", **look)
            axes.plot(band.x, band.y, gid=f"{gid}.line", **style, **sparse)
        axes.set_xlabel("Update")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylabel(axis)

    return chart(name, f"{title} by update", draw)


def over_seeds(lines: Sequence[_Line]) -> pd.DataFrame:
    """The mean y of lines, and the lowest and highest, at each x of the first that all reach.

    Between the points of another line, its value is interpolated.
    """
    tables = [np.array(line, dtype=float) for line in lines]
    low, high = max(table[0, 0] for table in tables), min(table[-1, 0] for table in tables)
    x = tables[0][:, 0]
    x = x[(low <= x) & (x <= high)]
    values = np.stack([np.interp(x, *table.T) for table in tables])
    return pd.DataFrame({"x": x, "y": values.mean(0), "low": values.min(0), "high": values.max(0)})


def thinned(line: pd.DataFrame, points: int) -> pd.DataFrame:
    """At most `points` rows, each the mean of neighbors."""
    return neighbors(line, points).mean()


def neighbors(line: pd.DataFrame, points: int) -> Any:
    """The rows in at most `points` groups, all of one size but the last."""
    return line.groupby(line.index // (-(-len(line) // points) or 1))
