"""What Ctrl-C (SIGINT) does in the programs of this project.

- While a program loads its libraries, and while it exits, Ctrl-C ends it at once and silently:
  Python would print the traceback of an import, or of a thread that it waits for. Importing
  `bleuprint` calls `terminate_on_interrupt`.
- From the start of `errors.run_main` until the work is done, Ctrl-C raises KeyboardInterrupt, and
  `run_main` prints one line.

Only our own programs change how signals act, not programs of others that import `bleuprint`. The
exception is `postpone_interrupts`, which every caller may use.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath

# Seconds after which a Ctrl-C that had no effect is repeated.
_REPEAT_SECONDS = 0.05


def terminate_on_interrupt() -> None:
    """Let Ctrl-C end this process at once and silently, if it is a program of ours.

    A Ctrl-C that `block_interrupts` has held back ends the process now.
    """
    if not _is_our_program():
        return
    with suppress(ValueError):  # Python changes signals in its main thread only
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def block_interrupts() -> None:
    """Hold Ctrl-C back until `terminate_on_interrupt`, if this process is a program of ours.

    For a process that replaces itself by a new start of the same program. Until the new start has
    called `terminate_on_interrupt`, Ctrl-C would make Python print a traceback.
    """
    if _is_our_program():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def enable_keyboard_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, after `terminate_on_interrupt`."""
    with suppress(ValueError):  # Python changes signals in its main thread only
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = _repeat_lost_interrupt


def _repeat_lost_interrupt(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send Ctrl-C again if Python has dropped a KeyboardInterrupt.

    Python prints and drops an exception that is raised where no caller can catch it, such as in
    `__del__`. It calls this function as `sys.unraisablehook`.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    # Sent to the main thread: sent to another one, the signal would not end what that thread waits
    # for. Sent later, when the code that dropped the exception has returned.
    main_thread_id = threading.main_thread().ident
    timer = threading.Timer(_REPEAT_SECONDS, signal.pthread_kill, [main_thread_id, signal.SIGINT])
    timer.daemon = True
    timer.start()


@contextmanager
def postpone_interrupts() -> Iterator[None]:
    """Let Ctrl-C act only after the block.

    For calls of libraries that do not pass KeyboardInterrupt on: pydantic's core, which is written
    in Rust, reports it as an error of the schema that it builds, or prints and forgets it.
    """
    has_arrived = False

    def remember(*_: object) -> None:
        """Note that Ctrl-C was pressed; called as the signal's handler."""
        nonlocal has_arrived
        has_arrived = True

    try:
        handler = signal.signal(signal.SIGINT, remember)
    except ValueError:
        # This is not the main thread, and Python handles signals in the main thread only.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if has_arrived:
            signal.raise_signal(signal.SIGINT)


def _is_our_program() -> bool:
    """Return whether this process runs a program of this project.

    That is the command `bleuprint`, `python -m bleuprint`, or a script of stages/.
    """
    if sys.argv[:1] == ["-m"]:
        # While Python looks for the module of `python -m`, "-m" stands in the place of its path.
        return "bleuprint" in sys.orig_argv
    script = PurePath(sys.argv[0] if sys.argv else "")
    # `python -m bleuprint` runs the file bleuprint/__main__.py.
    return script.name == "bleuprint" or script.parent.name in ("bleuprint", "stages")
