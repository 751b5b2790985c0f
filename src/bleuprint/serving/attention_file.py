"""The attention maps of translated sentences in one file, HTML or PNG."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bleuprint.decoding.attention import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.serving.attention_html import attention_environment, printable

# The most cells of a page that a browser opens without trouble, and of a picture.
_PAGE_CELLS, _PICTURE_CELLS = 1_000_000, 30_000
# Inches per token of a picture, and pixels per inch.
_CELL, _DPI = 0.24, 120


# The attention of tokens that are translated at once: a map of each kind of attention.KINDS.
Maps = Mapping[str, AttentionMap]
_TITLES = {
    "cross": "decoder to source",
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
}


class _Sentence(NamedTuple):
    source: str
    translation: str
    pieces: Sequence[Maps]


class AttentionFile:
    """Collects maps and writes them; the file's suffix is .html or .png."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        """`languages` are those of the source and of the translation."""
        self._path, self._languages = path, languages
        self._picture = path.suffix == ".png"
        self._sentences: list[_Sentence] = []
        self._cells = 0

    def add(self, place: str, source: str, translation: str, pieces: Sequence[Maps]) -> None:
        """Add a sentence; raises UserError, with its `place`, if the file has no room for it."""
        if self._picture and self._sentences:
            holds = "one sentence; an .html file holds more"
            raise UserError(f"{place}: {self._path} holds the attention of {holds}")
        most = _PICTURE_CELLS if self._picture else _PAGE_CELLS
        for each in chain.from_iterable(maps.values() for maps in pieces):
            layers, heads, rows, columns = each.weights.shape
            tables = heads if self._picture else layers * (heads + 1) + 1
            self._cells += tables * rows * columns
        if self._cells > most:
            raise UserError(f"{place}: {self._path} has no room for more than {most:,} cells")
        self._sentences.append(_Sentence(source, translation, pieces))

    def write(self) -> None:
        """Write the file, whole or not at all; raises UserError if a picture would be empty.

        A page has of each map the last layer's mean, and each layer and head folded away.
        """
        if self._picture:
            pieces = [maps for sentence in self._sentences for maps in sentence.pieces]
            if not pieces:
                raise UserError(f"{self._path}: no sentence to draw the attention of")
            with whole_file(self._path) as partial:
                write_png(pieces, partial)
            return
        template = attention_environment().get_template("attention_file.html.j2")
        source, target = self._languages
        languages = {
            "cross": (source, target),
            "encoder": (source, source),
            "decoder": (target, target),
        }
        stream = template.stream(languages=languages, titles=_TITLES, sentences=self._sentences)
        with whole_file(self._path) as partial:
            stream.dump(str(partial), encoding="utf-8")


def write_png(pieces: Sequence[Maps], path: Path) -> None:
    """The heads of the last layer as a PNG file: a row for each kind of each piece.

    A character is drawn in the first font of this machine that has it, else as a box.
    """
    # matplotlib logs the fonts it looks for to stderr
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    rows = [(_TITLES[kind], each) for maps in pieces for kind, each in maps.items()]
    heads = rows[0][1].weights.shape[1]
    heights = [len(each.rows) for _, each in rows]
    width = max(len(each.columns) for _, each in rows)
    size = _CELL * width * heads + 3.5, _CELL * sum(heights) + 2.0 * len(rows)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    axes = figure.subplots(len(rows), heads, squeeze=False, height_ratios=heights)
    # Last Resort draws a sign for the script of any character
    fonts = sorted(fontManager.get_font_names(), key=lambda name: "Last Resort" in name)
    # parse_math: a dollar sign begins no formula
    style = {"fontfamily": ["DejaVu Sans", *fonts], "fontsize": 9, "parse_math": False}
    for (title, each), line in zip(rows, axes, strict=True):
        columns, beside = (list(map(printable, side)) for side in (each.columns, each.rows))
        for head, (plot, weights) in enumerate(zip(line, each.weights[-1], strict=True), 1):
            image = plot.imshow(weights, cmap="Blues", vmin=0, vmax=1)
            plot.set_xticks(range(len(columns)), columns, rotation=90, **style)
            plot.set_yticks(range(len(beside)), beside if head == 1 else [], **style)
            plot.xaxis.tick_top()
            plot.set_xlabel(f"head {head}")
        line[0].set_ylabel(f"{title},\nlayer {len(each.weights)}")
    figure.colorbar(image, ax=axes, label="attention weight", aspect=30)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(path, format="png")
