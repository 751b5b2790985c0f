"""Attention maps as a picture, drawn by matplotlib."""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

from bleuprint.decoding.attention import AttentionMap
from bleuprint.serving.attention_html import printable

# Inches per token, and pixels per inch.
_CELL, _DPI = 0.28, 150


def write_png(maps: Sequence[AttentionMap], path: Path) -> None:
    """The means over heads of the last layer, one map below the other, as a PNG file.

    A character is drawn in the first font of this machine that has it, else as a box.
    """
    # matplotlib logs the fonts it looks for to stderr
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    heights = [len(each.rows) for each in maps]
    width = max(len(each.columns) for each in maps)
    size = _CELL * width + 3.5, _CELL * sum(heights) + 2.0 * len(maps)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    axes = figure.subplots(len(maps), 1, squeeze=False, height_ratios=heights)[:, 0]
    # parse_math: a dollar sign begins no formula
    style = {"fontfamily": _font_families(), "fontsize": 9, "parse_math": False}
    for plot, each in zip(axes, maps, strict=True):
        image = plot.imshow(each.means[-1], cmap="Blues", vmin=0, vmax=1)
        columns, rows = (list(map(printable, side)) for side in (each.columns, each.rows))
        plot.set_xticks(range(len(columns)), columns, rotation=90, **style)
        plot.set_yticks(range(len(rows)), rows, **style)
        plot.xaxis.tick_top()
        plot.xaxis.set_label_position("top")
        plot.set(xlabel="source", ylabel="translation")
    layers, heads, _, _ = maps[0].weights.shape
    label = f"attention: layer {layers}, mean of {heads} heads"
    figure.colorbar(image, ax=list(axes), label=label, aspect=30)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(path, format="png")


def _font_families() -> list[str]:
    """The upright fonts of this machine; the one that draws a sign for each script is last."""
    from matplotlib.font_manager import fontManager

    names = {
        font.name
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight in (400, "normal", "regular")
    }
    others = sorted(names, key=lambda name: (name.startswith("Last Resort"), name))
    return ["DejaVu Sans", *(name for name in others if name != "DejaVu Sans")]
