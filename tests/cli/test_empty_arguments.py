"""An empty argument, as an unset variable gives, is refused by every command and stage."""

import argparse
import runpy
import subprocess
import sys

import pytest

import bleuprint
from bleuprint.cli import main as cli
from bleuprint.pipeline import verify
from bleuprint.report.compare import compare
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from root import ROOT

STAGES = sorted(path.stem for path in (ROOT / "stages").glob("*.py"))


def command_lines():
    """Yield a command line for each argument and option with a value, which is EMPTY.

    With it, the words with which the error message names the argument or option.
    """
    _, commands = cli.command_parser()
    for name, command in commands.choices.items():
        for action in command._actions:
            if action.nargs == 0 or isinstance(action, argparse._HelpAction):
                continue
            if action.option_strings:
                option = action.option_strings[0]
                yield [name, f"{option}=EMPTY"], option
                yield [name, option, "EMPTY"], option
            else:
                yield [name, "EMPTY"], f"argument 1 of bleuprint {name} 'EMPTY'"


LINES = list(command_lines())


def test_all_commands_with_values_are_tried():
    commands = {line[0] for line, _ in LINES}
    assert commands >= {
        "verify",
        "compare",
        "release",
        "export",
        "translate",
        "serve",
        "ui",
        "inspect",
        "new-corpus",
        "sync",
    }


@pytest.mark.parametrize(("line", "argument"), LINES, ids=" ".join)
@pytest.mark.parametrize("empty", ["", " ", " \t"])
def test_a_command_refuses_an_empty_argument(tmp_path, monkeypatch, capsys, line, argument, empty):
    """A shell passes an empty argument for "$NAME" if the variable is not set."""
    monkeypatch.chdir(tmp_path)
    words = [word.replace("EMPTY", empty) for word in line]
    monkeypatch.setattr(sys, "argv", ["bleuprint", *words])

    with pytest.raises(SystemExit) as exit_info:
        cli.main()

    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    argument_in_message = argument.replace("EMPTY", empty)
    assert error.startswith(f"usage: bleuprint {line[0]}")
    assert error.endswith(f"error: {argument_in_message} is empty: is a variable not set?\n")


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["verify", ""], "argument 1 of bleuprint verify ''"),
        (["compare", "tiny", ""], "argument 2 of bleuprint compare tiny ''"),
        (["compare", "", "tiny"], "argument 1 of bleuprint compare '' tiny"),
        (["", "verify"], "argument 1 of bleuprint '' verify"),
        (["translate", "--system", "", "a file"], "--system"),
    ],
)
def test_an_empty_argument_is_counted_from_the_command(
    monkeypatch, tmp_path, capsys, words, argument
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bleuprint", *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert f"error: {argument} is empty: is a variable not set?\n" in capsys.readouterr().err


@pytest.mark.parametrize("stage", [name for name in STAGES if name not in ("resolve", "report")])
def test_a_stage_refuses_an_empty_argument(tmp_path, monkeypatch, capsys, stage):
    monkeypatch.setattr(sys, "argv", [str(ROOT / "stages" / f"{stage}.py"), "", "own", "1"])
    # The stage must not start this process, that of the tests, again.
    monkeypatch.setattr("bleuprint.model.arithmetic.restart", lambda *_: None)
    monkeypatch.setattr("bleuprint.runtime.reexec.reexec", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(sys.argv[0], run_name="stage")["main"]

    with pytest.raises((SystemExit, UserError)) as raised:
        main()

    message = capsys.readouterr().err + str(raised.value)
    assert "argument 1 is empty: is a variable not set?" in message


@pytest.mark.parametrize("name", ["", " "])
@pytest.mark.parametrize("read", [verify.open_report, bleuprint.results])
def test_a_report_with_an_empty_name_is_refused(read, name):
    with pytest.raises(UserError, match="empty"):
        read(name)


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        pytest.param("tiny@", "tiny", "the revision after the @ is missing", id="system"),
        pytest.param(
            "@", "@", "both arguments are @, the report of the working tree", id="experiment"
        ),
    ],
)
def test_compare_refuses_an_empty_revision(first, second, problem):
    """SYSTEM@REVISION names a system at a commit; "tiny@$NAME" is tiny@ without the variable."""
    with pytest.raises(UserError, match=problem):
        next(iter(compare(first, second)))


@pytest.mark.parametrize("value", ["", " "])
@pytest.mark.parametrize(
    ("variable", "read"),
    [
        ("BLEUPRINT_MIRROR", environment.mirror),
        ("BLEUPRINT_PROCESSES", environment.process_count),
        ("BLEUPRINT_WORKERS", environment.worker_count),
        ("DVC_ROOT", environment.project_root),
    ],
)
def test_an_empty_environment_variable_counts_as_not_set(monkeypatch, variable, read, value):
    monkeypatch.delenv(variable, raising=False)
    value_if_not_set = read()

    monkeypatch.setenv(variable, value)

    assert read() == value_if_not_set


@pytest.mark.parametrize("name", ["", " "])
def test_make_recipe_refuses_an_empty_name(name):
    process = subprocess.run(
        ["make", "recipe", f"NAME={name}"], cwd=ROOT, capture_output=True, text=True
    )

    assert process.returncode == 2
    assert process.stdout.startswith("make recipe NAME=...: one of ")
