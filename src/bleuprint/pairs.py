"""Parallel text: the one reader and the one writer of aligned files.

A line ends at the byte \\n and nowhere else: not at \\r, U+0085, U+2028 or \\x1c, where Python's
text mode and `splitlines` would end it. Line i of one side translates line i of the other.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bleuprint.errors import UserError

_BLOCK = 1 << 20


class Pair(NamedTuple):
    source: str
    target: str


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file without their \\n; raises UserError at an undecodable byte."""
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            yield _decode(line, path, number)


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """The pairs of two aligned files; raises UserError if one is longer than the other."""
    with _open(source) as source_file, _open(target) as target_file:
        number = 0
        while True:
            source_line, target_line = source_file.readline(), target_file.readline()
            if not source_line or not target_line:
                break
            number += 1
            yield Pair(_decode(source_line, source, number), _decode(target_line, target, number))
        if source_line or target_line:
            counts = [
                number + bool(line) + sum(1 for _ in file)
                for line, file in ((source_line, source_file), (target_line, target_file))
            ]
            raise UserError(
                f"{source} has {counts[0]} lines and {target} has {counts[1]}: not parallel"
            )


def count_lines(path: Path) -> int:
    """The number of lines, for a progress bar: fast, and without a look at what they hold."""
    with _open(path) as file:
        blocks = iter(lambda: file.read(_BLOCK), b"")
        return sum(block.count(b"\n") for block in blocks)


class PairWriter:
    """Writes aligned files, a pair at a time; use as a context manager."""

    def __init__(self, source: Path, target: Path) -> None:
        with ExitStack() as opening:
            self._files = [opening.enter_context(path.open("wb")) for path in (source, target)]
            self._open = opening.pop_all()

    def write(self, pair: Pair) -> None:
        for file, text in zip(self._files, pair, strict=True):
            assert "\n" not in text, "a line break inside a sentence would misalign the text"
            file.write(text.encode() + b"\n")

    def __enter__(self) -> "PairWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


@dataclass(frozen=True)
class TextFolder:
    """A folder of aligned texts: train, valid and test.NAME, each as NAME.LANGUAGE, two files."""

    path: Path
    source: str
    target: str

    def files(self, name: str) -> tuple[Path, Path]:
        return self.path / f"{name}.{self.source}", self.path / f"{name}.{self.target}"

    def names(self) -> list[str]:
        """The sets in the folder: train, valid, then the tests by name."""
        if not self.path.is_dir():
            raise UserError(f"{self.path}: no such folder")
        found = {file.name.removesuffix(f".{self.source}") for file in self.path.glob("*.*")}
        present = {name for name in found if self.files(name)[0].exists()}
        return sorted(present, key=lambda name: (name != "train", name != "valid", name))

    def pairs(self, name: str) -> Iterator[Pair]:
        return read_pairs(*self.files(name))

    def count(self, name: str) -> int:
        """The number of pairs that a set should have, going by one side."""
        return count_lines(self.files(name)[0])

    def writer(self, name: str) -> PairWriter:
        return PairWriter(*self.files(name))


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.removesuffix(b"\n").decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise UserError(
            f"{path}:{number}: byte {error.start + 1} of the line is {byte:#04x}: not UTF-8"
        ) from None
