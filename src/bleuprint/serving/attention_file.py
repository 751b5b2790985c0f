"""The attention maps of several sentences, in one file for people to look at."""

from collections.abc import Callable
from html import escape
from pathlib import Path

from bleuprint.decoding.attention import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.serving.attention_html import HTML_TAIL, cells, html, html_head, write_png

# What a browser opens without trouble: sentences of a page, and cells of its tables.
SENTENCES, _CELLS = 100, 1_000_000
# Units that a picture has room for, down and across.
_UNITS = 150


class Album:
    """Collects maps; the end of the file's name, .html or .png, says what becomes of them."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        """`languages` are those of the source and of the translation."""
        self._path, self._languages = path, languages
        self._picture = path.suffix == ".png"
        self._sentences = self._cells = 0
        self._maps: list[AttentionMap] = []
        self._html: list[str] = []

    def add(
        self, place: str, source: str, text: str, maps: Callable[[], list[AttentionMap]]
    ) -> None:
        """Take in a sentence and its translation; `maps` is asked for only if there is room.

        Raises UserError, which names the `place` (file and line), if there is none.
        """
        most = 1 if self._picture else SENTENCES
        if self._sentences == most:
            instead = "; an .html file holds more" if self._picture else ""
            what = "one sentence" if most == 1 else f"{most} sentences"
            raise UserError(f"{place}: {self._path} holds the attention of {what}{instead}")
        self._sentences += 1
        found = maps()
        if self._picture:
            self._add_picture(place, found)
        else:
            self._add_section(place, source, text, found)

    def write(self) -> None:
        """Write the file, whole or not at all; raises UserError if a picture would be empty."""
        if self._picture and not self._maps:
            raise UserError(f"{self._path}: no sentence to picture the attention of")
        with whole_file(self._path) as partial:
            if self._picture:
                write_png(self._maps, partial)
            else:
                page = "".join((html_head("Attention of translations"), *self._html, HTML_TAIL))
                partial.write_bytes(page.encode())

    def _add_picture(self, place: str, maps: list[AttentionMap]) -> None:
        rows = sum(len(each.rows) for each in maps)
        columns = max((len(each.columns) for each in maps), default=0)
        if max(rows, columns) > _UNITS:
            size = f"{rows} units of translation, {columns} of source"
            raise UserError(f"{place}: a .png has room for {_UNITS} units, not for {size}")
        self._maps = maps

    def _add_section(self, place: str, source: str, text: str, maps: list[AttentionMap]) -> None:
        self._cells += sum(map(cells, maps))
        if self._cells > _CELLS:
            raise UserError(f"{place}: {self._path} has no room for more than {_CELLS:,} cells")
        languages = map(escape, self._languages)
        self._html.append(f"<section>\n<h2>Sentence {self._sentences}</h2>\n")
        for language, line in zip(languages, (source, text), strict=True):
            self._html.append(f'<p dir="auto" lang="{language}">{escape(line)}</p>\n')
        for number, each in enumerate(maps, 1):
            if len(maps) > 1:
                self._html.append(f"<h3>Piece {number} of {len(maps)}</h3>\n")
            self._html += html(each, self._languages)
        if not maps:
            self._html.append("<p>An empty line: nothing was read.</p>\n")
        self._html.append("</section>\n")
