"""Charts as SVG: drawn by matplotlib, inside the page, the same bytes for the same numbers."""

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# After Okabe and Ito (2008), distinct with any color vision: without yellow, and with orange and
# sky blue darker, for a contrast of at least 3:1 on white.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a66f00", "#3a93c8", "#000000")
# What the page's style sheet says of each color, which depends on the reader's theme.
_THEMED = {
    **{color: f"var(--c{number})" for number, color in enumerate(_COLORS)},
    **{"#000000": "var(--ink)", "#ffffff": "var(--paper)", "#dddddd": "var(--line)"},
}
# matplotlib's line styles, as SVG's stroke-dasharray.
_DASHES = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 3 2 3"}
_STYLE: dict[str, Any] = {
    **{"font.family": "sans-serif", "font.size": 10, "lines.linewidth": 1.6},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True},
    **{"grid.color": "#dddddd", "grid.linewidth": 0.6},
    # room for labels of any length; to compute it would take as long as to draw
    **{"figure.subplot.left": 0.18, "figure.subplot.right": 0.95},
    **{"figure.subplot.bottom": 0.24, "figure.subplot.top": 0.95},
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


def chart(name: str, title: str, draw: Callable[["Axes"], None]) -> Markup:
    """What `draw` draws; `name` is the prefix of its ids, `title` its aria-label."""
    import matplotlib
    from matplotlib.figure import Figure

    salt = hashlib.sha256(name.encode()).hexdigest()
    style: Any = {**_STYLE, "svg.hashsalt": salt}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(4.6, 2.3))
        draw(figure.add_subplot())
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
    return Markup(f'<svg {view[0]} role="img" aria-label="{escape(title)}">{rest}')


def _slim(tag: re.Match[str]) -> str:
    """A tag with two decimals, a hundredth of a point, and with the style sheet's colors."""
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])
    return re.sub("#[0-9a-f]{6}", lambda color: _THEMED.get(color[0], color[0]), text)
