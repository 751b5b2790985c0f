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


def test_the_tested_command_lines_include_all_commands_with_arguments():
    """LINES are command lines in which one argument is empty, found by reading the parser.

    If a command is missing here, the test below does not cover it.
    """
    tested_commands = {words[0] for words, _ in LINES}

    assert tested_commands >= {
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


@pytest.mark.parametrize(("line", "argument"), LINES, ids=[" ".join(words) for words, _ in LINES])
@pytest.mark.parametrize("empty", ["", " ", " \t"], ids=["empty", "a space", "a space and a tab"])
def test_a_command_refuses_an_empty_argument(tmp_path, monkeypatch, capsys, line, argument, empty):
    """A shell passes an empty argument for "$NAME" if the variable is not set.

    Args:
        tmp_path: The folder in which the command runs.
        monkeypatch: Sets folder and arguments.
        capsys: Captures the error message.
        line: A command line such as ["verify", "EMPTY"].
        argument: How the error message names the empty argument.
        empty: What the line contains in place of EMPTY.
    """
    monkeypatch.chdir(tmp_path)
    words = [word.replace("EMPTY", empty) for word in line]
    monkeypatch.setattr(sys, "argv", ["bleuprint", *words])

    with pytest.raises(SystemExit) as exit_info:
        cli.main()

    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    argument_in_message = argument.replace("EMPTY", empty)
    assert error.startswith(f"usage: bleuprint {line[0]}")
    assert error.endswith(f"error: {argument_in_message} is empty. Is a variable not set?\n")


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        pytest.param(["verify", ""], "argument 1 of bleuprint verify ''", id="only argument"),
        pytest.param(
            ["compare", "tiny", ""],
            "argument 2 of bleuprint compare tiny ''",
            id="second of two arguments",
        ),
        pytest.param(
            ["compare", "", "tiny"],
            "argument 1 of bleuprint compare '' tiny",
            id="first of two arguments",
        ),
        pytest.param(["", "verify"], "argument 1 of bleuprint '' verify", id="name of the command"),
        pytest.param(["translate", "--system", "", "a file"], "--system", id="option"),
    ],
)
def test_the_message_about_an_empty_argument_gives_its_number_or_its_option(
    monkeypatch, tmp_path, capsys, words, argument
):
    """Arguments are counted after the name of the command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bleuprint", *words])

    with pytest.raises(SystemExit):
        cli.main()

    assert f"error: {argument} is empty. Is a variable not set?\n" in capsys.readouterr().err


@pytest.mark.parametrize("stage", [name for name in STAGES if name not in ("resolve", "report")])
def test_a_stage_refuses_an_empty_argument(tmp_path, monkeypatch, capsys, stage):
    """The scripts of the stages are in stages/; resolve and report need no arguments."""
    script = ROOT / "stages" / f"{stage}.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "", "own", "1"])
    # A stage restarts its process to change environment variables: here, that of the tests.
    monkeypatch.setattr("bleuprint.model.arithmetic.restart", lambda *_: None)
    monkeypatch.setattr("bleuprint.runtime.reexec.reexec", lambda *_, **__: None)
    main = runpy.run_path(str(script), run_name="stage")["main"]

    with pytest.raises((SystemExit, UserError)) as raised:
        main()

    message = capsys.readouterr().err + str(raised.value)
    assert "argument 1 is empty. Is a variable not set?" in message


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
    """`read` is the function that reads this variable and otherwise returns a default."""
    monkeypatch.delenv(variable, raising=False)
    default = read()

    monkeypatch.setenv(variable, value)

    assert read() == default


@pytest.mark.parametrize("name", ["", " "])
def test_make_recipe_refuses_an_empty_name(name):
    """It lists the recipes instead."""
    process = subprocess.run(
        ["make", "recipe", f"NAME={name}"], cwd=ROOT, capture_output=True, text=True
    )

    assert process.returncode == 2
    assert process.stdout.startswith("make recipe NAME=...: one of ")
