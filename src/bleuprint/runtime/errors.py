"""The errors of this project, and how each of its programs ends.

Every program, whether a command or a stage, ends by `run_main(main)`. This function turns what
`main` raises into one line on standard error and an exit status:

| raised by `main`                    | printed                 | exit status                      |
| ----------------------------------- | ----------------------- | -------------------------------- |
| nothing                             | nothing                 | 0                                |
| UserError, or the machine's errors  | one line for each error | 1                                |
| PeerLost                            | one line                | 69 (EX_UNAVAILABLE)              |
| Interrupted, after SIGTERM          | one line, as a note     | 75 (EX_TEMPFAIL): run it again   |
| KeyboardInterrupt (Ctrl-C)          | "interrupted"           | 130                              |
| BrokenPipeError of standard output  | nothing                 | 141, as after SIGPIPE            |
| any other exception, which is a bug | its traceback           | 1                                |

Errors of the machine, such as a full disk or too little memory, are recognized by `machine_errors`.
"""

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

# The exit status of a process that ends because another process of its training is lost.
PEER_LOST = os.EX_UNAVAILABLE
# The exit status after a signal is 128 and the number of the signal, as in a shell.
_CTRL_C_STATUS = 128 + signal.SIGINT
_BROKEN_PIPE_STATUS = 128 + signal.SIGPIPE
# Functions that `run_main` calls when `main` has returned, in this order.
AT_SUCCESS: list[Callable[[], None]] = []
# The environment variable that the launcher of several training processes sets in each of them, to
# the launcher's process id. The launcher prints the first error of all processes.
LAUNCHER_VARIABLE = "BLEUPRINT_LAUNCHED"


class UserError(Exception):
    """An error that the user can fix; it is printed in one line, without a traceback.

    The message names the file, the line and the value, as far as there are any.
    """

    status = 1


class UserErrors(UserError):
    """Several errors, such as all mistakes in a file; each is printed in one line.

    Attributes:
        lines: The message of each error.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        """Create one exception from the messages of several errors."""
        self.lines = list(lines)
        super().__init__("\n".join(self.lines))


class Unreachable(UserError):
    """A download that failed because the host did not return the file."""


class PeerLost(Exception):
    """The loss of another process of the same training, which has ended or does not answer."""

    status = PEER_LOST


class Interrupted(Exception):
    """A stop by SIGTERM: the process has saved its state and has not finished its work."""

    status = os.EX_TEMPFAIL


def run_main(main: Callable[[], None]) -> NoReturn:
    """Run the main function of a program, and end the process with a message and an exit status.

    If `main` raises an error that the user can fix, or an error of the machine such as a full disk,
    one line is printed, and the status is 1. Ctrl-C prints "interrupted". Any other exception is a
    bug, and its traceback is printed. `main` may also end the process itself by `sys.exit`, as
    argparse does.

    Args:
        main: The work of the program. If it returns, the functions in `AT_SUCCESS` are called.
    """
    prepare_streams()
    interrupts.enable_keyboard_interrupt()
    try:
        system_exit = _run_and_complete(main)
        # Flush inside `try`, so that an error, such as a full disk, is reported like any other.
        sys.stdout.flush()
        if system_exit is not None:
            # From here on, Ctrl-C ends the process without a traceback.
            interrupts.terminate_on_interrupt()
            raise system_exit
    except KeyboardInterrupt:
        _report_and_exit(_CTRL_C_STATUS, ["interrupted"])
    except Exception as error:
        if _is_caused_by_ctrl_c(error):
            _report_and_exit(_CTRL_C_STATUS, ["interrupted"])
        _exit_for_error(error)
    _exit(0)


def _is_caused_by_ctrl_c(error: BaseException) -> bool:
    """Return whether an error is a KeyboardInterrupt, or was raised because of one.

    Python 3.11 turns a KeyboardInterrupt that arrives while a class is created, as in an import,
    into a RuntimeError.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__
    return False


def _run_and_complete(main: Callable[[], None]) -> SystemExit | None:
    """Run the main function of a program, then the functions that other modules have registered.

    These functions, such as one that records how long a stage took, are in the list AT_SUCCESS.
    They are called only if `main` returns.

    Returns:
        The exception with which `main` ended the process itself (`sys.exit`); None if it returned.
    """
    try:
        main()
    except SystemExit as system_exit:
        return system_exit
    for call in AT_SUCCESS:
        call()
    return None


