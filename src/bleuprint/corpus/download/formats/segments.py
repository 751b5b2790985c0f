"""Numbered sentences of documents in two files, as in test sets for mteval."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair


class Segment(NamedTuple):
    """A sentence, its document, its id in the document, and its line in the file."""

    document: str
    id: str
    text: str
    line: int


def pair_segments(sides: Sequence[Iterable[Segment]], names: Sequence[str]) -> Iterator[Pair]:
    """The pairs of two files; raises UserError if the order of documents or ids differs."""
    for first, second in zip_longest(*sides):
        if first is None or second is None or first[:2] != second[:2]:
            raise UserError(
                f"{_place(names[0], first)}, but {_place(names[1], second)}: not parallel"
            )
        yield Pair(first.text, second.text)


def fold(text: str) -> str:
    """`text` stripped, with each run of white space as one space, as in sacreBLEU."""
    return " ".join(text.split())


def _place(name: str, segment: Segment | None) -> str:
    if segment is None:
        return f"{name} has ended"
    return f"{name}:{segment.line}: seg {segment.id!r} of doc {segment.document!r}"
