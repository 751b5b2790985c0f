"""Draw the figures that courses on the Transformer print.

    python docs/figures.py        writes docs/images/NAME.svg for each name in FIGURES

figure_values.py computes what they show. The SVGs follow the reader's light or dark theme.
"""

import hashlib
import io
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import figure_values

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"

_INK = "#1f2328"
_PAPER = "#ffffff"
_GRID = "#d1d9e0"
# Blue, vermilion, green and purple of Okabe and Ito (2008): distinct with any color vision.
_LINE_COLORS = ("#0072b2", "#d55e00", "#009e73", "#b0588f")
_DARK_THEME = {
    _INK: "#e6edf3",
    _PAPER: "#0d1117",
    _GRID: "#3d444d",
    "#0072b2": "#4493f8",
    "#d55e00": "#f0883e",
    "#009e73": "#3fb950",
    "#b0588f": "#db9bc6",
}
_DASHES = ("-", "--", ":", "-.")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "axes.facecolor": _PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": _PAPER,
    "figure.constrained_layout.use": True,
    "grid.color": _GRID,
    "legend.edgecolor": _GRID,
    "legend.facecolor": _PAPER,
    "lines.linewidth": 1.6,
    # Text stays text: it can be searched, copied and read aloud.
    "svg.fonttype": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
}

# Rows of numbers.
_Matrix = Sequence[Sequence[float]]


# -- the drawings ---------------------------------------------------------------------------------

# Sizes of the figures in inches: width and height.
_Size = tuple[float, float]


def mask_svg() -> str:
    """Draw the subsequent mask: a filled cell is a position that is seen.

    Returns:
        The text of the SVG file, as all functions of FIGURES return it.
    """

    def draw(figure: Figure) -> None:
        mask = figure_values.subsequent_mask().float()
        axes = figure.add_subplot()
        _draw_cells(axes, mask.tolist(), labels=None)
        axes.set_aspect("equal")
        ticks = range(0, figure_values.MASK_POSITIONS, 5)
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.set_xlabel("position that is seen")
        axes.set_ylabel("position that sees")

    return _svg("subsequent-mask", "Subsequent mask of 20 positions", (3.6, 3.6), draw)


def sinusoids_svg() -> str:
    """Draw four dimensions of the positional encoding over the positions."""

    def draw(figure: Figure) -> None:
        encoding = figure_values.sinusoids()
        curves = {}
        for dimension in figure_values.SINUSOID_DIMENSIONS:
            curves[f"dimension {dimension}"] = encoding[:, dimension].tolist()
        axes = figure.add_subplot()
        _draw_curves(axes, range(figure_values.SINUSOID_POSITIONS), curves)
        axes.set_xlabel("position")
        axes.set_ylabel("value")

    return _svg("sinusoids", "Sinusoids of d_model 20, dimensions 4 to 7", (7.5, 3.2), draw)


def learning_rates_svg() -> str:
    """Draw three learning-rate schedules over 20,000 updates."""

    def draw(figure: Figure) -> None:
        # Every hundredth update is enough for a curve of this width.
        step = 100
        updates = range(step, figure_values.SCHEDULE_UPDATES + 1, step)
        curves = {}
        for d_model, warmup_updates in figure_values.SCHEDULES:
            rates = figure_values.learning_rates(d_model, warmup_updates)
            # The rate of the first update has the index 0.
            curves[f"{d_model}:{warmup_updates}"] = rates[step - 1 :: step]
        axes = figure.add_subplot()
        _draw_curves(axes, updates, curves)
        axes.set_xlabel("update")
        axes.set_ylabel("learning rate")
        axes.xaxis.set_major_formatter("{x:,.0f}")

    title = "Learning rates for d_model:warm-up of 512:4000, 512:8000 and 256:4000"
    return _svg("learning-rates", title, (7.5, 3.2), draw)


def smoothed_targets_svg() -> str:
    """Draw the target distribution of five labels under label smoothing of 0.4."""

    def draw(figure: Figure) -> None:
        targets = figure_values.smoothed_targets().tolist()
        axes = figure.add_subplot()
        _draw_cells(axes, targets, _formatted(targets, "{:.3f}"))
        axes.set_xticks(range(figure_values.SMOOTHING_VOCABULARY))
        axes.set_xlabel("word of the vocabulary (0 is padding)")
        label_names = [str(label) for label in figure_values.SMOOTHING_LABELS]
        axes.set_yticks(range(len(label_names)), label_names)
        axes.set_ylabel("label")

    title = "Target distribution for 5 words and a label smoothing of 0.4"
    return _svg("smoothed-targets", title, (4.8, 3.2), draw)


