"""The legend of charts that have a line for each system; with scripts also their switches."""

from collections.abc import Sequence

from bleuprint.report.page.chart import line_styles
from bleuprint.report.page.html import escape

_DASHES = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 3 2 3"}


def legend(systems: Sequence[str]) -> str:
    """Which line is whose. A box hides or shows a system's lines in all charts of the page."""
    styles = line_styles(list(systems))
    items = [
        f'<li><label><input type="checkbox" checked data-system="{number}">'
        '<svg viewBox="0 0 28 8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" '
        f'stroke="{styles[name]["color"]}" stroke-width="2.5" '
        f'stroke-dasharray="{_DASHES[styles[name]["linestyle"]]}"/></svg>'
        f"{escape(name)}</label></li>\n"
        for number, name in enumerate(systems)
    ]
    return f'<ul class="legend">\n{"".join(items)}</ul>\n'


def line_id(system: int, seed: int) -> str:
    """The gid of a system's line in a chart: page.js finds it by this."""
    return f"of-{system}.{seed}"
