"""Which programs change what Ctrl-C (the signal SIGINT) does, and when."""

import enum
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Literal

import pytest

from bleuprint.runtime import interrupts, pydantic_adapters


@pytest.fixture(autouse=True)
def restored_handler():
    """Restores after each test what Ctrl-C does."""
    before = signal.getsignal(signal.SIGINT)
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    signal.signal(signal.SIGINT, before)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


# The command lines (sys.argv) of our command and stages, and of other programs.
OURS = [
    ["/project/.venv/bin/bleuprint", "plan"],
    ["/project/src/bleuprint/__main__.py", "plan"],
    ["stages/train.py", "tiny"],
]
OTHERS = [["/usr/bin/pytest"], ["notebook.py"], ["stages"], [""], []]


@pytest.mark.parametrize("arguments", OURS, ids=["installed command", "module", "stage"])
def test_our_programs_choose_whether_ctrl_c_ends_them_or_raises_an_exception(
    monkeypatch, arguments
):
    """SIG_DFL ends the process at once; default_int_handler raises KeyboardInterrupt."""
    monkeypatch.setattr(sys, "argv", arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    interrupts.terminate_on_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL

    interrupts.enable_keyboard_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "arguments", OTHERS, ids=["pytest", "notebook", "folder of stages", "empty name", "no name"]
)
def test_a_program_that_imports_our_package_keeps_its_own_ctrl_c(monkeypatch, arguments):
    """In a notebook, for example, Ctrl-C must stop a cell and not end Python."""
    monkeypatch.setattr(sys, "argv", arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    interrupts.block_interrupts()
    interrupts.terminate_on_interrupt()

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    blocked_signals = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.SIGINT not in blocked_signals


@pytest.mark.parametrize(
    ("module", "expected_handler"),
    [("bleuprint", signal.SIG_DFL), ("pytest", signal.default_int_handler)],
)
def test_python_m_bleuprint_is_recognized_while_python_searches_the_module(
    monkeypatch, module, expected_handler
):
    """Until Python has found the module of `python -m MODULE`, sys.argv starts with "-m".

    SIG_DFL, which lets Ctrl-C end the process at once, is set only for our module.
    """
    monkeypatch.setattr(sys, "argv", ["-m", "plan"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", module, "plan"])
    signal.signal(signal.SIGINT, signal.default_int_handler)

    interrupts.terminate_on_interrupt()

    assert signal.getsignal(signal.SIGINT) is expected_handler


def do_nothing(*_):
    """Handle Ctrl-C by ignoring it."""


@pytest.mark.parametrize("handler", [signal.SIG_IGN, do_nothing], ids=["ignored", "function"])
def test_our_programs_keep_a_handler_that_others_have_set(monkeypatch, handler):
    """Under nohup, for example, a program ignores Ctrl-C."""
    monkeypatch.setattr(sys, "argv", ["/project/.venv/bin/bleuprint", "plan"])
    signal.signal(signal.SIGINT, handler)

    interrupts.terminate_on_interrupt()
    interrupts.enable_keyboard_interrupt()

    assert signal.getsignal(signal.SIGINT) is handler


def record_interrupts():
    """Return a list to which each Ctrl-C from now on appends "SIGINT"."""
    arrived = []
    signal.signal(signal.SIGINT, lambda *_: arrived.append("SIGINT"))
    return arrived


def test_ctrl_c_while_interrupts_are_blocked_takes_effect_when_they_are_unblocked(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/project/.venv/bin/bleuprint", "plan"])
    arrived = record_interrupts()

    interrupts.block_interrupts()
    # Only this thread blocks the signal, so the signal is sent to this thread.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    assert arrived == []

    interrupts.terminate_on_interrupt()
    assert arrived == ["SIGINT"]


class Color(enum.Enum):
    """An enumeration; its `repr` simulates a user who presses Ctrl-C at that moment."""

    RED = "red"

    def __repr__(self):
        signal.raise_signal(signal.SIGINT)
        return "red"


@dataclass(frozen=True)
class Paint:
    """A document with a field of that enumeration."""

    color: Literal[Color.RED]


def test_ctrl_c_while_pydantic_builds_a_schema_raises_keyboard_interrupt():
    """Pydantic's core, written in Rust, would report it as an error of the schema.

    The core calls the `repr` of each allowed value; that of Color sends Ctrl-C.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)

    with pytest.raises(KeyboardInterrupt):
        pydantic_adapters.type_adapter(Paint)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_pydantic_builds_a_validator_raises_keyboard_interrupt():
    """A validator is built from a schema, which is built first while Ctrl-C is ignored.

    pydantic calls the `repr` of each allowed value; that of Color sends Ctrl-C.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pydantic_adapters.type_adapter(Paint)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    with pytest.raises(KeyboardInterrupt):
        pydantic_adapters.strict_validator(Paint)


def test_postponed_interrupts_take_effect_once_even_if_the_block_fails():
    arrived = record_interrupts()

    with pytest.raises(LookupError), interrupts.postpone_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert arrived == []
        raise LookupError

    assert arrived == ["SIGINT"]


def test_postponing_interrupts_in_another_thread_changes_nothing():
    """Python handles signals in the main thread only, and lets only that thread set a handler."""
    handler_before = signal.getsignal(signal.SIGINT)
    handlers_inside = []

    def postpone():
        with interrupts.postpone_interrupts():
            handlers_inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=postpone)
    thread.start()
    thread.join()

    assert handlers_inside == [handler_before]


class InterruptedAtItsEnd:
    """An object; a user presses Ctrl-C at the moment when Python deletes it."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_a_finalizer_interrupts_the_program_a_moment_later(monkeypatch, capsys):
    """Python drops an exception in `__del__`: it would print a traceback and go on."""
    monkeypatch.setattr(sys, "argv", ["/project/.venv/bin/bleuprint", "plan"])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    interrupts.enable_keyboard_interrupt()
    deleted = InterruptedAtItsEnd()

    with pytest.raises(KeyboardInterrupt):
        del deleted
        time.sleep(60)  # The exception ends the sleep.

    assert capsys.readouterr().err == ""


def test_an_error_in_a_finalizer_is_printed_as_python_does(capsys):
    """Python cannot pass on what a method __del__ raises. It prints errors, and loses Ctrl-C.

    `enable_keyboard_interrupt` sends a lost Ctrl-C again, but leaves errors to Python.
    """

    class FailsAtItsEnd:
        def __del__(self):
            raise LookupError("bug in __del__")

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # pytest has set a handler of its own
    interrupts.enable_keyboard_interrupt()
    deleted = FailsAtItsEnd()

    del deleted  # Python calls __del__ here.

    assert "LookupError: bug in __del__" in capsys.readouterr().err
