r"""Parallel text: reads and writes files whose lines translate each other.

Line i of the target file translates line i of the source file. A line ends only at the byte \n, and
not at \r, U+0085, U+2028 or \x1c, where Python's `splitlines` also ends a line. No other module
reads or writes such files.
"""

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

# The number of sentence pairs that are processed at once.
BLOCK_PAIRS = 1000
# The number of bytes that are read at once to count lines.
_COUNTED_BYTES = 1 << 20


class Pair(NamedTuple):
    """A sentence pair."""

    source: str
    target: str


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file, without the \n at their end.

    Raises:
        UserError: There is no such file, or a byte is not UTF-8.
    """
    with _open(path) as file:
        for line in file:
            try:
                yield line.removesuffix(b"\n").decode()
            except UnicodeDecodeError:
                raise _decoding_error(path) from None


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the sentence pairs of two aligned files.

    Raises:
        UserError: A file is missing or longer than the other, or a byte is not UTF-8.
    """
    for block in read_blocks(source, target):
        yield from block.pairs()


def count_lines(path: Path) -> int:
    r"""Return the number of lines of a file, whose last line may lack its \n.

    The file is not decoded.
    """
    line_count = 0
    last_byte = b"\n"
    with _open(path) as file:
        while chunk := file.read(_COUNTED_BYTES):
            line_count += chunk.count(b"\n")
            last_byte = chunk[-1:]
    if last_byte != b"\n":
        line_count += 1
    return line_count


@dataclass(frozen=True)
class Block:
    r"""Consecutive sentence pairs of two aligned files, as bytes.

    The process that uses a block decodes it, so that several processes share this work.

    Attributes:
        first: The number of the first pair in the files, counted from 1.
        source: The source lines, each with its \n.
        target: The target lines, each with its \n.
        files: The paths of both files, for messages.
    """

    first: int
    source: bytes
    target: bytes
    files: tuple[Path, Path]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self.source.count(b"\n")

    def pairs(self) -> list[Pair]:
        """Return the sentence pairs.

        Raises:
            UserError: A byte is not UTF-8.
        """
        sources, targets = self.sides()
        return [Pair(source, target) for source, target in zip(sources, targets, strict=True)]

    def sides(self) -> tuple[list[str], list[str]]:
        """Return the source sentences, and the target sentences.

        Raises:
            UserError: A byte is not UTF-8.
        """
        source_file, target_file = self.files
        return _decode_lines(self.source, source_file), _decode_lines(self.target, target_file)

    def select(self, wanted: Iterable[Any]) -> tuple[bytes, bytes]:
        """Return the bytes of some pairs, as source and target lines.

        Args:
            wanted: For each pair a value that is true if the pair is wanted.
        """
        wanted = list(wanted)
        source_lines = BytesIO(self.source).readlines()
        target_lines = BytesIO(self.target).readlines()
        return b"".join(compress(source_lines, wanted)), b"".join(compress(target_lines, wanted))

    def numbered_pairs(self) -> Iterator[tuple[int, Pair]]:
        """Yield each pair with its number in the files, counted from 1."""
        return enumerate(self.pairs(), self.first)


def _decode_lines(data: bytes, path: Path) -> list[str]:
    r"""Return the lines in UTF-8 data of a file, in which every line ends with \n.

    Raises:
        UserError: A byte is not UTF-8; the message names the file.
    """
    try:
        # The last element is the empty text after the last \n.
        return data.decode().split("\n")[:-1]
    except UnicodeDecodeError:
        raise _decoding_error(path) from None


def read_blocks(
    source: Path, target: Path, start: int = 0, stop: int | None = None
) -> Iterator[Block]:
    """Yield the sentence pairs of two aligned files in blocks.

    Args:
        source: The file of source sentences.
        target: The file of target sentences.
        start: The index of the first pair to read, counted from 0.
        stop: The index after the last pair to read; None for all pairs.

    Raises:
        UserError: One file is longer than the other, as far as they are read.
    """
    with _open(source) as source_file, _open(target) as target_file:
        _skip_lines(source_file, start)
        _skip_lines(target_file, start)
        index = start
        while stop is None or index < stop:
            size = BLOCK_PAIRS if stop is None else min(BLOCK_PAIRS, stop - index)
            source_lines = _read_complete_lines(source_file, size)
            target_lines = _read_complete_lines(target_file, size)
            pair_count = source_lines.count(b"\n")
            if target_lines.count(b"\n") != pair_count:
                raise UserError(
                    f"{source} has {counted(count_lines(source), 'line')} and {target} has "
                    f"{count_lines(target)}: not parallel; correct the file if it is yours, "
                    f"otherwise {RERUN}"
                )
            if pair_count == 0:
                break
            yield Block(index + 1, source_lines, target_lines, (source, target))
            index += pair_count


