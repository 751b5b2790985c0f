"""Progress of long work: a bar on a terminal, a line every 30 seconds in a log.

Beside other processes on a terminal, a line every five seconds instead of a bar; of what cannot be
counted, a line every five seconds.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from bleuprint.runtime.streams import printable, raw_stderr

if TYPE_CHECKING:
    from tqdm import tqdm

T = TypeVar("T")

# Set in processes that share a terminal with others: bars would overwrite each other.
SHARED_TERMINAL = "BLEUPRINT_BESIDE"
# In a log, and on a terminal.
SECONDS_BETWEEN_LINES = 30.0, 5.0
SECONDS_OF_SILENCE = 5.0


class Progress:
    """Counts items done of `total` (None: unknown) and shows the rate and the time left.

    `start` items were done before; if `silent`, nothing is shown (another process shows it).
    """

    def __init__(
        self, what: str, total: int | None, unit: str, start: int = 0, silent: bool = False
    ) -> None:
        self._what, self._total, self._unit = printable(what), total, unit
        self._begin = self._done = start
        self._start = self._said = time.monotonic()
        self._silent, on_terminal = silent, sys.stderr.isatty()
        self._seconds = SECONDS_BETWEEN_LINES[on_terminal]
        barred = on_terminal and SHARED_TERMINAL not in os.environ
        self._in_lines = not (silent or barred)
        self._bar = None if silent or not barred else _bar(self._what, total, unit, start)

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count `count` items as done; `note` is shown beside the rate."""
        self._done += count
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(count)
        if self._done == self._total:
            self.close()
        elif self._in_lines and time.monotonic() - self._said > self._seconds:
            self._said = time.monotonic()
            print(self._line(note), file=sys.stderr, flush=True)

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.write(printable(message), file=raw_stderr())
        elif not self._silent:
            print(printable(message), file=raw_stderr(), flush=True)

    def close(self) -> None:
        """Remove the bar; `advance` also does when all is done."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, note: str) -> str:
        rate = (self._done - self._begin) / max(time.monotonic() - self._start, 1e-9)
        of = f" of {self._total:,}" if self._total else ""
        line = f"{self._what}: {self._done:,}{of} {self._unit}, {rate:,.3g} a second"
        if self._total and rate:
            left = timedelta(seconds=round(max(0, self._total - self._done) / rate))
            line += f", {left} left"
        return f"{line}, {note}" if note else line


def track(items: Iterable[T], what: str, total: int | None, unit: str) -> Iterator[T]:
    """Yield `items`, showing the number yielded."""
    with Progress(what, total, unit) as progress:
        for item in items:
            yield item
            progress.advance()


@contextmanager
def show_elapsed_time(what: str, seconds: float = SECONDS_OF_SILENCE) -> Iterator[None]:
    """Print every few seconds what takes its time, until the block ends."""
    done, began = Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(seconds):
            line = f"{printable(what)}: {time.monotonic() - began:.0f} s"
            print(line, file=raw_stderr(), flush=True)

    (thread := Thread(target=tell, daemon=True)).start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _bar(what: str, total: int | None, unit: str, start: int) -> "tqdm[Any]":
    from tqdm import tqdm  # imported here: most stages run without a terminal

    return tqdm(
        desc=what,
        file=raw_stderr(),
        total=total,
        initial=start,
        unit=f" {unit}",
        unit_scale=unit == "B",  # bytes are shown as kB and MB
        dynamic_ncols=True,
        leave=False,
    )
