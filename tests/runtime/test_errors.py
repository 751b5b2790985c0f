"""How `run` ends a command: its exit status, and what it says on stderr."""

import json
import os
from types import SimpleNamespace

import pytest

from bleuprint.runtime import errors
from bleuprint.runtime.errors import (
    LAUNCHER_VARIABLE,
    Interrupted,
    PeerLost,
    Unreachable,
    UserError,
    UserErrors,
)
from bleuprint.runtime.streams import STDOUT


@pytest.fixture
def exit_status(monkeypatch):
    """Return a function that runs a function `main` as a command and returns its exit status."""
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    monkeypatch.delenv(LAUNCHER_VARIABLE, raising=False)
    # run_main would replace the streams and signals of pytest.
    signals = SimpleNamespace(
        enable_keyboard_interrupt=lambda: None, terminate_on_interrupt=lambda: None
    )
    monkeypatch.setattr(errors, "interrupts", signals)
    monkeypatch.setattr(errors, "prepare_streams", lambda: None)
    monkeypatch.setattr(errors, "discard_output", lambda: None)

    def exit_at_once(status):
        raise SystemExit(status)

    monkeypatch.setattr(os, "_exit", exit_at_once)

    def run(main):
        with pytest.raises(SystemExit) as raised:
            errors.run_main(main)
        return raised.value.code

    return run


def raise_in_main(error):
    """Return a function `main` that raises an error."""

    def main():
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        pytest.param(
            UserError("a.txt: line 3: 'x'\nis bad"),
            1,
            "error: a.txt: line 3: 'x' is bad\n",
            id="user error",
        ),
        pytest.param(
            Unreachable("host: no answer"), 1, "error: host: no answer\n", id="unreachable host"
        ),
        pytest.param(
            UserErrors(["first", "second"]),
            1,
            "error: first\nbleuprint: error: second\n",
            id="two user errors",
        ),
        pytest.param(
            PeerLost("process 1 is lost"),
            69,
            "error: process 1 is lost\n",
            id="lost process of a group",
        ),
        pytest.param(
            Interrupted("stopped; saved"), 75, "note: stopped; saved\n", id="stopped training"
        ),
        pytest.param(KeyboardInterrupt(), 130, "note: interrupted\n", id="Ctrl-C"),
        pytest.param(
            FileNotFoundError(2, "No such file", "a.txt"),
            1,
            "error: No such file: a.txt\n",
            id="missing file",
        ),
    ],
)
def test_an_error_ends_a_command_with_its_status_and_message(
    exit_status, capsys, error, status, message
):
    """Each message has one line, without a traceback; several errors have a line each."""
    assert exit_status(raise_in_main(error)) == status
    assert capsys.readouterr() == ("", f"bleuprint: {message}")


def test_ctrl_c_while_a_class_is_created_ends_as_interrupted(exit_status, capsys):
    """Python 3.11 raises a RuntimeError in place of a KeyboardInterrupt there, as in an import."""

    class Attribute:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt

    def main():
        type("Created", (), {"attribute": Attribute()})

    assert exit_status(main) == 130
    assert capsys.readouterr().err.endswith("note: interrupted\n")


def test_an_unexpected_exception_is_printed_with_its_traceback(exit_status, capsys):
    """It is a bug of ours, and the traceback shows where."""
    assert exit_status(raise_in_main(KeyError("no such key"))) == 1

    messages = capsys.readouterr().err
    assert messages.startswith("Traceback ")
    assert messages.endswith("KeyError: 'no such key'\n")


def test_a_closed_pipe_ends_a_command_silently_with_status_141(exit_status, capsys):
    """In `bleuprint ... | head`, head ends first; 141 = 128 + 13 (SIGPIPE) is usual."""
    assert exit_status(raise_in_main(BrokenPipeError(32, "Broken pipe", STDOUT))) == 141
    assert capsys.readouterr() == ("", "")


def test_a_successful_command_calls_the_functions_in_at_success_at_its_end(
    exit_status, monkeypatch
):
    calls = []
    monkeypatch.setattr(errors, "AT_SUCCESS", [lambda: calls.append("at success")])

    status = exit_status(lambda: calls.append("main"))

    assert status == 0
    assert calls == ["main", "at success"]


@pytest.mark.parametrize(
    ("error", "expected_status"),
    [
        pytest.param(UserError("bad"), 1, id="user error"),
        pytest.param(SystemExit(2), 2, id="argparse, which exits itself"),
    ],
)
def test_a_failing_command_skips_the_functions_in_at_success(
    exit_status, monkeypatch, error, expected_status
):
    calls = []
    monkeypatch.setattr(errors, "AT_SUCCESS", [lambda: calls.append("at success")])

    status = exit_status(raise_in_main(error))

    assert status == expected_status
    assert calls == []


@pytest.mark.parametrize(
    ("has_our_launcher", "expected_messages"),
    [
        pytest.param(True, "", id="our launcher"),
        pytest.param(
            False, "bleuprint: error: first\nbleuprint: error: second\n", id="torchrun alone"
        ),
    ],
)
def test_a_launched_process_writes_its_error_to_a_file_for_the_launcher(
    exit_status, capsys, tmp_path, monkeypatch, has_our_launcher, expected_messages
):
    """Our launcher prints the message once for all processes; torchrun alone would not print it."""
    error_file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(error_file))
    if has_our_launcher:
        monkeypatch.setenv(LAUNCHER_VARIABLE, "4711")  # The launcher's process id.

    assert exit_status(raise_in_main(UserErrors(["first", "second"]))) == 1

    record = json.loads(error_file.read_text())
    assert record["message"] == "first; second"
    assert record["status"] == 1
    assert capsys.readouterr().err == expected_messages


def test_a_launched_process_prints_its_error_if_the_file_cannot_be_written(
    exit_status, capsys, tmp_path, monkeypatch
):
    """The folder of the file is missing; the message must not be lost."""
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "missing" / "error.json"))
    monkeypatch.setenv(LAUNCHER_VARIABLE, "4711")  # The launcher's process id.

    assert exit_status(raise_in_main(UserError("bad"))) == 1
    assert capsys.readouterr().err == "bleuprint: error: bad\n"


def test_exit_on_error_prints_user_errors_and_exits_with_status_one(capsys):
    with pytest.raises(SystemExit) as raised, errors.exit_on_error():
        raise UserErrors(["first", "second"])

    assert raised.value.code == 1
    assert capsys.readouterr().err == "bleuprint: error: first\nbleuprint: error: second\n"


def test_exit_on_error_passes_unexpected_exceptions_on():
    """They are bugs, for which Python prints a traceback."""
    with pytest.raises(KeyError), errors.exit_on_error():
        raise KeyError("a bug")


def test_exit_on_error_does_nothing_after_a_success(capsys):
    with errors.exit_on_error():
        pass

    assert capsys.readouterr() == ("", "")
