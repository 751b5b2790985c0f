"""Work shared out to processes, its results in order: the same for any number of them."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import active_children, get_context, parent_process
from typing import Any, TypeVar

from bleuprint.runtime.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

# With fewer parts than this the work is done before the processes would have started.
_WORTH_A_POOL = 4


def map_parts(
    prepare: Callable[[], Callable[[T], R]], parts: Iterable[T], workers: int
) -> Generator[R, None, None]:
    """The function that `prepare` makes, applied to each part, in order.

    `prepare` is called once in each process; it, the parts and the results travel between them.
    Parts are taken as they are needed, a few ahead, so that memory does not grow with them.
    """
    rest = iter(parts)
    head = list(islice(rest, _WORTH_A_POOL))
    if workers == 1 or len(head) < _WORTH_A_POOL:
        yield from map(prepare(), chain(head, rest))
        return
    waiting: deque[Future[R]] = deque()
    others = set(active_children())
    # Forked at once where nothing speaks against it; but a fork of a process with PyTorch's (or
    # MLflow's) threads copies the locks that they happen to hold.
    context = get_context("forkserver" if "torch" in sys.modules else "fork")
    with ProcessPoolExecutor(workers, context, _begin, (prepare,)) as pool:
        try:
            for part in chain(head, rest):
                waiting.append(pool.submit(_work, part))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            for worker in set(active_children()) - others:
                worker.kill()  # the pool asks them to end, which they do not hear
            raise UserError("a worker process was killed; is memory short?") from None
        finally:
            pool.shutdown(cancel_futures=True)


class _Worker:
    """What a worker process has been told to do."""

    prepare: Callable[[], Callable[[Any], Any]]
    function: Callable[[Any], Any] | None = None


def _begin(prepare: Callable[[], Callable[[Any], Any]]) -> None:
    """Leave signals to the parent, and end when it ends, however that comes about.

    A terminal and a cluster send theirs to all; the parent may need us to end well.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _Worker.prepare, _Worker.function = staticmethod(prepare), None


def _work(part: Any) -> Any:
    if _Worker.function is None:
        _Worker.function = staticmethod(_Worker.prepare())
    return _Worker.function(part)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
