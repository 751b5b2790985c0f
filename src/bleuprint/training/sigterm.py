"""SIGTERM, by which a cluster warns a process some time before it kills it."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def collect_sigterm() -> Iterator[Sequence[int]]:
    """Return a context in which SIGTERM is added to a list instead of ending the process.

    Clusters send SIGTERM some time before they kill a process, so that it can save its work. They
    may repeat the signal: after the first one, the process ignores it even after the context.

    Yields:
        The signals received so far. The list grows while the context lasts.
    """
    received: list[int] = []
    previous_handler = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        next_handler = signal.SIG_IGN if received else previous_handler
        signal.signal(signal.SIGTERM, next_handler)
