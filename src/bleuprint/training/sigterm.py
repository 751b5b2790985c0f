"""SIGTERM, by which a cluster warns a process some time before it kills it."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def collect_sigterm() -> Iterator[Sequence[int]]:
    """Return a context in which SIGTERM does not end the process, but is added to a list.

    Clusters send SIGTERM some time before they kill a process, so that it can save its work. The
    caller looks into the list from time to time, and stops when it is not empty.

    Yields:
        The signals received so far. The list grows while the context lasts.
    """
    received: list[int] = []
    previous_handler = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        # A cluster may repeat the signal while the process ends: it is then ignored.
        next_handler = signal.SIG_IGN if received else previous_handler
        signal.signal(signal.SIGTERM, next_handler)
