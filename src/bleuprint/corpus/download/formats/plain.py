"""The format plain: two files, a sentence a line."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import BinaryIO

from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair


def read_plain(streams: Sequence[BinaryIO], names: Sequence[str]) -> Iterator[Pair]:
    """The pairs of two files; raises UserError if one has more lines than the other."""
    sides = [read_lines(stream, name) for stream, name in zip(streams, names, strict=True)]
    for number, lines in enumerate(zip_longest(*sides)):
        if None in lines:
            counts = [
                number + (line is not None) + sum(1 for _ in side)
                for line, side in zip(lines, sides, strict=True)
            ]
            raise UserError(
                f"{names[0]} has {counts[0]} lines and {names[1]} has {counts[1]}: not parallel"
            )
        yield Pair._make(lines)
