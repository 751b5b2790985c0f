r"""Parallel text: reads and writes files whose lines translate each other.

Line i of the target file translates line i of the source file. A line ends only at the byte \n, and
not at \r, U+0085, U+2028 or \x1c, where Python's `splitlines` also ends a line. No other module
reads or writes such files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bleuprint.runtime.atomic_files import write_text
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.regular_files import open_regular_file
from bleuprint.runtime.utf8 import utf8_error
from bleuprint.runtime.wording import counted
from bleuprint.text.line_index import LineIndex

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

    Python's text files also end a line at \r. Here a line ends only at \n, so that two aligned
    files keep the same number of lines. Therefore the file is read as bytes.

    Raises:
        UserError: There is no such file, or a byte is not UTF-8.
    """
    with _open(path) as file:
        for line in file:
            try:
                yield line.removesuffix(b"\n").decode()
            except UnicodeDecodeError:
                raise _decoding_error(path) from None


def write_lines(path: Path, lines: Iterable[str]) -> None:
    r"""Write lines to a UTF-8 file, each with a \n at its end.

    Args:
        path: The file to write; it appears only when it is complete.
        lines: The lines, without line ends.

    Raises:
        OSError: The operating system reports an error, such as a full disk.
    """
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the sentence pairs of two aligned files: line i of one translates line i of the other.

    Args:
        source: The file of the source sentences.
        target: The file of the target sentences.

    Raises:
        UserError: A file is missing or longer than the other, or a byte is not UTF-8.
    """
    for block in read_blocks(source, target):
        yield from block.pairs()


def count_lines(path: Path) -> int:
    r"""Count the lines of a file. The last line counts even if it does not end in \n.

    The file is read in large parts and not decoded, which is fast.
    """
    line_count = 0
    ends_inside_line = False
    with _open(path) as file:
        while chunk := file.read(_COUNTED_BYTES):
            line_count += chunk.count(b"\n")
            ends_inside_line = not chunk.endswith(b"\n")
    return line_count + 1 if ends_inside_line else line_count


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
        """Decode the block; return its sentence pairs.

        Raises:
            UserError: A byte is not UTF-8; the message names the file.
        """
        sources, targets = self.sentences()
        return [Pair(source, target) for source, target in zip(sources, targets, strict=True)]

    def sentences(self) -> tuple[list[str], list[str]]:
        """Decode the block; return its source sentences and its target sentences.

        Raises:
            UserError: A byte is not UTF-8; the message names the file.
        """
        source_file, target_file = self.files
        return _decode_lines(self.source, source_file), _decode_lines(self.target, target_file)

    def select(self, wanted: Iterable[Any]) -> tuple[bytes, bytes]:
        """Return the lines of some sentence pairs, as bytes that can be written to two files.

        Args:
            wanted: For each pair of the block, a true value if it is to be returned.

        Returns:
            The source lines and the target lines, unchanged.
        """
        wanted = list(wanted)
        source_lines = BytesIO(self.source).readlines()
        target_lines = BytesIO(self.target).readlines()
        wanted_source_lines = compress(source_lines, wanted)
        wanted_target_lines = compress(target_lines, wanted)
        return b"".join(wanted_source_lines), b"".join(wanted_target_lines)

    def numbered_pairs(self) -> Iterator[tuple[int, Pair]]:
        """Yield each pair with its number in the files, counted from 1."""
        return enumerate(self.pairs(), self.first)


def _decode_lines(data: bytes, path: Path) -> list[str]:
    r"""Decode lines of a UTF-8 file, and return them without the \n at their end.

    Args:
        data: Complete lines: the last one also ends with \n.
        path: The file that they were read from, for the message of an error.

    Raises:
        UserError: A byte is not UTF-8.
    """
    try:
        # The data end with \n, so the last element of the split is empty and belongs to no line.
        return data.decode().split("\n")[:-1]
    except UnicodeDecodeError:
        raise _decoding_error(path) from None


def read_blocks(
    source: Path,
    target: Path,
    start: int = 0,
    stop: int | None = None,
    indexes: Mapping[Path, LineIndex] | None = None,
) -> Iterator[Block]:
    """Yield the sentence pairs of two aligned files in blocks of 1,000 pairs.

    Line i of one file translates line i of the other. Blocks keep the memory small, and can be
    distributed to several processes. The last block may be smaller.

    Args:
        source: The file of source sentences.
        target: The file of target sentences.
        start: The index of the first pair to read, counted from 0.
        stop: The index after the last pair to read; None for all pairs.
        indexes: The line index of each file, by which the first pair is found without reading the
            pairs before it; a file may be missing.

    Raises:
        UserError: One file is longer than the other, as far as they are read.
    """
    indexes = indexes or {}
    with _open(source) as source_file, _open(target) as target_file:
        _skip_lines(source_file, start, indexes.get(source))
        _skip_lines(target_file, start, indexes.get(target))
        index = start
        while stop is None or index < stop:
            max_pairs = BLOCK_PAIRS if stop is None else min(BLOCK_PAIRS, stop - index)
            source_lines = _read_complete_lines(source_file, max_pairs)
            target_lines = _read_complete_lines(target_file, max_pairs)
            pair_count = source_lines.count(b"\n")
            if target_lines.count(b"\n") != pair_count:
                raise UserError(
                    f"{source} has {counted(count_lines(source), 'line')} and {target} has "
                    f"{count_lines(target)}: not parallel. If the file is yours, correct it. "
                    "Otherwise run: make reproduce"
                )
            if pair_count == 0:  # Both files are at their end.
                break
            yield Block(
                first=index + 1,  # The index counts from 0, line numbers from 1.
                source=source_lines,
                target=target_lines,
                files=(source, target),
            )
            index += pair_count


def encode_pairs(pairs: Sequence[Pair]) -> tuple[bytes, bytes]:
    """Return the lines of sentence pairs as bytes: the source lines, and the target lines.

    They can be appended to two aligned files. Each sentence becomes a line.
    """
    source_text = "".join(f"{pair.source}\n" for pair in pairs)
    target_text = "".join(f"{pair.target}\n" for pair in pairs)
    # A line break inside a sentence would shift all later lines of its file, so that they would no
    # longer be next to their translations.
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
        source, target = encode_pairs([pair])
        self.write_lines(source, target)

    def write_lines(self, source: bytes, target: bytes) -> None:
        """Append lines to the source file, and lines that translate them to the target file.

        Args:
            source: The source lines as bytes, each with its line break; see `encode_pairs`.
            target: The target lines, as many.
        """
        source_file, target_file = self._files
        source_file.write(source)
        target_file.write(target)


@dataclass(frozen=True)
class TextFolder:
    """A folder with a parallel text, which is divided into sets: train, valid and test.NAME.

    Each set consists of two aligned files, SET.SOURCE and SET.TARGET: train.de and train.en.

    Attributes:
        path: The folder.
        source: The code of the source language.
        target: The code of the target language.
        indexes: The line indexes of files, by which parts of a set are found without reading what
            comes before them. Without the index of a file, its lines are read.
    """

    path: Path
    source: str
    target: str
    indexes: Mapping[Path, LineIndex] = field(
        default_factory=dict, kw_only=True, compare=False, repr=False
    )

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

    def texts(self, name: str) -> "list[TextFolder]":  # noqa: ARG002
        """Return the folders whose files make up a set, in the order in which they are read.

        This is only the folder itself. A subclass may join the files of several folders.

        Args:
            name: The set, such as `train`.
        """
        return [self]

    def set_names(self) -> list[str]:
        """Return the names of the folder's sets: train, valid, then the test sets by name.

        A set consists of two files, such as train.de and train.en. The name of the set is the file
        name of its source side without the language.

        Raises:
            UserError: There is no such folder.
        """
        if not self.path.is_dir():
            raise UserError(f"{self.path}: no such folder")
        source_ending = f".{self.source}"
        names = []
        for file in self.path.glob(f"*{source_ending}"):
            # The folder may contain a symbolic link whose target was removed; `exists` is then
            # False.
            if file.exists():
                names.append(file.name.removesuffix(source_ending))
        return sorted(names, key=_set_order)

    def held_out(self) -> list[str]:
        """Return the names of all sets except train: valid, and the test sets."""
        names = self.set_names()
        if "train" in names:
            names.remove("train")
        return names

    def pairs(self, name: str) -> Iterator[Pair]:
        """Yield the sentence pairs of a set."""
        return read_pairs(*self.files(name))

    def count(self, name: str) -> int:
        """Return the number of source sentences of a set."""
        source_file, _ = self.files(name)
        index = self.indexes.get(source_file)
        return count_lines(source_file) if index is None else index.lines

    def blocks(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the sentence pairs of a set in blocks; `read_blocks` explains the arguments."""
        return read_blocks(*self.files(name), start, stop, self.indexes)

    def writer(self, name: str) -> PairWriter:
        """Return a writer of a new set."""
        return PairWriter(*self.files(name))


