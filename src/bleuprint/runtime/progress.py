"""How far long work has come: a bar on a terminal, a line now and then in a log."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """Counts what is done of `total` (None: unknown), with its rate and the time left.

    `start` of it was done before; a `silent` one shows nothing (another process does).
    """

    def __init__(
        self, what: str, total: int | None, unit: str, start: int = 0, silent: bool = False
    ) -> None:
        self._what, self._total, self._unit, self._silent = what, total, unit, silent
        self._begin = self._done = start
        self._start = self._said = time.monotonic()
        self._bar: tqdm[Any] | None = None
        if sys.stderr.isatty() and not silent:
            self._bar = tqdm(
                desc=what,
                total=total,
                initial=start,
                unit=f" {unit}",
                unit_scale=unit == "B",  # bytes are shown as kB and MB
                dynamic_ncols=True,
                leave=False,
            )

    def advance(self, count: int = 1, note: str = "") -> None:
        """`count` more are done; `note` is shown beside the rate."""
        self._done += count
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(count)
            if self._done == self._total:
                self.close()
        elif not self._silent and time.monotonic() - self._said > SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            print(self._line(note), file=sys.stderr, flush=True)

    def say(self, message: str) -> None:
        """A line that stays, above the bar."""
        if self._bar is not None:
            self._bar.write(message, file=sys.stderr)
        elif not self._silent:
            print(message, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar off the terminal; it goes by itself when all is done."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, note: str) -> str:
        rate = (self._done - self._begin) / max(time.monotonic() - self._start, 1e-9)
        line = f"{self._what}: {self._done:,} {self._unit}, {rate:,.3g} a second"
        if self._total and rate:
            line += f", {max(0, self._total - self._done) / rate:,.0f} s left"
        return f"{line}, {note}" if note else line


def track(items: Iterable[T], what: str, total: int | None, unit: str) -> Iterator[T]:
    """Pass `items` through, showing how many have been taken."""
    with Progress(what, total, unit) as progress:
        for item in items:
            yield item
            progress.advance()
