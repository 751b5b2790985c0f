"""Maps of attention as people look at them: tables of HTML, and pictures."""

import logging
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from bleuprint.decoding.attention import AttentionMap, Weights

# The darkest shade of a page's cells, from white: black figures can be read on all of them.
_DARK = (74, 150, 205)
# Inches a unit of a picture, and pixels an inch.
_CELL, _DPI = 0.28, 150


def cells(attention: AttentionMap) -> int:
    """How many cells `html` writes for a map."""
    layers, heads, rows, columns = map(int, attention.weights.shape)
    return (layers * (heads + 1) + 1) * rows * columns


def html_head(title: str) -> str:
    """What a page of maps begins with."""
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; margin: 1.5rem }}
section {{ border-top: 1px solid #bbb; margin-top: 1.5rem }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.1rem }}
.wide {{ overflow-x: auto }}
.side {{ display: flex; flex-wrap: wrap; column-gap: 2rem }}
table {{ border-collapse: collapse; margin: .75rem 0; font-size: .8rem }}
caption {{ text-align: left; font-weight: 600 }}
th {{ font-weight: 400; padding: .1rem .35rem; white-space: nowrap }}
tr > th {{ text-align: end }}
thead th {{ writing-mode: vertical-rl; text-align: end; padding: .35rem .1rem }}
td {{ min-width: 1.7em; text-align: center; border: 1px solid #ddd }}
td:empty {{ border: 0 }}
td {{ -webkit-print-color-adjust: exact; print-color-adjust: exact }}
summary {{ cursor: pointer }}
{shades()}
</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>A row is a unit of the translation, a column a unit of the source; <code>&lt;/s&gt;</code> is
an end. A cell holds how much of the decoder's attention went to the column's unit while it wrote
the row's, in per cent of the row.</p>
"""


HTML_TAIL = "</body>\n</html>\n"


def html(attention: AttentionMap, languages: tuple[str, str]) -> Iterator[str]:
    """Tables of a map in pieces of HTML: the last layer's mean, and folded away all the others.

    `languages` are those of the source and of the translation.
    """
    layers, heads, _, _ = attention.weights.shape
    means = attention.means
    yield from last_layer(attention, languages)
    yield "<details><summary>Each layer and head</summary>\n"
    for layer in range(layers):
        yield f'<details><summary>Layer {layer + 1}</summary><div class="side">\n'
        yield from _table(attention, means[layer], f"Mean of {heads} heads", languages)
        for head in range(heads):
            weights = attention.weights[layer, head]
            yield from _table(attention, weights, f"Head {head + 1}", languages)
        yield "</div></details>\n"
    yield "</details>\n"


def last_layer(attention: AttentionMap, languages: tuple[str, str]) -> Iterator[str]:
    """The table that says most of a map: the last layer's mean over heads."""
    layers, heads, _, _ = attention.weights.shape
    caption = f"Layer {layers}, mean of {heads} heads"
    yield from _table(attention, attention.means[-1], caption, languages)


def shades() -> str:
    """The styles .s1 to .s100 of a table's cells, one for each per cent."""
    return "".join(f".s{step}{{background:rgb{_shade(step)}}}" for step in range(1, 101))


def _table(
    attention: AttentionMap, weights: Weights, caption: str, languages: tuple[str, str]
) -> Iterator[str]:
    """`weights` (rows, columns) as a table in a box of its own, which scrolls."""
    source, target = map(escape, languages)
    yield f'<div class="wide"><table><caption>{caption}</caption>\n<thead><tr><td></td>'
    for unit in attention.columns:
        yield f'<th scope="col" lang="{source}"><bdi>{escape(shown(unit))}</bdi></th>'
    yield "</tr></thead>\n<tbody>\n"
    for unit, row in zip(attention.rows, weights.tolist(), strict=True):
        yield f'<tr><th scope="row" lang="{target}"><bdi>{escape(shown(unit))}</bdi></th>'
        for weight in row:
            step = round(100 * weight)
            yield f'<td class="s{step}" title="{weight:.4f}">{step}</td>'
        yield "</tr>\n"
    yield "</tbody></table></div>\n"


def _shade(step: int) -> tuple[int, ...]:
    """The colour of so many per cent: red, green, blue."""
    return tuple(round(255 - (255 - dark) * step / 100) for dark in _DARK)


def shown(unit: str) -> str:
    """A unit that stands alone: a combining character gets a circle to stand on."""
    text = "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in unit)
    return f"◌{text}" if unicodedata.category(text[0]).startswith("M") else text


def write_png(maps: Sequence[AttentionMap], path: Path) -> None:
    """The means over heads of the last layer, one map below the other, as a PNG file.

    Characters that no font of this machine has are drawn as boxes.
    """
    # else it tells of fonts and of its cache on stderr
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    heights = [len(each.rows) for each in maps]
    width = max(len(each.columns) for each in maps)
    size = _CELL * width + 3.5, _CELL * sum(heights) + 2.0 * len(maps)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    axes = figure.subplots(len(maps), 1, squeeze=False, height_ratios=heights)[:, 0]
    fonts = _Fonts(shown(unit) for each in maps for unit in (*each.rows, *each.columns))
    for plot, each in zip(axes, maps, strict=True):
        image = plot.imshow(each.means[-1], cmap="Blues", vmin=0, vmax=1)
        # a dollar sign is one, and no formula
        style = {"fontfamily": fonts.families, "fontsize": 9, "parse_math": False}
        above, beside = (list(map(fonts.drawable, side)) for side in (each.columns, each.rows))
        plot.set_xticks(range(len(above)), above, rotation=90, **style)
        plot.set_yticks(range(len(beside)), beside, **style)
        plot.xaxis.tick_top()
        plot.set_xlabel("source")
        plot.xaxis.set_label_position("top")
        plot.set_ylabel("translation")
    layers, heads, _, _ = maps[0].weights.shape
    label = f"attention: layer {layers}, mean of {heads} heads"
    figure.colorbar(image, ax=list(axes), label=label, aspect=30)
    figure.savefig(path, format="png")


class _Fonts:
    """The fonts to draw some texts in: matplotlib's own, and the machine's for what that lacks."""

    def __init__(self, texts: Iterable[str]) -> None:
        from matplotlib.font_manager import FontProperties, findfont, fontManager

        self.families = ["DejaVu Sans"]
        first = findfont(FontProperties(family=self.families))
        lacking = set(map(ord, "".join(texts))) - _characters(first, 0)
        # the one that has a sign for each script, and for no character, comes last
        fonts = sorted(fontManager.ttflist, key=lambda font: font.name.startswith("Last Resort"))
        for font in fonts if lacking else ():
            # else another one of the family is drawn with than the one that was looked at
            plain = font.style == "normal" and font.weight in (400, "normal", "regular")
            there = lacking & _characters(font.fname, font.index) if plain else set()
            if there:
                self.families.append(font.name)
                lacking -= there
        self._lacking = lacking

    def drawable(self, unit: str) -> str:
        """A unit as it can be drawn."""
        return "".join("□" if ord(c) in self._lacking else c for c in shown(unit))


def _characters(font: str, face: int) -> set[int]:
    """The code points that a font file has; none if it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return set(FT2Font(font, face_index=face).get_charmap())
    except (OSError, RuntimeError):
        return set()
