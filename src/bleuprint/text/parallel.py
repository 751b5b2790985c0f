"""Parallel text: the only reader and writer of aligned files.

A line ends at the byte \\n and nowhere else: not at \\r, U+0085, U+2028 or \\x1c, where Python's
`splitlines` ends it. Line i of one side translates line i of the other.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import RERUN, open_regular_file
from bleuprint.runtime.utf8 import utf8_error
from bleuprint.runtime.wording import counted

BLOCK_PAIRS = 1000
_COUNTED = 1 << 20


class Pair(NamedTuple):
    source: str
    target: str


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file without their \\n; raises UserError at an undecodable byte."""
    with _open(path) as file:
        for line in file:
            try:
                yield line.removesuffix(b"\n").decode()
            except UnicodeDecodeError:
                raise _undecodable(path) from None


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """The pairs of two aligned files; raises UserError if one is longer than the other."""
    for block in read_blocks(source, target):
        yield from block.pairs()


def count_lines(path: Path) -> int:
    """The number of lines; the last one may lack its \\n. Does not decode them."""
    lines, last = 0, b"\n"
    with _open(path) as file:
        while block := file.read(_COUNTED):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


@dataclass(frozen=True)
class Block:
    """Consecutive pairs as bytes of two aligned files, every line with its \\n.

    They are decoded by the process that uses them. `first` is the number of the first pair in
    `files`, from 1.
    """

    first: int
    source: bytes
    target: bytes
    files: tuple[Path, Path]

    def __len__(self) -> int:
        return self.source.count(b"\n")

    def pairs(self) -> list[Pair]:
        """The pairs; raises UserError at an undecodable byte."""
        return list(map(Pair, *self.sides()))

    def sides(self) -> tuple[list[str], list[str]]:
        """The lines of both sides; raises UserError at an undecodable byte."""
        source, target = map(self._lines, (self.source, self.target), self.files)
        return source, target

    def select(self, wanted: Iterable[Any]) -> tuple[bytes, bytes]:
        """The bytes of the pairs that are wanted, as a true value for each says."""
        wanted = [*wanted]
        sides = (BytesIO(side).readlines() for side in (self.source, self.target))
        source, target = (b"".join(compress(lines, wanted)) for lines in sides)
        return source, target

    def numbered_pairs(self) -> Iterator[tuple[int, Pair]]:
        """The pairs with their numbers in the set, from 1."""
        return enumerate(self.pairs(), self.first)

    def _lines(self, data: bytes, path: Path) -> list[str]:
        try:
            return data.decode().split("\n")[:-1]
        except UnicodeDecodeError:
            raise _undecodable(path) from None


def read_blocks(
    source: Path, target: Path, start: int = 0, stop: int | None = None
) -> Iterator[Block]:
    """The pairs of two aligned files in blocks, from `start`, counted from 0, up to before `stop`.

    Without `stop`, raises UserError if one file is longer.
    """
    with _open(source) as source_file, _open(target) as target_file:
        for file in (source_file, target_file):
            deque(islice(file, start), maxlen=0)
        number = start
        while stop is None or number < stop:
            count = BLOCK_PAIRS if stop is None else min(BLOCK_PAIRS, stop - number)
            sides = _lines(source_file, count), _lines(target_file, count)
            counts = [side.count(b"\n") for side in sides]
            if counts[0] != counts[1]:
                raise UserError(
                    f"{source} has {counted(count_lines(source), 'line')} and {target} has "
                    f"{count_lines(target)}: not parallel; correct the file if it is yours, "
                    f"otherwise {RERUN}"
                )
            if not counts[0]:
                break
            yield Block(number + 1, *sides, (source, target))
            number += counts[0]


def pack_pairs(pairs: Sequence[Pair]) -> tuple[bytes, bytes]:
    """Both sides of pairs as the bytes of files."""
    sides = ["".join(f"{pair[side]}\n" for pair in pairs) for side in (0, 1)]
    # a line break inside a sentence would misalign the text
    assert all(side.count("\n") == len(pairs) for side in sides)
    return sides[0].encode(), sides[1].encode()


class PairWriter(ExitStack):
    """Writes aligned files; use as a context manager."""

    def __init__(self, *paths: Path) -> None:
        super().__init__()
        self._files = [self.enter_context(path.open("wb")) for path in paths]

    def write(self, pair: Pair) -> None:
        self.write_packed(*pack_pairs([pair]))

    def write_packed(self, source: bytes, target: bytes) -> None:
        """Write the bytes that `packed` returned."""
        for file, data in zip(self._files, (source, target), strict=True):
            file.write(data)


@dataclass(frozen=True)
class TextFolder:
    """A folder of aligned texts: train, valid and test.NAME, each as NAME.LANGUAGE, two files."""

    path: Path
    source: str
    target: str

    @property
    def languages(self) -> tuple[str, str]:
        return self.source, self.target

    def with_path(self, path: Path) -> "TextFolder":
        """A folder of the same languages at another path."""
        return TextFolder(path, self.source, self.target)

    def files(self, name: str) -> tuple[Path, Path]:
        return self.path / f"{name}.{self.source}", self.path / f"{name}.{self.target}"

    def names(self) -> list[str]:
        """The sets in the folder: train, valid, then the tests by name."""
        if not self.path.is_dir():
            raise UserError(f"{self.path}: no such folder")
        files = {file.name.removesuffix(f".{self.source}") for file in self.path.glob("*.*")}
        names = {name for name in files if self.files(name)[0].exists()}
        return sorted(names, key=lambda name: (name != "train", name != "valid", name))

    def held_out(self) -> list[str]:
        """The sets other than train: valid and the tests."""
        return [name for name in self.names() if name != "train"]

    def pairs(self, name: str) -> Iterator[Pair]:
        return read_pairs(*self.files(name))

    def count(self, name: str) -> int:
        """The number of lines of the source side of a set."""
        return count_lines(self.files(name)[0])

    def blocks(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        return read_blocks(*self.files(name), start, stop)

    def writer(self, name: str) -> PairWriter:
        return PairWriter(*self.files(name))


def _open(path: Path) -> BinaryIO:
    try:
        return open_regular_file(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None


def _lines(file: BinaryIO, count: int) -> bytes:
    """The next lines, each with its \\n, which is added to a last line without one."""
    block = b"".join(islice(file, count))
    return block if block[-1:] in (b"", b"\n") else block + b"\n"


def _undecodable(path: Path) -> UserError:
    with _open(path) as file:
        return utf8_error(path, file)