def _exit_for_error(error: Exception) -> NoReturn:
    """Print a message about an exception, or its traceback if it is a bug, and end the process.

    An exception that neither the user nor the machine has caused is a bug.
    """
    if isinstance(error, BrokenPipeError) and error.filename == STDOUT:
        # The program that read the output has ended, as `head` does in `bleuprint plan | head`.
        discard_output()
        sys.exit(_BROKEN_PIPE_STATUS)
    messages = _messages_for_user(error)
    if messages:
        status = getattr(error, "status", 1)
        _report_and_exit(status, messages)
    traceback_text = mask(traceback.format_exc())
    is_printed_by_launcher = _record_for_launcher(1, traceback_text)
    if not is_printed_by_launcher:
        sys.excepthook(type(error), error, error.__traceback__)
    _exit(1)


def _messages_for_user(error: Exception) -> list[str]:
    """Return the messages that explain an error to the user, one line each.

    The list is empty if neither the user nor the machine has caused the error: it is a bug.
    """
    if isinstance(error, UserErrors):
        return error.lines
    if isinstance(error, UserError | PeerLost | Interrupted):
        return [str(error)]
    message = describe_machine_error(error)
    return [message] if message else []


def _report_and_exit(status: int, messages: list[str]) -> NoReturn:
    """Print the messages and end the process.

    If the process is one of several that a launcher has started, the launcher prints them.

    Args:
        status: The exit status.
        messages: The messages, one line each.
    """
    is_printed_by_launcher = _record_for_launcher(status, masked_line("; ".join(messages)))
    if not is_printed_by_launcher:
        for message in messages:
            print_message(message, message_kind(status))
    _exit(status)


def _record_for_launcher(status: int, message: str) -> bool:
    """Write the message and the exit status to a file, if a launcher has started this process.

    torch's launcher of training processes sets an environment variable to the path of this file.

    Args:
        status: The exit status.
        message: The message, or the traceback of a bug.

    Returns:
        Whether the launcher will print the message, so that this process need not. Our own launcher
        prints it. torchrun may restart the processes before it reads the file.
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


def _exit(status: int) -> NoReturn:
    """End the process with an exit status.

    If it is one of several training processes and has failed, it ends at once. It does not wait for
    the other processes, which may never answer.
    """
    try:
        sys.stdout.flush()
    except OSError:
        # A message about the failure has been printed already. Without this call, Python would
        # print this error, too, when it exits.
        discard_output()
    interrupts.terminate_on_interrupt()
    if status == PEER_LOST or (status != 0 and _is_in_process_group()):
        # sys.exit would call torch's clean-up, which waits for the other processes.
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _is_in_process_group() -> bool:
    """Return whether this process has joined a group of training processes."""
    # If torch has not been imported, there is no group. Importing it here would take seconds.
    torch_distributed = sys.modules.get("torch.distributed")
    return torch_distributed is not None and torch_distributed.is_initialized()


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the process with a message in one line if the `with` block raises an error.

    This is so for errors that the user or the machine has caused; other exceptions are not caught.
    Use it where our code is run by another program, such as Snakemake, and not by `run_main`.
    """
    try:
        yield
    except Exception as error:
        messages = _messages_for_user(error)
        if not messages:
            raise
        for message in messages:
            print_message(message)
        sys.exit(1)


def _print_uncaught(
    error_type: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an exception that no code has caught, such as one that an import raises.

    Python calls this function as `sys.excepthook`. An error of the machine, such as a full disk, is
    printed in one line; other exceptions are printed with their traceback.
    """
    if _is_caused_by_ctrl_c(error):
        print_message("interrupted")
        return
    message = describe_machine_error(error)
    if message:
        print_message(message)
    else:
        sys.__excepthook__(error_type, error, trace)


sys.excepthook = _print_uncaught


def print_message(message: str, kind: str = "error") -> None:
    """Print a message in one line on standard error: `bleuprint: error: ...`.

    Args:
        message: The text; secrets in it are masked, and control characters are escaped.
        kind: "error", "warning" or "note".
    """
    # On a terminal, the cursor may be behind the progress bar of another process. These codes move
    # the cursor to the start of the line (\r) and erase the line (ESC [ K).
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    erase_line = "\r\x1b[K" if is_terminal else ""
    line = printable(f"bleuprint: {kind}: {masked_line(message)}\n")
    raw_stderr().write(erase_line + line)
    raw_stderr().flush()


def masked_line(message: str) -> str:
    """Return a message in one line, without secrets.

    Secrets are masked first, since a password may contain a space or a line break.
    """
    return " ".join(mask(message).split())


def message_kind(status: int) -> str:
    """Return "note" if the exit status means that a user has stopped the program, else "error"."""
    return "note" if status in (Interrupted.status, _CTRL_C_STATUS) else "error"
