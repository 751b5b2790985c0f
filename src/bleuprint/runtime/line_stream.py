"""Lines that somebody writes while we read: taken as they come, many at a time where many wait."""

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import BinaryIO

from bleuprint.runtime.errors import UserError

Line = tuple[int, str]


def read_lines_together(stream: BinaryIO, name: str, most: int) -> Iterator[list[Line]]:
    """The lines of a stream with their numbers, from 1: at least one at a time, at most `most`.

    Whatever has come is given at once, so that who writes a line and waits has not to write more.
    A line ends at \\n alone. Raises UserError at bytes that are not UTF-8.
    """
    queue: SimpleQueue[bytes | OSError | None] = SimpleQueue()
    room = Semaphore(4 * most)  # what is read ahead

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
