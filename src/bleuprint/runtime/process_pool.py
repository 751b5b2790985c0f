"""Parallel map over processes; the results do not depend on their number."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import chain, islice
from multiprocessing import active_children, get_context, parent_process
from typing import Any, TypeVar

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import explain_kill

T = TypeVar("T")
R = TypeVar("R")

# Below this number of parts, starting processes takes longer than the work.
_WORTH_A_POOL = 4


def map_parts(
    prepare: Callable[[], Callable[[T], R]], parts: Iterable[T], workers: int
) -> Generator[R, None, None]:
    """Apply the function that `prepare` returns to each part; yields the results in order.

    `prepare` is called once in each process. It, the parts and the results are pickled. Parts are
    read a few ahead, so that memory does not grow with their number.
    """
    rest = iter(parts)
    head = list(islice(rest, _WORTH_A_POOL))
    if workers == 1 or len(head) < _WORTH_A_POOL:
        yield from map(prepare(), chain(head, rest))
        return
    waiting: deque[Future[R]] = deque()
    others = set(active_children())
    # Fork is fastest, but copies locks held by the threads of PyTorch or MLflow.
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
                worker.kill()  # they ignore the pool's SIGTERM
            raise UserError(
                f"a worker process was killed{explain_kill()}; "
                f"fewer workers take less memory (BLEUPRINT_WORKERS, now {workers})"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


# In a worker process: returns its function, which is prepared at the first part.
_function: Callable[[], Callable[[Any], Any]]


def _begin(prepare: Callable[[], Callable[[Any], Any]]) -> None:
    """Ignore signals, which terminals and clusters send to all, and end with the parent."""
    global _function
    _function = cache(prepare)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _work(part: Any) -> Any:
    return _function()(part)


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)