def _set_order(name: str) -> tuple[bool, bool, str]:
    """Return a key that sorts the names of sets: train first, then valid, then test sets by name.

    Tuples are compared from the left, and False sorts before True. So the keys of `train`, `valid`
    and `news` are (False, True, ...), (True, False, ...) and (True, True, "news").
    """
    return name != "train", name != "valid", name


def _open(path: Path) -> BinaryIO:
    """Open a file to read bytes; raise UserError if there is no such file."""
    try:
        return open_regular_file(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None


def _skip_lines(file: BinaryIO, count: int, index: LineIndex | None) -> None:
    """Move to the line that follows the first lines of a file.

    Args:
        file: The file, at its beginning.
        count: The number of lines to skip.
        index: Where lines of the file begin; None if this is not known. Then the lines are read.
    """
    if index is not None:
        indexed_line, offset = index.nearest_before(count)
        file.seek(offset)
        count -= indexed_line
    for _ in islice(file, count):
        pass


def _read_complete_lines(file: BinaryIO, count: int) -> bytes:
    r"""Return the next lines of a file as bytes, each with its \n.

    If the file does not end with \n, it is added, so that all lines can be counted by it.

    Args:
        file: The file, which is read from its current position on.
        count: How many lines to read, fewer at the end of the file.
    """
    lines = b"".join(islice(file, count))
    lacks_line_break = lines != b"" and not lines.endswith(b"\n")
    return lines + b"\n" if lacks_line_break else lines


def _decoding_error(path: Path) -> UserError:
    """Return the error that names the first line with a byte that is not UTF-8."""
    with _open(path) as file:
        return utf8_error(path, file)
