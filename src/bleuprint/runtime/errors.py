"""Errors, and the exit status and message with which a command ends."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from bleuprint.runtime import interrupts
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.secrets import mask
from bleuprint.runtime.streams import (
    STDOUT,
    discard_output,
    prepare_streams,
    printable,
    raw_stderr,
)

# Exit status of a process that ends because another process of its training is lost.
PEER_LOST = os.EX_UNAVAILABLE
# Called by `run` when the command has done its work.
AT_SUCCESS: list[Callable[[], None]] = []
# Set in the processes that `launch` starts, to its process id: it prints the first error of all.
LAUNCHER_VARIABLE = "BLEUPRINT_LAUNCHED"


class UserError(Exception):
    """An error the user can fix; reported in one line, without a traceback.

    The message names the file, the line and the value, as far as there are any.
    """

    status = 1


class UserErrors(UserError):
    """Several errors, such as all mistakes of a file; each is reported in one line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [*lines]
        super().__init__("\n".join(self.lines))


class Unreachable(UserError):
    """A host did not return a file."""


class PeerLost(Exception):
    """Another process of the same training has ended or does not answer."""

    status = PEER_LOST


class Interrupted(Exception):
    """SIGTERM stopped the process, which has saved its state: not finished."""

    status = os.EX_TEMPFAIL


def run_main(main: Callable[[], None]) -> NoReturn:
    """Run a command's `main` and exit with the status for the way it ended.

    0: finished; 1: an error of the user or of the machine, printed in one line;
    69 (EX_UNAVAILABLE): another process of the training is lost;
    75 (EX_TEMPFAIL): stopped by SIGTERM, state saved, run it again; 130: Ctrl-C; 141: nobody reads
    standard output any more. Any other exception is a bug and keeps its traceback. `main` may also
    exit by itself, as argparse does.
    """
    prepare_streams()
    interrupts.enable_keyboard_interrupt()
    try:
        ended = _ended(main)
        sys.stdout.flush()
        if ended is not None:
            interrupts.terminate_on_interrupt()
            raise ended
    except KeyboardInterrupt:
        _end(130, ["interrupted"], message_kind(130))
    except Exception as error:
        if isinstance(error, BrokenPipeError) and error.filename == STDOUT:
            discard_output()
            sys.exit(128 + signal.SIGPIPE)
        if lines := _lines(error):
            _end(getattr(error, "status", 1), lines, message_kind(getattr(error, "status", 1)))
        if not _recorded(1, mask(traceback.format_exc())):
            sys.excepthook(type(error), error, error.__traceback__)
        _exit(1)
    _exit(0)


def _ended(main: Callable[[], None]) -> SystemExit | None:
    """Run `main`, and AT_SUCCESS after it; the exit with which it ends by itself, if it does."""
    try:
        main()
    except SystemExit as ended:
        return ended
    for call in AT_SUCCESS:
        call()
    return None


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Exit with status 1 at an error of the user or of the machine, printed in one line."""
    try:
        yield
    except Exception as error:
        if not (lines := _lines(error)):
            raise
        for line in lines:
            print_message(line)
        sys.exit(1)


def _excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Errors outside `run`, as of imports: those of the machine in one line, others as usual."""
    if isinstance(error, KeyboardInterrupt):
        print_message("interrupted")
    elif line := describe_machine_error(error):
        print_message(line)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _excepthook


def masked_line(message: str) -> str:
    """A message in one line, without secrets: a password may contain a space."""
    return " ".join(mask(message).split())


def print_message(message: str, kind: str = "error") -> None:
    """Print an error in one line on stderr."""
    # on a terminal the progress bar of another process may be in the way
    clear = "\r\x1b[K" if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else ""
    line = printable(f"bleuprint: {kind}: {masked_line(message)}\n")
    raw_stderr().write(clear + line)
    raw_stderr().flush()


def _lines(error: Exception) -> list[str]:
    """An error of the user or of the machine as messages of one line; none for a bug."""
    if isinstance(error, UserError | PeerLost | Interrupted):
        return error.lines if isinstance(error, UserErrors) else [str(error)]
    line = describe_machine_error(error)
    return [line] if line else []


def message_kind(status: int) -> str:
    """Return what the message of a process with this exit status is: a planned stop is no error."""
    return "note" if status in (Interrupted.status, 130) else "error"


def _end(status: int, messages: list[str], kind: str) -> NoReturn:
    if not _recorded(status, masked_line("; ".join(messages))):
        for message in messages:
            print_message(message, kind)
    _exit(status)


def _exit(status: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError:  # the error that ends the process has been said
        discard_output()
    interrupts.terminate_on_interrupt()
    torch = sys.modules.get("torch.distributed")
    if status == PEER_LOST or (status and torch and torch.is_initialized()):
        # At once: destroying the process group would wait for other processes, or abort.
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _recorded(status: int, message: str) -> bool:
    """Whether the launcher prints the message: it is then written to torch's error file.

    torchrun shows that file in its own report, but may restart the process before that: so the
    message is printed as well.
    """
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return False
    record = {"message": message, "status": status, "timestamp": time.time()}
    try:
        Path(path).write_text(json.dumps(record), encoding="utf-8")
    except OSError:
        return False
    return LAUNCHER_VARIABLE in os.environ
