"""Charts as SVG: drawn by matplotlib, inside the page, the same bytes for the same numbers."""

import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# After Okabe and Ito (2008), distinct with any color vision: without yellow, and with orange and
# sky blue darker, for a contrast of at least 3:1 on white.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a66f00", "#3a93c8", "#000000")
# What the page's style sheet says of each color, which depends on the reader's theme.
_THEMED = {
    **{color: f"var(--c{number})" for number, color in enumerate(_COLORS)},
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--line)",
    "#cccccc": "var(--line)",  # frames of legends
}
# matplotlib's line styles, as SVG's stroke-dasharray.
_DASHES = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 3 2 3"}

_INCHES = (4.6, 2.9)
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    # every point: charts.js reads the values from them
    "path.simplify": False,
    # text stays text: it can be searched, copied and read aloud
    "svg.fonttype": "none",
}


def line_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A line for each name: neighbors differ in color and in dashes, for print in gray."""
    styles = zip(names, cycle(_COLORS), cycle(_DASHES), strict=False)
    return {name: {"color": color, "linestyle": dash} for name, color, dash in styles}


def legend(systems: Sequence[str]) -> list[dict[str, str]]:
    """Name, color and SVG dashes of each system's line, for legend.html.j2."""
    return [
        {"name": name, "color": _THEMED[style["color"]], "dashes": _DASHES[style["linestyle"]]}
        for name, style in line_styles(systems).items()
    ]


def line_id(system: int, part: Literal["line", "band"] = "line") -> str:
    """The gid of a system's line in a chart, or of the band around it: scripts find it by this."""
    return f"of-{system}.{part}"


def chart(
    name: str,
    title: str,
    draw: Callable[["Axes"], None],
    inches: tuple[float, float] = _INCHES,
) -> Markup:
    """What `draw` draws; `name` is the prefix of its ids, `title` its aria-label.

    A chart with lines of line_id tells charts.js its axes: their limits, whether y is logarithmic,
    and the edges of their box in the units of the drawing.
    """
    import matplotlib
    from matplotlib.figure import Figure

    salt = hashlib.sha256(name.encode()).hexdigest()
    style: Any = {**_STYLE, "svg.hashsalt": salt}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=inches)
        axes = figure.add_subplot()
        for side, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            axis.set_gid(f"{side}-axis")
        draw(axes)
        file = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", metadata=metadata, transparent=True)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    # ids are unique in the whole page
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub("<[^>]*>", _slim, text)
    # without width and height it is as wide as its figure
    view = re.search(r'viewBox="[^"]*"', text)
    assert view
    _, _, rest = text.partition(">")
    limits = f" data-axes='{_limits(axes)}'" if any(line.get_gid() for line in axes.lines) else ""
    return Markup(f'<svg {view[0]}{limits} role="img" aria-label="{escape(title)}">{rest}')


def _slim(tag: re.Match[str]) -> str:
    """A tag with two decimals, a hundredth of a point, and with the style sheet's colors."""
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])
    return re.sub("#[0-9a-f]{6}", lambda color: _THEMED.get(color[0], color[0]), text)


def _limits(axes: "Axes") -> str:
    width, height = (72 * inches for inches in _INCHES)
    box = axes.get_position()
    edges = box.x0 * width, (1 - box.y1) * height, box.x1 * width, (1 - box.y0) * height
    return json.dumps(
        {
            "x": axes.get_xlim(),
            "y": axes.get_ylim(),
            "log": axes.get_yscale() == "log",
            "box": [round(float(edge), 2) for edge in edges],
        }
    )
