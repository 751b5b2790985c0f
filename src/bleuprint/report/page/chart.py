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
    """Choose a color and a line style for the line of each system, in matplotlib's terms.

    Neighboring lines differ in both, so that they can be told apart in gray, too.

    Args:
        names: The names of the systems.

    Returns:
        Matplotlib's arguments for each line, such as `{"color": "#0072b2", "linestyle": "--"}`.
    """
    styles = {}
    # `cycle` repeats colors and dashes without end, so the loop ends with the names.
    for name, color, dashes in zip(names, cycle(_COLORS), cycle(_DASHES), strict=False):
        styles[name] = {"color": color, "linestyle": dashes}
    return styles


def legend(systems: Sequence[str]) -> list[dict[str, str]]:
    """Return the entries of the legend below the charts: name, color and dashes of each system.

    The template legend.html.j2 shows them once for all charts. It is HTML, so matplotlib's colors
    and line styles are translated to CSS and SVG.

    Args:
        systems: The names of the systems.
    """
    entries = []
    for name, style in line_styles(systems).items():
        css_color = _THEME_COLORS[style["color"]]
        svg_dashes = _DASHES[style["linestyle"]]
        entries.append({"name": name, "color": css_color, "dashes": svg_dashes})
    return entries


def chart(name: str, title: str, draw: Callable[["Axes"], None]) -> Markup:
    """Draw a chart with matplotlib and return it as an SVG element for the HTML report.

    The same numbers always give the same bytes, so that two reports can be compared.

    Args:
        name: The name of the chart. It becomes the prefix of all ids in the SVG, since a page must
            not contain an id twice.
        title: The description for screen readers (aria-label).
        draw: A function that draws the content into matplotlib's axes.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = dict(_STYLE)
    # Matplotlib derives ids from this salt. Without one, it uses random numbers.
    style["svg.hashsalt"] = hashlib.sha256(name.encode()).hexdigest()
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES))
        draw(figure.add_subplot())
        file = io.StringIO()
        no_metadata = {"Date": None, "Creator": None}  # The date would change the bytes.
        figure.savefig(file, format="svg", metadata=no_metadata, transparent=True)
    return _embed_svg(file.getvalue(), name, title)


def _embed_svg(document: str, name: str, title: str) -> Markup:
    """Turn an SVG file of matplotlib into an element that can be part of the HTML page.

    Ids get the chart's name as a prefix, numbers are shortened, colors follow the reader's theme,
    and the chart is as wide as the space for it.

    Args:
        document: The text of the SVG file.
        name: The prefix of all ids.
        title: The description for screen readers (aria-label).
    """
    # The file begins with an XML declaration and a document type, which HTML does not allow.
    svg = document[document.index("<svg") :]
    # The prefix is added to ids, id="…", and to both kinds of references: href="#…" and url(#…).
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub("<[^>]*>", _simplify_tag, svg)
    # The tag <svg> is replaced by one without a width and a height: then the browser fits the chart
    # into the space that it has.
    view_box = re.search(r'viewBox="[^"]*"', svg)
    assert view_box
    _, _, content = svg.partition(">")
    return Markup(f'<svg {view_box[0]} role="img" aria-label="{escape(title)}">{content}')


def _simplify_tag(tag: re.Match[str]) -> str:
    """Return an SVG tag with shorter numbers, and with colors that follow the reader's theme.

    Two decimals are enough: a hundredth of a point is too small to be seen.

    Args:
        tag: The match of the whole tag, such as `<path d="M 10.123456 20.5"/>`.
    """
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])
    return re.sub("#[0-9a-f]{6}", _theme_color, text)


def _theme_color(color: re.Match[str]) -> str:
    """Return the variable of the style sheet for a color, such as `var(--paper)` for `#ffffff`.

    The style sheet gives the variable another value in the dark theme. A color without a variable
    is returned as it is.
    """
    hex_color = color[0]
    return _THEME_COLORS.get(hex_color, hex_color)