def pack_pairs(pairs: Sequence[Pair]) -> tuple[bytes, bytes]:
    """Return the source and the target sentences of pairs as the bytes of two aligned files."""
    source_text = "".join(f"{pair.source}\n" for pair in pairs)
    target_text = "".join(f"{pair.target}\n" for pair in pairs)
    # A line break inside a sentence would shift all later lines of its file.
    assert source_text.count("\n") == len(pairs)
    assert target_text.count("\n") == len(pairs)
    return source_text.encode(), target_text.encode()


class PairWriter(ExitStack):
    """Writes two aligned files; use it as a context manager, which closes them."""

    def __init__(self, *paths: Path) -> None:
        """Create the source file and the target file."""
        super().__init__()
        self._files = [self.enter_context(path.open("wb")) for path in paths]

    def write(self, pair: Pair) -> None:
        """Write a sentence pair."""
        source, target = pack_pairs([pair])
        self.write_packed(source, target)

    def write_packed(self, source: bytes, target: bytes) -> None:
        """Write sentence pairs as `pack_pairs` returns them."""
        for file, data in zip(self._files, (source, target), strict=True):
            file.write(data)


@dataclass(frozen=True)
class TextFolder:
    """A folder with a parallel text: its sets are train, valid and test.NAME.

    Each set consists of two aligned files, SET.SOURCE and SET.TARGET: train.de and train.en.

    Attributes:
        path: The folder.
        source: The code of the source language.
        target: The code of the target language.
    """

    path: Path
    source: str
    target: str

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of the source and the target language."""
        return self.source, self.target

    def with_path(self, path: Path) -> "TextFolder":
        """Return another folder with the same languages."""
        return TextFolder(path, self.source, self.target)

    def files(self, name: str) -> tuple[Path, Path]:
        """Return the source and the target file of a set, which may not exist."""
        return self.path / f"{name}.{self.source}", self.path / f"{name}.{self.target}"

    def names(self) -> list[str]:
        """Return the names of the sets in the folder: train, valid, then the test sets by name.

        Raises:
            UserError: There is no such folder.
        """
        if not self.path.is_dir():
            raise UserError(f"{self.path}: no such folder")
        names = []
        for name in {file.name.removesuffix(f".{self.source}") for file in self.path.glob("*.*")}:
            source_file, _ = self.files(name)
            if source_file.exists():
                names.append(name)
        return sorted(names, key=_set_order)

    def held_out(self) -> list[str]:
        """Return the names of all sets but train: valid, and the test sets."""
        names = self.names()
        if "train" in names:
            names.remove("train")
        return names

    def pairs(self, name: str) -> Iterator[Pair]:
        """Yield the sentence pairs of a set."""
        return read_pairs(*self.files(name))

    def count(self, name: str) -> int:
        """Return the number of source sentences of a set."""
        source_file, _ = self.files(name)
        return count_lines(source_file)

    def blocks(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the sentence pairs of a set in blocks; `read_blocks` explains the arguments."""
        return read_blocks(*self.files(name), start, stop)

    def writer(self, name: str) -> PairWriter:
        """Return a writer of a new set."""
        return PairWriter(*self.files(name))


def _set_order(name: str) -> tuple[bool, bool, str]:
    """Return the sort key of a set: train comes first, then valid, then the test sets by name."""
    return name != "train", name != "valid", name


def _open(path: Path) -> BinaryIO:
    """Open a file to read bytes; raise UserError if it does not exist."""
    try:
        return open_regular_file(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None


def _skip_lines(file: BinaryIO, count: int) -> None:
    """Read some lines without keeping them."""
    for _ in islice(file, count):
        pass


def _read_complete_lines(file: BinaryIO, count: int) -> bytes:
    r"""Return the next lines of a file, each with its \n, which the last line may lack."""
    lines = b"".join(islice(file, count))
    is_complete = lines == b"" or lines.endswith(b"\n")
    return lines if is_complete else lines + b"\n"


def _decoding_error(path: Path) -> UserError:
    """Return the error that names the first line with a byte that is not UTF-8."""
    with _open(path) as file:
        return utf8_error(path, file)