def confidence_loss_svg() -> str:
    """Draw the loss of a prediction that becomes more and more confident."""

    def draw(figure: Figure) -> None:
        ratios = figure_values.CONFIDENCE_RATIOS
        curves = {}
        for smoothing in (0.1, 0.0):
            losses = [figure_values.confidence_loss(ratio, smoothing) for ratio in ratios]
            curves[f"label smoothing {smoothing}"] = losses
        axes = figure.add_subplot()
        _draw_curves(axes, ratios, curves)
        axes.set_xlabel("probability of the label, as a multiple of each other word's")
        axes.set_ylabel("loss (nats)")

    title = "Loss of a confident prediction, with and without label smoothing"
    return _svg("confidence-loss", title, (7.5, 3.2), draw)


def untrained_predictions_svg() -> str:
    """Draw what ten untrained copy models predict for "1 2 ... 10"."""

    def draw(figure: Figure) -> None:
        source = [str(number) for number in range(1, figure_values.COPY_LENGTH + 1)]
        rows = [source]
        row_names = ["source"]
        for seed, prediction in enumerate(figure_values.untrained_predictions(), start=1):
            rows.append(prediction)
            row_names.append(f"seed {seed}")
        # Cells with the right token are filled.
        shares = []
        for row in rows:
            is_correct = np.array(row) == np.array(source)
            shares.append(is_correct.astype(float).tolist())
        axes = figure.add_subplot()
        _draw_cells(axes, shares, rows)
        axes.set_yticks(range(len(row_names)), row_names)
        axes.set_xticks(range(len(source)), source)
        axes.set_xlabel("output token")

    title = "Predictions of ten untrained copy models"
    return _svg("untrained-predictions", title, (6.0, 4.2), draw)


@dataclass(frozen=True)
class _Panel:
    """A matrix of the worked example, which is drawn as a table.

    Attributes:
        title: The title above the table.
        matrix: The numbers, a row for each input.
        number_format: How a number is written, such as `{:.4f}`.
        is_filled: Whether cells are filled as strongly as their number says, from 0 to 1.
    """

    title: str
    matrix: _Matrix
    number_format: str = "{:g}"
    is_filled: bool = False


def worked_attention_svg() -> str:
    """Draw self-attention of three inputs, from the inputs to the outputs."""

    def draw(figure: Figure) -> None:
        worked = figure_values.worked_attention()
        first_row = [
            _Panel("inputs", figure_values.WORKED_INPUTS),
            _Panel("queries", worked.queries.tolist()),
            _Panel("keys", worked.keys.tolist()),
            _Panel("values", worked.values.tolist()),
        ]
        second_row = [
            _Panel("scores: query times key", worked.scores.tolist()),
            _Panel(
                title="weights: softmax of scores",
                matrix=worked.weights.tolist(),
                number_format="{:.4f}",
                is_filled=True,
            ),
            _Panel(
                title="outputs: weights times values",
                matrix=worked.outputs.tolist(),
                number_format="{:.4f}",
            ),
        ]
        # 12 columns are divided among the four panels of one row and the three of the other.
        grid = figure.add_gridspec(2, 12)
        for row, panels in enumerate((first_row, second_row)):
            width = 12 // len(panels)
            for number, panel in enumerate(panels):
                left = number * width
                axes = figure.add_subplot(grid[row, left : left + width])
                _draw_panel(axes, panel)

    title = "Self-attention worked out for three inputs"
    return _svg("worked-attention", title, (7.5, 3.6), draw)


FIGURES: Mapping[str, Callable[[], str]] = {
    "subsequent-mask": mask_svg,
    "sinusoids": sinusoids_svg,
    "learning-rates": learning_rates_svg,
    "smoothed-targets": smoothed_targets_svg,
    "confidence-loss": confidence_loss_svg,
    "untrained-predictions": untrained_predictions_svg,
    "worked-attention": worked_attention_svg,
}


def _draw_panel(axes: Axes, panel: _Panel) -> None:
    """Draw a matrix of the worked example with its title; rows are counted from 1."""
    shares = panel.matrix
    if not panel.is_filled:
        shares = [[0.0] * len(panel.matrix[0])] * len(panel.matrix)
    _draw_cells(axes, shares, _formatted(panel.matrix, panel.number_format))
    axes.set_title(panel.title, fontsize=10)
    axes.set_xticks([])
    row_names = [str(row + 1) for row in range(len(panel.matrix))]
    axes.set_yticks(range(len(row_names)), row_names)


def _formatted(matrix: _Matrix, number_format: str) -> list[list[str]]:
    """Return the numbers of a matrix as text.

    Args:
        matrix: The numbers.
        number_format: How a number is written, such as `{:.3f}`.
    """
    rows = []
    for numbers in matrix:
        rows.append([number_format.format(number) for number in numbers])
    return rows


