"""Which processes change how Ctrl-C acts, and when."""

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
def kept_handler():
    """Ctrl-C acts after a test as it did before."""
    before = signal.getsignal(signal.SIGINT)
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    signal.signal(signal.SIGINT, before)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


OURS = [
    ["/project/.venv/bin/bleuprint", "plan"],
    ["/project/src/bleuprint/__main__.py", "plan"],
    ["stages/train.py", "tiny"],
]
OTHERS = [["/usr/bin/pytest"], ["notebook.py"], ["stages"], [""], []]


@pytest.mark.parametrize("arguments", OURS)
def test_ctrl_c_ends_a_command_or_stage_at_once(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.terminate_on_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    interrupts.enable_keyboard_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("arguments", OTHERS)
def test_a_program_that_imports_this_one_keeps_its_handler(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.block_interrupts()
    interrupts.terminate_on_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize(("module", "is_ours"), [("bleuprint", True), ("pytest", False)])
def test_a_module_is_known_while_python_looks_for_it(monkeypatch, module, is_ours):
    monkeypatch.setattr(sys, "argv", ["-m", "plan"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", module, "plan"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.terminate_on_interrupt()
    assert (signal.getsignal(signal.SIGINT) is signal.SIG_DFL) == is_ours


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None], ids=["ignored", "own"])
def test_a_handler_of_the_caller_stays(monkeypatch, handler):
    """Such as that of nohup."""
    monkeypatch.setattr(sys, "argv", OURS[0])
    signal.signal(signal.SIGINT, handler)
    interrupts.terminate_on_interrupt()
    interrupts.enable_keyboard_interrupt()
    assert signal.getsignal(signal.SIGINT) is handler


def test_what_comes_while_ctrl_c_is_held_acts_at_its_end(monkeypatch):
    monkeypatch.setattr(sys, "argv", OURS[0])
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append("SIGINT"))
    interrupts.block_interrupts()
    # to this thread: others of the process do not hold it
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    assert came == []
    interrupts.terminate_on_interrupt()
    assert came == ["SIGINT"]


class Color(enum.Enum):
    """A value during whose representation the user presses Ctrl-C."""

    RED = "red"

    def __repr__(self):
        signal.raise_signal(signal.SIGINT)
        return "red"


@dataclass(frozen=True)
class Paint:
    """A document with that value."""

    color: Literal[Color.RED]


def test_ctrl_c_while_pydantic_builds_a_schema_is_no_error_of_the_schema():
    """Its core, written in Rust, asks for the representation of each allowed value."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        pydantic_adapters.type_adapter(Paint)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_pydantic_builds_a_validator_is_no_error_of_the_schema():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pydantic_adapters.type_adapter(Paint)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        pydantic_adapters.strict_validator(Paint)


def test_ctrl_c_acts_once_after_a_block_that_fails():
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append("SIGINT"))
    with pytest.raises(LookupError), interrupts.postpone_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert came == []
        raise LookupError
    assert came == ["SIGINT"]


def test_nothing_is_postponed_in_another_thread():
    """Python never handles a signal there, and refuses to change how it acts."""
    handlers = []

    def work():
        with interrupts.postpone_interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]


class Interrupted:
    """An object during whose end the user presses Ctrl-C."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_the_end_of_an_object_ends_the_process_a_moment_later(monkeypatch, capsys):
    """Python cannot raise it there: it would print the traceback and go on."""
    monkeypatch.setattr(sys, "argv", OURS[0])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    interrupts.enable_keyboard_interrupt()
    ending = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        del ending
        time.sleep(60)
    assert capsys.readouterr().err == ""


def test_another_error_in_the_end_of_an_object_is_printed(capsys):
    class Broken:
        def __del__(self):
            raise LookupError("an error of its own")

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    interrupts.enable_keyboard_interrupt()
    broken = Broken()
    del broken
    assert "LookupError: an error of its own" in capsys.readouterr().err
