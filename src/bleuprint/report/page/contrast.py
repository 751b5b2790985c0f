"""The section of contrastive tests: accuracy by phenomenon and system, as a table and a picture."""

from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from bleuprint.report import contrast_tables
from bleuprint.report.page.chart import chart
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section, paragraphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# White is chance; figures on darker cells are white. Cells have one color in both themes, and so
# have their figures: black and white themselves would become the theme's.
_CHANCE, _DARK = 50, 80
_WHITE, _BLACK = "#fefefe", "#010101"


def contrast(context: ReportContext) -> Section | None:
    """None for results of an earlier version."""
    rows, grid = contrast_tables.means(context.records), contrast_tables.accuracies(context.records)
    if rows is None or grid is None:
        return None
    data = {
        "grid": grid,
        "findings": contrast_tables.findings(context.records),
        "notes": paragraphs("contrast.md"),
        "charts": [
            (
                _chart(f"contrast-{number}", of_test),
                f"{corpus}, {test}",
            )
            for number, ((corpus, test), of_test) in enumerate(
                rows.groupby(["corpus", "test"], sort=False)
            )
        ],
    }
    return Section("contrast", "Contrastive tests", data)


def _chart(name: str, rows: pd.DataFrame) -> Markup:
    """Systems down, phenomena across, the accuracy as figure and color."""
    table = 100 * rows.pivot(index="system", columns="name", values="share")
    table = table.reindex(index=rows.system.unique(), columns=rows.name.unique())
    height = 0.8 + 0.24 * len(table)

    def draw(axes: "Axes") -> None:
        axes.pcolormesh(table, cmap="Blues", vmin=_CHANCE, vmax=110, edgecolors="white", lw=1)
        for y, (_, of_system) in enumerate(table.iterrows()):
            for x, value in enumerate(of_system):
                color = _WHITE if value > _DARK else _BLACK
                text = "" if pd.isna(value) else f"{value:.0f}"
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=color)
        axes.set_xticks(
            [x + 0.5 for x in range(table.shape[1])], list(table), rotation=30, ha="right"
        )
        axes.set_yticks([y + 0.5 for y in range(len(table))], list(table.index))
        axes.invert_yaxis()
        axes.grid(False)
        axes.tick_params(length=0)

    return chart(
        name, "Accuracy of contrastive tests by system and phenomenon", draw, (4.6, height)
    )
