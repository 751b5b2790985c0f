"""Charts as SVG: drawn by matplotlib, inside the page, the same bytes for the same numbers."""

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

from bleuprint.report.page.html import escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# After Okabe and Ito (2008), told apart with any colour vision: without yellow, and with orange and
# sky blue darker, for 3:1 on white at least.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#A66F00", "#3A93C8", "#000000")
_DASHES = ("-", "--", ":", "-.")

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
    # text stays text: it can be searched, copied and read aloud
    "svg.fonttype": "none",
}


def line_styles(names: list[str]) -> dict[str, dict[str, Any]]:
    """A line for each name: neighbours differ in colour and in dashes, for print in grey."""
    styles = zip(cycle(_COLOURS), cycle(_DASHES), strict=False)
    return {
        name: {"color": colour, "linestyle": dash}
        for name, (colour, dash) in zip(names, styles, strict=False)
    }


class Chart:
    """A figure to draw on with `axes`; `svg` is what becomes of it."""

    def __init__(self, figure: "Figure", axes: "Axes", name: str) -> None:
        self.axes = axes
        self._figure, self._name, self._text = figure, name, ""

    def svg(self) -> str:
        """The drawing, when the block that `chart` opens has ended."""
        assert self._text
        return self._text

    def _render(self, title: str) -> None:
        file = io.StringIO()
        self._figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        text = file.getvalue()
        text = text[text.index("<svg") :]
        # ids are of the whole page
        text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{self._name}-", text)
        # as wide as the page lets it be
        text = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r"<svg \1 TITLE>", text, count=1)
        self._text = text.replace("TITLE", f'role="img" aria-label="{escape(title)}"', 1)


@contextmanager
def chart(name: str, title: str, width: float = 6.4, height: float = 3.6) -> Iterator[Chart]:
    """A chart of so many inches; `name` begins its ids, `title` is read aloud for it."""
    import matplotlib
    from matplotlib.figure import Figure

    salt = hashlib.sha256(name.encode()).hexdigest()
    style: Any = {**_STYLE, "svg.hashsalt": salt}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width, height))
        drawn = Chart(figure, figure.add_subplot(), name)
        yield drawn
        drawn._render(title)