def _draw_curves(
    axes: Axes, positions: Sequence[int], curves: Mapping[str, Sequence[float]]
) -> None:
    """Draw a labeled line for each curve; neighbors differ in color and in dashes.

    Args:
        axes: Where to draw.
        positions: The x of each point, for all curves.
        curves: The y of each point, by the name of the curve.
    """
    # There may be fewer curves than colors.
    for curve, color, dashes in zip(curves.items(), _LINE_COLORS, _DASHES, strict=False):
        name, values = curve
        axes.plot(
            positions,
            values,
            label=name,
            color=color,
            linestyle=dashes,
        )
    axes.grid(visible=True)
    axes.legend()


def _draw_cells(axes: Axes, shares: _Matrix, labels: Sequence[Sequence[str]] | None) -> None:
    """Draw a matrix as cells, row 0 at the top.

    Args:
        axes: Where to draw; cell (row, column) is centered at x = column, y = row.
        shares: How strongly each cell is filled, from 0 to 1.
        labels: The text in each cell, on a fill that is half as strong, so that it can be read.
    """
    strength = 1.0 if labels is None else 0.5
    for row, row_shares in enumerate(shares):
        _fill_row(axes, row, row_shares, strength)
    row_edges = [row - 0.5 for row in range(len(shares) + 1)]
    column_edges = [column - 0.5 for column in range(len(shares[0]) + 1)]
    axes.hlines(row_edges, column_edges[0], column_edges[-1], color=_GRID, linewidth=0.6)
    axes.vlines(column_edges, row_edges[0], row_edges[-1], color=_GRID, linewidth=0.6)
    for row, texts in enumerate(labels or []):
        for column, text in enumerate(texts):
            axes.text(column, row, text, ha="center", va="center")
    axes.set_xlim(-0.5, len(shares[0]) - 0.5)
    # Matplotlib's y grows upward; with the limits in this order, row 0 is at the top.
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _fill_row(axes: Axes, row: int, shares: Sequence[float], strength: float) -> None:
    """Fill the cells of a row.

    Args:
        axes: Where to draw.
        row: The number of the row, which is the y of its center.
        shares: How strongly each cell is filled, from 0 to 1.
        strength: The opacity of a cell with a share of 1.
    """
    # Processors round the last digits of a share differently.
    rounded_shares = [round(share, 3) for share in shares]
    column = 0
    # Neighbors that are filled alike are one rectangle, which keeps the file small.
    for share, group in itertools.groupby(rounded_shares):
        width = len(list(group))
        if share > 0:
            rectangle = Rectangle(
                xy=(column - 0.5, row - 0.5),
                width=width,
                height=1,
                facecolor=_LINE_COLORS[0],
                alpha=strength * share,
                linewidth=0,
            )
            axes.add_patch(rectangle)
        column += width


def _svg(name: str, title: str, size_inches: _Size, draw: Callable[[Figure], None]) -> str:
    """Return a figure as an SVG file in the colors of the reader's theme.

    Args:
        name: The name of the figure in FIGURES.
        title: The title for screen readers.
        size_inches: The width and the height in inches.
        draw: A function that draws the content into matplotlib's figure.
    """
    style = dict(_STYLE)
    # Matplotlib derives ids from this salt, so that the same values give the same bytes.
    style["svg.hashsalt"] = hashlib.sha256(name.encode()).hexdigest()
    with matplotlib.rc_context(style):
        figure = Figure(figsize=size_inches)
        draw(figure)
        file = io.StringIO()
        # The date and the version of matplotlib would change the bytes.
        metadata = {"Date": None, "Creator": None, "Title": title}
        figure.savefig(file, format="svg", metadata=metadata)
    document = file.getvalue()
    # The XML declaration and the document type before the element are not needed.
    svg = document[document.index("<svg") :]
    svg = re.sub("<[^>]*>", lambda tag: _themed(tag[0]), svg)
    opening_tag, end, content = svg.partition(">")
    return f"{opening_tag}{end}\n <style>{_theme_css()}</style>{content}"


def _themed(tag: str) -> str:
    """Return a tag with its coordinates cut to two decimals and its colors as CSS variables."""
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    for color in _DARK_THEME:
        tag = tag.replace(color, f"var({_css_variable(color)})")
    return tag


def _theme_css() -> str:
    """Return the style sheet that gives the colors in both themes."""
    light_theme = []
    dark_theme = []
    for color, dark_color in _DARK_THEME.items():
        variable = _css_variable(color)
        light_theme.append(f"{variable}:{color}")
        dark_theme.append(f"{variable}:{dark_color}")
    light = ";".join(light_theme)
    dark = ";".join(dark_theme)
    return f"svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}"


def _css_variable(color: str) -> str:
    """Return the CSS variable for a color of the light theme: `--c0072b2` for `#0072b2`."""
    return f"--c{color[1:]}"


def main() -> None:
    """Write all figures to docs/images/."""
    for name, figure_svg in FIGURES.items():
        (IMAGES / f"{name}.svg").write_text(figure_svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
