"""The progress of long work: a bar on a terminal, and a line now and then in a log.

`Progress` counts work. On a terminal it shows a bar; if programs share the terminal, a line every 5
seconds in place of the bar; in a file or pipe, a line every 30 seconds. `show_elapsed_time` is for
work that cannot be counted: a line every 5 seconds.
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

# An environment variable that is set in programs that share a terminal: their bars would overwrite
# each other.
SHARED_TERMINAL = "BLEUPRINT_BESIDE"
SECONDS_BETWEEN_LOG_LINES = 30.0
SECONDS_BETWEEN_TERMINAL_LINES = 5.0
_SECONDS_OF_SILENCE = 5.0
# A rate is never divided by less than this time.
_SHORTEST_SECONDS = 1e-9


class Progress:
    """Counts finished items, and shows the count with the rate and the remaining time.

    On a terminal it shows a bar. If programs share the terminal, or in a file or pipe, it prints a
    line now and then.
    """

    def __init__(
        self, label: str, total: int | None, unit: str, start: int = 0, is_silent: bool = False
    ) -> None:
        """Begin to show progress: as a bar on a terminal, otherwise as a line from time to time.

        Args:
            label: What the work is, such as `train tiny`.
            total: The number of all items; None if it is unknown.
            unit: The items, in the plural, such as `pairs`; `B` for bytes.
            start: How many items were finished before, such as the updates of a training that is
                continued now.
            is_silent: Whether to show nothing, because another process of the same work does.
        """
        self._label = printable(label)
        self._total = total
        self._unit = unit
        self._first_count = start
        self._count = start
        self._start_time = time.monotonic()
        self._last_line_time = self._start_time
        is_terminal = sys.stderr.isatty()
        has_bar = is_terminal and SHARED_TERMINAL not in os.environ and not is_silent
        self._bar = _bar(self._label, total, unit, start) if has_bar else None
        self._is_silent = is_silent
        self._has_lines = not has_bar and not is_silent
        self._seconds_between_lines = (
            SECONDS_BETWEEN_TERMINAL_LINES if is_terminal else SECONDS_BETWEEN_LOG_LINES
        )

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count more items as finished, and print a line if enough time has passed since the last.

        Args:
            count: The number of items that were finished since the last call.
            note: What to show with the rate, such as the loss.
        """
        self._count += count
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(count)
        is_complete = self._count == self._total
        if is_complete:
            self.close()
        elif self._has_lines:
            seconds_since_line = time.monotonic() - self._last_line_time
            if seconds_since_line > self._seconds_between_lines:
                self._last_line_time = time.monotonic()
                print(self._line(note), file=sys.stderr, flush=True)

    def say(self, message: str) -> None:
        """Print a message on standard error; a progress bar stays below it.

        If this object is silent, because another process shows the progress, nothing is printed.
        """
        if self._bar is not None:
            self._bar.write(printable(message), file=raw_stderr())
        elif not self._is_silent:
            print(printable(message), file=raw_stderr(), flush=True)

    def close(self) -> None:
        """Remove the bar; `advance` does it, too, when all items are finished."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, note: str) -> str:
        """Return a line such as `train tiny: 600 of 1,500 updates, 6 a second, 0:02:30 left`.

        The rate counts only items that this process has finished.

        Args:
            note: What to add at the end, such as the loss; empty for nothing.
        """
        elapsed_seconds = max(time.monotonic() - self._start_time, _SHORTEST_SECONDS)
        rate = (self._count - self._first_count) / elapsed_seconds
        line = f"{self._label}: {self._count:,}"
        if self._total:
            line += f" of {self._total:,}"
        line += f" {self._unit}, {rate:,.3g} a second"
        if self._total and rate:
            remaining_items = max(0, self._total - self._count)
            remaining_time = timedelta(seconds=round(remaining_items / rate))
            line += f", {remaining_time} left"
        if note:
            line += f", {note}"
        return line


def track(items: Iterable[T], label: str, total: int | None, unit: str) -> Iterator[T]:
    """Yield items, and show how many the caller has finished.

    Args:
        items: The items.
        label: What the work is, such as `read the training text`.
        total: The number of items; None if it is unknown.
        unit: The items, in the plural, such as `lines`.
    """
    with Progress(label, total, unit) as progress:
        for item in items:
            yield item
            progress.advance()


@contextmanager
def show_elapsed_time(label: str, interval_seconds: float = _SECONDS_OF_SILENCE) -> Iterator[None]:
    """Print the elapsed time at intervals, until the `with` block ends.

    This shows the user that work continues whose items cannot be counted. A thread prints the
    lines.

    Args:
        label: What the work is, such as `score tiny`.
        interval_seconds: The time between two lines, and before the first one.
    """
    is_done = Event()
    start_time = time.monotonic()

    def print_lines() -> None:
        """Print a line after each interval, until the block has ended."""
        while not is_done.wait(interval_seconds):
            elapsed_seconds = time.monotonic() - start_time
            line = f"{printable(label)}: {elapsed_seconds:.0f} s"
            print(line, file=raw_stderr(), flush=True)

    thread = Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _bar(label: str, total: int | None, unit: str, start: int) -> "tqdm[Any]":
    """Return a progress bar on standard error, drawn by the library tqdm.

    Args:
        label: What the work is, such as `train tiny`.
        total: The number of all items; None if it is unknown.
        unit: The items, in the plural, such as `pairs`; `B` for bytes.
        start: How many items were finished before.
    """
    from tqdm import tqdm  # Imported here, because most stages run without a terminal.

    return tqdm(
        desc=label,
        file=raw_stderr(),
        total=total,
        initial=start,
        unit=f" {unit}",
        unit_scale=unit == "B",  # Bytes are shown as kB and MB.
        dynamic_ncols=True,
        leave=False,
    )
