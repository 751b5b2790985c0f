"""Attention maps as HTML: the templates that show them, and a page of translated sentences."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.runtime.html import environment

if TYPE_CHECKING:
    from bleuprint.decoding.attention import AttentionMap  # loads torch

# The most cells that a browser opens without trouble.
_MOST_CELLS = 1_000_000

_TITLES = {
    "cross": "decoder to source",
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
}


@dataclass(frozen=True)
class SentenceMaps:
    """A sentence, its translation, and of each piece a map of each kind of attention.KINDS."""

    source: str
    translation: str
    pieces: "Sequence[Mapping[str, AttentionMap]]"

    @property
    def cells(self) -> int:
        """Cells of all tables: of each layer the heads and their mean, and one more at the top."""
        shapes = (each.weights.shape for maps in self.pieces for each in maps.values())
        return sum((layers * (heads + 1) + 1) * a * b for layers, heads, a, b in shapes)


class AttentionFile:
    """Collects sentences and writes them as a page, which needs no script."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        """`languages` are those of the source and of the translation."""
        self._path, self._languages = path, languages
        self._sentences: list[SentenceMaps] = []
        self._cells = 0

    def add(self, place: str, sentence: SentenceMaps) -> None:
        """Add a sentence; raises UserError, with its `place`, if the page has no room for it."""
        self._cells += sentence.cells
        if self._cells > _MOST_CELLS:
            raise UserError(
                f"{place}: {self._path} has no room for more than {_MOST_CELLS:,} cells"
            )
        self._sentences.append(sentence)

    def write(self) -> None:
        """Write the file, whole or not at all.

        It shows of each map the last layer's mean, and has each layer and head folded away.
        """
        source, target = self._languages
        languages = {"cross": (source, target), "encoder": (source,) * 2, "decoder": (target,) * 2}
        template = attention_environment().get_template("attention_file.html.j2")
        stream = template.stream(languages=languages, titles=_TITLES, sentences=self._sentences)
        with whole_file(self._path) as partial:
            stream.dump(str(partial), encoding="utf-8")


def attention_environment(*folders: Path) -> Environment:
    """Templates of `folders`, and those of maps; the filter `printable` is for tokens."""
    templates = environment(*folders, Path(__file__).with_name("templates"))
    templates.filters["printable"] = printable
    return templates


def printable(token: str) -> str:
    """A token as it can be shown alone: a combining character is given a circle to combine with."""
    text = "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in token)
    return f"◌{text}" if unicodedata.category(text[0]).startswith("M") else text
