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
    """Return a function that runs `main` as a command does and returns its exit status."""
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    monkeypatch.delenv(LAUNCHER_VARIABLE, raising=False)
    # streams and signals are pytest's
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
        (UserError("a.txt: line 3: 'x'\nis bad"), 1, "error: a.txt: line 3: 'x' is bad\n"),
        (Unreachable("host: no answer"), 1, "error: host: no answer\n"),
        (UserErrors(["first", "second"]), 1, "error: first\nbleuprint: error: second\n"),
        (PeerLost("process 1 is lost"), 69, "error: process 1 is lost\n"),
        (Interrupted("stopped; saved"), 75, "note: stopped; saved\n"),
        (KeyboardInterrupt(), 130, "note: interrupted\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), 1, "error: No such file: a.txt\n"),
    ],
)
def test_an_error_ends_a_command_with_its_status_and_one_line(
    exit_status, capsys, error, status, message
):
    assert exit_status(raise_in_main(error)) == status
    assert capsys.readouterr() == ("", f"bleuprint: {message}")


def test_a_bug_keeps_its_traceback(exit_status, capsys):
    assert exit_status(raise_in_main(KeyError("no such key"))) == 1
    messages = capsys.readouterr().err
    assert messages.startswith("Traceback ")
    assert messages.endswith("KeyError: 'no such key'\n")


def test_a_pipe_that_nobody_reads_ends_a_command_silently_with_status_141(exit_status, capsys):
    assert exit_status(raise_in_main(BrokenPipeError(32, "Broken pipe", STDOUT))) == 141
    assert capsys.readouterr() == ("", "")


def test_a_command_that_succeeds_calls_the_functions_in_at_success(exit_status, monkeypatch):
    called = []
    monkeypatch.setattr(errors, "AT_SUCCESS", [lambda: called.append("after")])
    assert exit_status(lambda: called.append("main")) == 0
    assert called == ["main", "after"]


@pytest.mark.parametrize("error", [UserError("bad"), SystemExit(2)])
def test_a_command_that_fails_calls_no_function_in_at_success(exit_status, monkeypatch, error):
    called = []
    monkeypatch.setattr(errors, "AT_SUCCESS", [lambda: called.append("after")])
    status = exit_status(raise_in_main(error))
    assert called == []
    # argparse exits by itself
    assert status == (2 if isinstance(error, SystemExit) else 1)


@pytest.mark.parametrize("is_launched", [True, False])
def test_a_launched_process_leaves_its_message_to_the_launcher(
    exit_status, capsys, tmp_path, monkeypatch, is_launched
):
    """Under torchrun alone, it is printed as well."""
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    if is_launched:
        monkeypatch.setenv(LAUNCHER_VARIABLE, "4711")
    assert exit_status(raise_in_main(UserErrors(["first", "second"]))) == 1
    record = json.loads(path.read_text())
    assert (record["message"], record["status"]) == ("first; second", 1)
    messages = capsys.readouterr().err
    assert messages == (
        "" if is_launched else "bleuprint: error: first\nbleuprint: error: second\n"
    )


def test_a_message_that_cannot_be_left_to_the_launcher_is_printed(
    exit_status, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "missing" / "error.json"))
    monkeypatch.setenv(LAUNCHER_VARIABLE, "4711")
    assert exit_status(raise_in_main(UserError("bad"))) == 1
    assert capsys.readouterr().err == "bleuprint: error: bad\n"


def test_one_line_even_where_no_stage_runs(capsys):
    with errors.exit_on_error():
        pass
    with pytest.raises(SystemExit) as raised, errors.exit_on_error():
        raise UserErrors(["first", "second"])
    assert raised.value.code == 1
    assert capsys.readouterr().err == "bleuprint: error: first\nbleuprint: error: second\n"
    with pytest.raises(KeyError), errors.exit_on_error():
        raise KeyError("a bug")
