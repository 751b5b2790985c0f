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
    """Let Ctrl-C end this process at once, without a traceback.

    If Ctrl-C was pressed while `block_interrupts` was holding it back, the process ends now. A
    program of a user that only imports our package keeps its own handling of Ctrl-C.
    """
    if not _is_our_program():
        return
    # Python allows only its main thread to change the handling of signals.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def block_interrupts() -> None:
    """Hold Ctrl-C back, before this process restarts itself.

    While Python starts, Ctrl-C would print a traceback. The restarted program calls
    `terminate_on_interrupt` as soon as possible; if Ctrl-C was pressed in between, it ends there. A
    program of a user that only imports our package keeps its own handling of Ctrl-C.
    """
    if _is_our_program():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def enable_keyboard_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, as is Python's default, so that `run_main` can catch it.

    This reverses `terminate_on_interrupt`. If a program has its own handler of Ctrl-C, nothing is
    changed.
    """
    # Python allows only its main thread to change the handling of signals.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = _repeat_lost_interrupt


def _repeat_lost_interrupt(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send Ctrl-C again if Python has dropped a KeyboardInterrupt.

    An exception in a method such as `__del__` has no caller that could catch it. Python drops it,
    and calls this function as `sys.unraisablehook`. Without it, Ctrl-C at such a moment would have
    no effect.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    # The signal is sent to the main thread, because only there does it interrupt what the program
    # waits for. It is sent a moment later, when the code that dropped the exception has returned.
    main_thread_id = threading.main_thread().ident
    timer = threading.Timer(_REPEAT_SECONDS, signal.pthread_kill, [main_thread_id, signal.SIGINT])
    timer.daemon = True
    timer.start()


@contextmanager
def postpone_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back during a `with` block, and let it act after the block.

    It is for libraries that do not pass a KeyboardInterrupt on to their caller. The core of
    pydantic, which is written in Rust, would report it as a schema error, or ignore it.
    """
    has_arrived = False

    def remember(*_: object) -> None:
        """Record that Ctrl-C was pressed; Python calls this function at that moment."""
        nonlocal has_arrived
        has_arrived = True

    try:
        handler = signal.signal(signal.SIGINT, remember)
    except ValueError:
        # This is not the main thread. Python handles signals in the main thread only, so Ctrl-C
        # cannot interrupt the block.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if has_arrived:
            signal.raise_signal(signal.SIGINT)


def _is_our_program() -> bool:
    """Return whether this process is the command `bleuprint` or a script in stages/.

    It may also be another program that imports the package `bleuprint`, such as a notebook.
    """
    if sys.argv[:1] == ["-m"]:
        # Python has not yet found the module of `python -m MODULE`: argv[0] is "-m" until then.
        return "bleuprint" in sys.orig_argv
    script = PurePath(sys.argv[0] if sys.argv else "")
    # `python -m bleuprint` runs the file bleuprint/__main__.py.
    return script.name == "bleuprint" or script.parent.name in ("bleuprint", "stages")
