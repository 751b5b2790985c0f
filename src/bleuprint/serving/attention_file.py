"""The attention maps of translated sentences as an HTML file."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bleuprint.decoding.attention import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.serving.attention_html import attention_environment

# The most cells of a page that a browser opens without trouble.
_MOST_CELLS = 1_000_000

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
    """Collects maps and writes them as a page."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        """`languages` are those of the source and of the translation."""
        self._path, self._languages = path, languages
        self._sentences: list[_Sentence] = []
        self._cells = 0

    def add(self, place: str, source: str, translation: str, pieces: Sequence[Maps]) -> None:
        """Add a sentence; raises UserError, with its `place`, if the file has no room for it."""
        for each in chain.from_iterable(maps.values() for maps in pieces):
            layers, heads, rows, columns = each.weights.shape
            self._cells += (layers * (heads + 1) + 1) * rows * columns
        if self._cells > _MOST_CELLS:
            most = f"{_MOST_CELLS:,} cells"
            raise UserError(f"{place}: {self._path} has no room for more than {most}")
        self._sentences.append(_Sentence(source, translation, pieces))

    def write(self) -> None:
        """Write the file, whole or not at all.

        The page has of each map the last layer's mean, and each layer and head folded away.
        """
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
