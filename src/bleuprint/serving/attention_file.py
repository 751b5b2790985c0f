"""The attention maps of translated sentences in one file, HTML or PNG."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bleuprint.decoding.attention import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.serving.attention_html import attention_environment
from bleuprint.serving.attention_png import write_png

# What a browser opens without trouble: sentences of a page, and cells of its tables.
SENTENCES, _CELLS = 100, 1_000_000
# Tokens that a picture has room for, down and across.
_TOKENS = 150


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

    def add(
        self, place: str, source: str, translation: str, maps: Callable[[], list[AttentionMap]]
    ) -> None:
        """Add a sentence; `maps` is called only if the file has room for it.

        Raises UserError, which names the `place` (file and line), if it has none.
        """
        if self._picture and self._sentences:
            holds = "one sentence; an .html file holds more"
            raise UserError(f"{place}: {self._path} holds the attention of {holds}")
        if len(self._sentences) == SENTENCES:
            raise UserError(f"{place}: {self._path} holds the attention of {SENTENCES} sentences")
        sentence = _Sentence(source, translation, maps())
        self._cells += sum(map(html_cells, sentence.maps))
        rows = sum(len(each.rows) for each in sentence.maps)
        columns = max((len(each.columns) for each in sentence.maps), default=0)
        if self._picture and max(rows, columns) > _TOKENS:
            size = f"{rows} tokens of translation, {columns} of source"
            raise UserError(f"{place}: a .png has room for {_TOKENS} tokens, not for {size}")
        if not self._picture and self._cells > _CELLS:
            raise UserError(f"{place}: {self._path} has no room for more than {_CELLS:,} cells")
        self._sentences.append(sentence)

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


def html_cells(attention: AttentionMap) -> int:
    """The number of cells of a map's tables."""
    layers, heads, rows, columns = map(int, attention.weights.shape)
    return (layers * (heads + 1) + 1) * rows * columns
