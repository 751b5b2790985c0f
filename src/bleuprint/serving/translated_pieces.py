"""The finished pieces of a long translation, which are kept on the disk.

A long text is cut into pieces of 100,000 lines. The translation of a piece is written as soon as it
is complete, so that a run that was killed continues with the first unfinished piece. The cut does
not depend on how many processes or jobs share the work, and neither does the translation.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import read_record, to_json_value
from bleuprint.text.parallel import read_lines, write_lines

# A multiple of `parallel.BLOCK_PAIRS`, the number of lines that are translated together. So the
# batches of the search, on which rounding may depend, are those of a text without pieces.
LINES_PER_PIECE = 100_000
# What `PieceFolder.find_problem` says about a piece that was not finished.
MISSING = "is missing"


@dataclass(frozen=True)
class TextPiece:
    """Consecutive lines of a long text, which one process translates.

    Attributes:
        number: The number of the piece in the text, counted from 1.
        start: The index of its first line, counted from 0.
        stop: The index after its last line.
    """

    number: int
    start: int
    stop: int

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return self.stop - self.start


def cut_into_pieces(line_count: int) -> list[TextPiece]:
    """Return the pieces of a text; all but the last one have 100,000 lines.

    Args:
        line_count: The number of lines of the text.
    """
    pieces = list[TextPiece]()
    for start in range(0, line_count, LINES_PER_PIECE):
        stop = min(start + LINES_PER_PIECE, line_count)
        pieces.append(TextPiece(number=len(pieces) + 1, start=start, stop=stop))
    return pieces


@dataclass(frozen=True)
class _PieceRecord:
    """What a folder records about the translation of a piece.

    Attributes:
        fingerprint: The hash of everything that decides the translation, such as the model.
        start: The index of the first line of the piece in the text, counted from 0.
        lines: The number of lines of the piece.
        sha256: The SHA-256 of the file with the translation.
    """

    fingerprint: str
    start: int
    lines: int
    sha256: str


class PieceFolder:
    """A folder with the translations of finished pieces of one text.

    For each piece, it contains a file of translated lines and a record: 000001.txt, 000001.json.
    The record is written last.

    Attributes:
        path: The folder, which may not exist yet.
        fingerprint: The hash of everything that decides the translation, such as the model. A piece
            with another fingerprint counts as unfinished.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Remember the folder; nothing is read or written.

        Args:
            path: The folder, which may not exist yet.
            fingerprint: The hash of everything that decides the translation.
        """
        self.path = path
        self.fingerprint = fingerprint

    def write(self, piece: TextPiece, translations: Sequence[str]) -> None:
        """Write the translation of a piece, and replace an earlier one.

        Args:
            piece: The piece.
            translations: The translation of each line.

        Raises:
            OSError: The operating system reports an error, such as a full disk.
        """
        assert len(translations) == piece.line_count
        lines_file = self.lines_file(piece)
        write_lines(lines_file, translations)
        record = _PieceRecord(
            fingerprint=self.fingerprint,
            start=piece.start,
            lines=piece.line_count,
            sha256=sha256_of(lines_file),
        )
        write_json(self._record_file(piece), to_json_value(record))

    def find_problem(self, piece: TextPiece) -> str | None:
        """Return why the translation of a piece cannot be used; None if it is complete and intact.

        Args:
            piece: The piece.

        Returns:
            None, or the end of a sentence about the piece, such as `MISSING`.
        """
        lines_file = self.lines_file(piece)
        record_file = self._record_file(piece)
        # The record is written last, so a piece without it was never finished.
        if not record_file.exists():
            return MISSING
        try:
            record = read_record(_PieceRecord, record_file)
        except UserError:
            return f"is damaged: {record_file} is not a record of bleuprint"
        has_same_origin = record.fingerprint == self.fingerprint
        has_same_lines = record.start == piece.start and record.lines == piece.line_count
        if not has_same_origin or not has_same_lines:
            return "was translated with another model, text, setting or version of the code"
        if not lines_file.exists() or sha256_of(lines_file) != record.sha256:
            return f"is damaged: {lines_file} is not the file that was written"
        return None

    def read(self, piece: TextPiece) -> Iterator[str]:
        """Yield the translated lines of a finished piece.

        Args:
            piece: A piece for which `find_problem` has returned None.
        """
        return read_lines(self.lines_file(piece))

    def copy_to(self, folder: Path, piece: TextPiece) -> None:
        """Copy the translation of a finished piece, with its record, to another folder.

        Args:
            folder: The folder to copy to, which exists.
            piece: A piece for which `find_problem` has returned None.

        Raises:
            OSError: The operating system reports an error, such as a full disk.
        """
        for file in (self.lines_file(piece), self._record_file(piece)):
            shutil.copyfile(file, folder / file.name)

    def lines_file(self, piece: TextPiece) -> Path:
        """Return the path of the file with the translation of a piece."""
        return self.path / f"{piece.number:06}.txt"

    def _record_file(self, piece: TextPiece) -> Path:
        """Return the path of the record of a piece."""
        return self.path / f"{piece.number:06}.json"
