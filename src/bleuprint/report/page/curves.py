"""The section of training curves: a chart for each quantity, with a line for each system.

With several seeds, the line is their mean, and a band reaches from the lowest to the highest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from markupsafe import Markup

from bleuprint.config.paths import Run
from bleuprint.report.page.chart import chart, legend, line_styles
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import Section
from bleuprint.training.history import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The points of all lines of a chart together: more cannot be seen, and make the page large.
_MAX_CHART_POINTS = 3000
_MIN_LINE_POINTS = 50
# A line with fewer points has a marker at each.
_MARKER_LIMIT = 20

# The points (x, y) of one training run.
_Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Quantity:
    """A quantity that is drawn by update.

    Attributes:
        title: The title of the chart.
        unit: The label of the vertical axis.
        curve: The field of `Curves` with its points.
        field: The field of a point with its value.
    """

    title: str
    unit: str
    curve: Literal["training", "validation"]
    field: str


_QUANTITIES = (
    _Quantity("Training loss", "Nats per token", "training", "loss"),
    _Quantity("Validation loss", "Nats per token", "validation", "loss"),
    _Quantity("Validation BLEU", "BLEU", "validation", "bleu"),
)


def curves_section(report: ReportData) -> Section | None:
    """Return the report's section of training curves; None if no training run recorded any.

    For each corpus, it has charts of training loss, validation loss and validation BLEU, with a
    line for each system. The horizontal axis is the number of updates.

    Args:
        report: The settings and the results of the experiment.
    """
    systems = list(report.settings.trained_systems)
    charts_by_corpus = []
    for corpus_number, corpus in enumerate(report.settings.corpora):
        curves_by_run = {}
        for run, curves_of_run in report.curves.items():
            if run.corpus == corpus:
                curves_by_run[run] = curves_of_run
        charts = _corpus_charts(systems, corpus_number, corpus, curves_by_run)
        if charts:
            charts_by_corpus.append(charts)
    if not charts_by_corpus:
        return None
    data = {
        "charts_by_corpus": charts_by_corpus,
        "legend": legend(systems),
        "several_seeds": report.has_several_seeds,
    }
    return Section("curves", "Training curves", data)


def _corpus_charts(
    systems: Sequence[str], corpus_number: int, corpus: str, curves_by_run: Mapping[Run, Curves]
) -> list[tuple[Markup, str]]:
    """Return the charts of a corpus with their captions: one for each quantity, such as BLEU.

    A quantity that no run recorded has no chart.

    Args:
        systems: The names of all systems of the experiment.
        corpus_number: The position of the corpus in the experiment. It makes the ids of the charts
            unique, and is always valid in an id, which the name of a corpus need not be.
        corpus: The name of the corpus.
        curves_by_run: The curves of each run on the corpus; a system has a run for each seed.
    """
    charts = []
    for quantity_number, quantity in enumerate(_QUANTITIES):
        lines_by_system = _lines_by_system(curves_by_run, quantity)
        if lines_by_system:
            name = f"curves-{corpus_number}-{quantity_number}"
            svg = _quantity_chart(systems, name, quantity.title, quantity.unit, lines_by_system)
            # `Training loss` becomes `wmt14: training loss`; `lower()` would also change BLEU.
            first_letter = quantity.title[0].lower()
            caption = f"{corpus}: {first_letter}{quantity.title[1:]}"
            charts.append((svg, caption))
    return charts


def _lines_by_system(
    curves_by_run: Mapping[Run, Curves], quantity: _Quantity
) -> dict[str, list[_Line]]:
    """Return the points of one quantity, such as training loss, of each system.

    Args:
        curves_by_run: The curves of each run, that is, of a system with one seed.
        quantity: The quantity.

    Returns:
        The lines of each system, one for each seed. A line is a list of points (update, value).
        Systems without a recorded point are missing.
    """
    lines_by_system: dict[str, list[_Line]] = {}
    for run, curves_of_run in curves_by_run.items():
        points = getattr(curves_of_run, quantity.curve)  # Such as `curves_of_run.training`.
        if points:
            line = [(point.update, getattr(point, quantity.field)) for point in points]
            lines_by_system.setdefault(run.system, []).append(line)
    return lines_by_system


def _quantity_chart(
    systems: Sequence[str],
    name: str,
    title: str,
    unit: str,
    lines_by_system: Mapping[str, Sequence[_Line]],
) -> Markup:
    """Return the chart of one quantity, such as training loss, with a line for each system.

    With several seeds, the line is their mean, and a band shows the lowest and highest values.

    Args:
        systems: All systems of the experiment. A system has the same color in every chart, even in
            charts that lack some of the systems.
        name: The name of the chart, which becomes the prefix of ids in the SVG.
        title: The title of the chart.
        unit: The label of the vertical axis.
        lines_by_system: The points of each system, a list for each seed.
    """

    def draw(axes: "Axes") -> None:
        """Draw the content of the chart into the axes that the function `chart` creates."""
        _draw_lines(axes, systems, lines_by_system)
        axes.set_xlabel("Update")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylabel(unit)

    return chart(name, f"{title} by update", draw)


def _draw_lines(
    axes: "Axes", systems: Sequence[str], lines_by_system: Mapping[str, Sequence[_Line]]
) -> None:
    """Draw the line of each system into a chart, with several seeds also a band around it.

    Args:
        axes: Matplotlib's axes of the chart.
        systems: All systems of the experiment, which decide the color of each of them.
        lines_by_system: The points of each system, a list for each seed.
    """
    styles = line_styles(systems)
    points_per_line = max(_MIN_LINE_POINTS, _MAX_CHART_POINTS // len(lines_by_system))
    for system, lines in lines_by_system.items():
        line = thin_line(mean_over_seeds(lines), points_per_line)
        style = styles[system]
        # The script page.js finds the line and the band of a system by these ids.
        line_id = f"of-{systems.index(system)}"
        if len(lines) > 1:
            axes.fill_between(
                line.x,
                line.low,
                line.high,
                gid=f"{line_id}.band",
                color=style["color"],
                alpha=0.2,
                linewidth=0,
            )
        point_style: dict[str, Any] = {}
        if len(line) < _MARKER_LIMIT:  # A line with few points has a marker at each.
            point_style = {"marker": "o", "markersize": 3}
        axes.plot(line.x, line.y, gid=f"{line_id}.line", **style, **point_style)


def mean_over_seeds(lines: Sequence[_Line]) -> pd.DataFrame:
    """Return the mean of the curves of several seeds, and their lowest and highest values.

    The curves need not have points at the same updates, and some training runs are longer than
    others. So the mean is computed at the updates of the first seed, within the range that all
    curves cover; the values of other curves at these updates are interpolated.

    Args:
        lines: For each seed the points (x, y) of its curve, such as (update, loss), by ascending x.

    Returns:
        The columns `x`, `y` (the mean), `low` and `high`, with a row for each point.
    """
    arrays = [np.array(line, dtype=float) for line in lines]  # Each of shape (points, 2).
    # Column 0 of an array contains x, column 1 contains y.
    first_common_x = max(array[0, 0] for array in arrays)
    last_common_x = min(array[-1, 0] for array in arrays)
    x = arrays[0][:, 0]
    is_in_common_range = (first_common_x <= x) & (x <= last_common_x)
    x = x[is_in_common_range]
    interpolated = [np.interp(x, array[:, 0], array[:, 1]) for array in arrays]
    values = np.stack(interpolated)  # Of shape (seeds, points).
    return pd.DataFrame(
        {
            "x": x,
            "y": values.mean(axis=0),
            "low": values.min(axis=0),
            "high": values.max(axis=0),
        }
    )


def thin_line(line: pd.DataFrame, max_points: int) -> pd.DataFrame:
    """Reduce the points of a curve by replacing neighboring points with their mean.

    Args:
        line: The points, one per row.
        max_points: The largest number of points that the result may have.
    """
    return group_neighbors(line, max_points).mean()


def group_neighbors(points: pd.DataFrame, max_groups: int) -> Any:
    """Group neighboring points of a curve, so that each group can become one point.

    For example, 10 points in at most 4 groups are groups of 3, 3, 3 and 1 points.

    Args:
        points: The points, one per row, with the index 0, 1, and so on.
        max_groups: The largest number of groups.

    Returns:
        The groups as pandas returns them, a `DataFrameGroupBy`.
    """
    points_per_group = max(1, math.ceil(len(points) / max_groups))
    return points.groupby(points.index // points_per_group)
