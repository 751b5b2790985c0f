"""Ctrl-C while a command or stage loads its libraries, or exits: it ends the process at once.

Python would print the traceback of an import, or of a thread that it waits for. `errors.run_main`
catches Ctrl-C from when it starts until the work is done. Only processes of this project's commands
and stages change how signals act, not those that import it; every caller may use
`postpone_interrupts`.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath

# Seconds after which a Ctrl-C that had no effect is repeated.
_PAUSE = 0.05


def terminate_on_interrupt() -> None:
    """Let Ctrl-C end this process without a message, if it is a command or stage."""
    if not _is_ours():
        return
    with suppress(ValueError):  # imported in another thread than the first
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        # blocked by `block_interrupts`; one that came meanwhile acts now
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def block_interrupts() -> None:
    """Keep Ctrl-C until `terminate_on_interrupt`: for a process that is about to start again."""
    if _is_ours():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def enable_keyboard_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = _repeat


def _repeat(unraisable: "sys.UnraisableHookArgs") -> None:
    """Press Ctrl-C again if KeyboardInterrupt came where Python only prints it, as in `__del__`."""
    if unraisable.exc_type is KeyboardInterrupt:
        first_thread = threading.main_thread().ident
        # to that thread: in another one, a signal does not end what it waits for
        again = threading.Timer(_PAUSE, signal.pthread_kill, [first_thread, signal.SIGINT])
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)


@contextmanager
def postpone_interrupts() -> Iterator[None]:
    """Let Ctrl-C act only after the block.

    For calls of libraries that do not pass KeyboardInterrupt on: pydantic's core, which is written
    in Rust, reports it as an error of the schema that it builds, or prints and forgets it.
    """
    has_arrived = False

    def remember(*_: object) -> None:
        nonlocal has_arrived
        has_arrived = True

    try:
        handler = signal.signal(signal.SIGINT, remember)
    except ValueError:  # in another thread than the first, where Python never handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if has_arrived:
            signal.raise_signal(signal.SIGINT)


def _is_ours() -> bool:
    """Whether this process is `bleuprint`, `python -m bleuprint` or a script of stages/."""
    if sys.argv[:1] == ["-m"]:  # while Python looks for the module
        return "bleuprint" in sys.orig_argv
    script = PurePath(sys.argv[0] if sys.argv else "")
    return script.name == "bleuprint" or script.parent.name in ("bleuprint", "stages")
