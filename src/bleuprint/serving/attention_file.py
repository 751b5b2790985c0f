"""The attention maps of translated sentences in one file, HTML or PNG."""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bleuprint.decoding.attention import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.serving.attention_html import attention_environment, printable

# The most cells of a page that a browser opens without trouble, and of a picture.
_PAGE_CELLS, _PICTURE_CELLS = 1_000_000, 150 * 150
# Inches per token of a picture, and pixels per inch.
_CELL, _DPI = 0.28, 150


class _Sentence(NamedTuple):
    source: str
    translation: str
    maps: list[AttentionMap]


class AttentionFile:
    """Collects maps and writes them; the file's suffix is .html or .png."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        """`languages` are those of the source and of the translation."""
        self._path, self._languages = path, languages
        self._picture = path.suffix == ".png"
        self._sentences: list[_Sentence] = []
        self._cells = 0

    def add(self, place: str, source: str, translation: str, maps: list[AttentionMap]) -> None:
        """Add a sentence; raises UserError, with its `place`, if the file has no room for it."""
        if self._picture and self._sentences:
            holds = "one sentence; an .html file holds more"
            raise UserError(f"{place}: {self._path} holds the attention of {holds}")
        most = _PICTURE_CELLS if self._picture else _PAGE_CELLS
        for each in maps:
            layers, heads, rows, columns = each.weights.shape
            tables = 1 if self._picture else layers * (heads + 1) + 1
            self._cells += tables * rows * columns
        if self._cells > most:
            raise UserError(f"{place}: {self._path} has no room for more than {most:,} cells")
        self._sentences.append(_Sentence(source, translation, maps))

    def write(self) -> None:
        """Write the file, whole or not at all; raises UserError if a picture would be empty.

        A page has of each map the last layer's mean, and each layer and head folded away.
        """
        if self._picture:
            maps = [each for sentence in self._sentences for each in sentence.maps]
            if not maps:
                raise UserError(f"{self._path}: no sentence to draw the attention of")
            with whole_file(self._path) as partial:
                write_png(maps, partial)
            return
        template = attention_environment().get_template("attention_file.html.j2")
        stream = template.stream(languages=self._languages, sentences=self._sentences)
        with whole_file(self._path) as partial:
            stream.dump(str(partial), encoding="utf-8")


def write_png(maps: Sequence[AttentionMap], path: Path) -> None:
    """The means over heads of the last layer, one map below the other, as a PNG file.

    A character is drawn in the first font of this machine that has it, else as a box.
    """
    # matplotlib logs the fonts it looks for to stderr
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    heights = [len(each.rows) for each in maps]
    width = max(len(each.columns) for each in maps)
    size = _CELL * width + 3.5, _CELL * sum(heights) + 2.0 * len(maps)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    axes = figure.subplots(len(maps), 1, squeeze=False, height_ratios=heights)[:, 0]
    # Last Resort draws a sign for the script of any character
    fonts = sorted(fontManager.get_font_names(), key=lambda name: "Last Resort" in name)
    # parse_math: a dollar sign begins no formula
    style = {"fontfamily": ["DejaVu Sans", *fonts], "fontsize": 9, "parse_math": False}
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
