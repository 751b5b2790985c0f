"""A parallel map over processes, whose results do not depend on the number of processes."""

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
from bleuprint.runtime.machine_errors import add_kill_reason

T = TypeVar("T")
R = TypeVar("R")

# With fewer parts, starting processes takes longer than the work, unless a part takes minutes.
_MIN_PARTS_FOR_POOL = 4
# So many parts per worker wait for a process, or for their results to be yielded.
_PENDING_PARTS_PER_WORKER = 2


def map_parts(
    prepare: Callable[[], Callable[[T], R]],
    parts: Iterable[T],
    workers: int,
    min_parts: int = _MIN_PARTS_FOR_POOL,
    limit_variable: str = "BLEUPRINT_WORKERS",
) -> Generator[R, None, None]:
    """Apply a function to each part of some work, in several processes; yield results in order.

    Only a few parts are read ahead of the results, so that memory does not grow with their number.

    Args:
        prepare: A function that returns the function to apply. It is called once in each process,
            so that it can load what is large or cannot be sent to another process, such as a
            tokenizer. `prepare` itself, the parts and the results are pickled.
        parts: The parts of the work.
        workers: The number of processes; with 1, this process does the work itself.
        min_parts: The lowest number of parts for which processes are started. With fewer parts,
            this process does the work itself.
        limit_variable: The environment variable by which a user lowers the number of processes, for
            the message about a process that was killed.

    Raises:
        UserError: A process was killed.
    """
    # Read a few parts, to find out whether there is enough work for several processes.
    remaining_parts = iter(parts)
    first_parts = list(islice(remaining_parts, min_parts))
    all_parts = chain(first_parts, remaining_parts)
    if workers == 1 or len(first_parts) < min_parts:
        function = prepare()
        yield from map(function, all_parts)
    else:
        yield from _map_in_pool(prepare, all_parts, workers, limit_variable)


def _map_in_pool(
    prepare: Callable[[], Callable[[T], R]],
    parts: Iterable[T],
    workers: int,
    limit_variable: str,
) -> Generator[R, None, None]:
    """Apply a function to each part in a pool of processes, and yield the results in order.

    Args:
        prepare: A function that returns the function to apply; it is called once in each process.
        parts: The parts of the work.
        workers: The number of processes.
        limit_variable: The environment variable that limits the number of processes.

    Raises:
        UserError: A process was killed.
    """
    # Results that are not yielded yet, oldest first; some are still being computed.
    results: deque[Future[R]] = deque()
    # Processes that other code has started. If workers must be killed, these must survive.
    earlier_children = set(active_children())
    # Fork is the fastest way to start a process. But it copies the state of locks without the
    # threads that hold them. With torch, whose threads hold locks, a copy could wait for ever.
    start_method = "forkserver" if "torch" in sys.modules else "fork"
    with ProcessPoolExecutor(
        max_workers=workers,
        mp_context=get_context(start_method),
        initializer=_initialize_worker,
        initargs=(prepare,),
    ) as pool:
        try:
            for part in parts:
                results.append(pool.submit(_process_part, part))
                if len(results) > _PENDING_PARTS_PER_WORKER * workers:
                    yield results.popleft().result()
            while results:
                yield results.popleft().result()
        except (BrokenProcessPool, KeyboardInterrupt) as error:
            # The pool itself would end its workers by SIGTERM, which they ignore
            # (`_initialize_worker`). After Ctrl-C it would wait for their parts, perhaps for hours.
            for worker in set(active_children()) - earlier_children:
                worker.kill()
            if isinstance(error, KeyboardInterrupt):
                raise
            event = add_kill_reason("a worker process was killed")
            raise UserError(
                f"{event}. Fewer workers need less memory: lower {limit_variable} (now {workers})"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


# In a worker process: a function that returns the function to apply, and prepares it only once.
_get_function: Callable[[], Callable[[Any], Any]]


def _initialize_worker(prepare: Callable[[], Callable[[Any], Any]]) -> None:
    """Set up a worker process: how it gets its function, and when it ends.

    The worker ignores Ctrl-C and SIGTERM. Terminals and clusters send these signals to all
    processes, and the parent process decides how to react. A thread ends the worker when the parent
    has ended.

    Args:
        prepare: A function that returns the function to apply to each part.
    """
    global _get_function
    # The cache calls `prepare` for the first part of the work, and only once.
    _get_function = cache(prepare)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _process_part(part: Any) -> Any:
    """Apply the function to a part, in a worker process."""
    try:
        # Both calls may fail. The first one may load a model, whose files may be damaged.
        function = _get_function()
        return function(part)
    except UserError as error:
        # The parent process rebuilds an exception from its message. It could not do so for a
        # subclass that is created from something else.
        raise UserError(str(error)) from None


def _end_with_parent() -> None:
    """Wait until the parent process has ended, and then end this worker process.

    This function runs in a thread of the worker. `os._exit` ends the process at once; `sys.exit`
    would end only the thread.
    """
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
