"""Reads the lines of a stream as they arrive, in batches of those that are available."""

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import BinaryIO

from bleuprint.runtime.errors import UserError

Line = tuple[int, str]


def read_lines_together(stream: BinaryIO, name: str, most: int) -> Iterator[list[Line]]:
    """Batches of 1 to `most` lines of a stream with their numbers, from 1.

    Yields whatever is available, so that interactive callers get a reply per line. A line ends at
    \\n alone. Raises UserError at bytes that are not UTF-8.
    """
    queue: SimpleQueue[bytes | OSError | None] = SimpleQueue()
    room = Semaphore(4 * most)  # lines read ahead

    def read() -> None:
        try:
            for line in stream:
                room.acquire()
                queue.put(line)
            queue.put(None)
        except OSError as error:
            queue.put(error)

    Thread(target=read, daemon=True).start()
    number, ended = 0, False
    while not ended:
        lines: list[Line] = []
        while len(lines) < most and not ended:
            try:
                line = queue.get(block=not lines)
            except Empty:
                break
            if isinstance(line, OSError):
                raise line
            if line is None:
                ended = True
                break
            room.release()
            number += 1
            try:
                lines.append((number, line.removesuffix(b"\n").decode()))
            except UnicodeDecodeError as error:
                if lines:
                    yield lines
                byte = f"byte {error.start + 1} of the line is {line[error.start]:#04x}"
                raise UserError(f"{name}:{number}: {byte}: not UTF-8") from None
        if lines:
            yield lines
