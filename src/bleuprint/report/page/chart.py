"""Charts as SVG, drawn by matplotlib: the same bytes for the same numbers, ready for the page."""

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colors of Okabe and Ito (2008), which people with any color vision can tell apart. Yellow is
# left out, and orange and sky blue are darker, for a contrast of at least 3:1 on white.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a66f00", "#3a93c8", "#000000")
# The variables of the style sheet that replace the colors, so that they follow the reader's theme.
_THEME_COLORS = {color: f"var(--c{number})" for number, color in enumerate(_COLORS)}
_THEME_COLORS["#000000"] = "var(--ink)"
_THEME_COLORS["#ffffff"] = "var(--paper)"
_THEME_COLORS["#dddddd"] = "var(--line)"
# matplotlib's line styles, as values of SVG's stroke-dasharray.
_DASHES = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 3 2 3"}
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "lines.linewidth": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    # Fixed margins with room for any label: computing them takes as long as drawing the chart.
    "figure.subplot.left": 0.18,
    "figure.subplot.right": 0.95,
    "figure.subplot.bottom": 0.24,
    "figure.subplot.top": 0.95,
    # Text stays text, so that it can be searched, copied and read aloud.
    "svg.fonttype": "none",
}
_WIDTH_INCHES = 4.6
_HEIGHT_INCHES = 2.3


def line_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return matplotlib's color and line style for each name.

    Adjacent names differ in both, so that their lines can be told apart in gray, too.

    Args:
        names: The names of the lines.
    """
    styles = {}
    for name, color, dashes in zip(names, cycle(_COLORS), cycle(_DASHES), strict=False):
        styles[name] = {"color": color, "linestyle": dashes}
    return styles


def legend(systems: Sequence[str]) -> list[dict[str, str]]:
    """Return the name, color and dashes of each system's line, for legend.html.j2.

    Args:
        systems: The names of the systems.
    """
    entries = []
    for name, style in line_styles(systems).items():
        color = _THEME_COLORS[style["color"]]
        dashes = _DASHES[style["linestyle"]]
        entries.append({"name": name, "color": color, "dashes": dashes})
    return entries


def chart(name: str, title: str, draw: Callable[["Axes"], None]) -> Markup:
    """Return a chart as an SVG element.

    Args:
        name: The prefix of all ids in the SVG, so that they are unique in the page.
        title: The description for screen readers (aria-label).
        draw: Draws the content into the axes.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = dict(_STYLE)
    # Without a salt, matplotlib derives ids from random numbers.
    style["svg.hashsalt"] = hashlib.sha256(name.encode()).hexdigest()
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES))
        draw(figure.add_subplot())
        file = io.StringIO()
        no_metadata = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", metadata=no_metadata, transparent=True)
    text = file.getvalue()
    svg = text[text.index("<svg") :]  # Before it stand the XML declaration and the document type.
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub("<[^>]*>", _slim_tag, svg)
    # The tag <svg> is replaced: without a width and a height, the chart is as wide as its figure.
    view_box = re.search(r'viewBox="[^"]*"', svg)
    assert view_box
    _, _, content = svg.partition(">")
    return Markup(f'<svg {view_box[0]} role="img" aria-label="{escape(title)}">{content}')


def _slim_tag(tag: re.Match[str]) -> str:
    """Return a tag with two decimals, a hundredth of a point, and the colors of the style sheet."""
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])
    return re.sub("#[0-9a-f]{6}", _theme_color, text)


def _theme_color(color: re.Match[str]) -> str:
    """Return the variable of the style sheet for a color, or the color itself."""
    return _THEME_COLORS.get(color[0], color[0])
