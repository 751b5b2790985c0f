r"""Where the lines of a large file begin, so that a process can read some lines without the others.

A `LineIndex` stores the byte at which each n-th line begins. To read from a line on, a process
jumps to the nearest indexed line before it, and reads the few lines in between.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bleuprint.runtime.regular_files import open_regular_file

# The number of lines between two indexed lines, in a file of up to 20 million lines.
_FIRST_SPACING = 1000
# The index of a larger file has half as many to as many entries as this. So to jump into the file
# costs at most the reading of one part in 10,000.
_MAX_ENTRIES = 20_000
_BYTES_PER_READ = 1 << 20
_LINE_END = ord("\n")


@dataclass(frozen=True)
class LineIndex:
    r"""The beginnings of lines in a file, and what identifies the content of the file.

    Attributes:
        lines: The number of lines. The last line counts even if it does not end in \n.
        sha256: The SHA-256 of the file's bytes.
        size: The number of bytes.
        modified_ns: When the file was last modified, in nanoseconds since 1970.
        spacing: The number of lines between two indexed lines.
        offsets: The byte, counted from 0, at which the lines 0, spacing, 2 * spacing, ... begin.
    """

    lines: int
    sha256: str
    size: int
    modified_ns: int
    spacing: int
    offsets: tuple[int, ...]

    def nearest_before(self, line: int) -> tuple[int, int]:
        """Return the indexed line that is nearest before a line, or the line itself.

        Args:
            line: The line, counted from 0; it may be behind the end of the file.

        Returns:
            The number of the indexed line, counted from 0, and the byte at which it begins.
        """
        entry = min(line // self.spacing, len(self.offsets) - 1)
        return entry * self.spacing, self.offsets[entry]

    def describes(self, path: Path) -> bool:
        """Return whether a file has still the size and the modification time of this index."""
        status = path.stat()
        return status.st_size == self.size and status.st_mtime_ns == self.modified_ns


def index_lines(path: Path) -> LineIndex:
    r"""Read a file once, and return where its lines begin.

    A line ends only at \n. Memory does not grow with the file: if there are too many entries, every
    second one is dropped, and the spacing doubles.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
    """
    status = path.stat()
    digest = hashlib.sha256()
    spacing = _FIRST_SPACING
    offsets = [0]
    # The number of complete lines, and of bytes, that were read before the current chunk.
    line_count = 0
    byte_count = 0
    ends_inside_line = False
    with open_regular_file(path) as file:
        while chunk := file.read(_BYTES_PER_READ):
            digest.update(chunk)
            (line_ends,) = np.nonzero(np.frombuffer(chunk, np.uint8) == _LINE_END)
            # The next indexed line begins after this many more lines, from 1 to `spacing`.
            lines_to_next_entry = spacing - line_count % spacing
            for line_end in line_ends[lines_to_next_entry - 1 :: spacing].tolist():
                offsets.append(byte_count + line_end + 1)
            line_count += len(line_ends)
            byte_count += len(chunk)
            ends_inside_line = not chunk.endswith(b"\n")
            if len(offsets) > _MAX_ENTRIES:
                offsets = offsets[::2]
                spacing *= 2
    return LineIndex(
        lines=line_count + 1 if ends_inside_line else line_count,
        sha256=digest.hexdigest(),
        size=byte_count,
        modified_ns=status.st_mtime_ns,
        spacing=spacing,
        offsets=tuple(offsets),
    )
