"""The format tsv: a pair a line, columns separated by tabs, no quoting."""

from collections.abc import Iterator
from typing import BinaryIO

from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair


def read_tsv(stream: BinaryIO, name: str, columns: tuple[int, int]) -> Iterator[Pair]:
    """The pairs in `columns` (source and target, from 1); raises UserError if a line lacks one."""
    source, target = (column - 1 for column in columns)
    for number, line in enumerate(read_lines(stream, name), 1):
        fields = line.split("\t")
        if len(fields) < max(columns):
            raise UserError(
                f"{name}:{number}: columns {columns[0]} and {columns[1]} are needed, "
                f"and the line has {len(fields)}"
            )
        yield Pair(fields[source], fields[target])
