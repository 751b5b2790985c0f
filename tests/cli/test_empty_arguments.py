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
    """Each command with every argument and option that takes a value, which is "EMPTY"."""
    _, commands = cli.command_parser()
    for name, command in commands.choices.items():
        for action in command._actions:
            if action.nargs == 0 or isinstance(action, argparse._HelpAction):
                continue
            if action.option_strings:
                yield [name, f"{action.option_strings[0]}=EMPTY"], action.option_strings[0]
                yield [name, action.option_strings[0], "EMPTY"], action.option_strings[0]
            else:
                yield [name, "EMPTY"], f"argument 1 of bleuprint {name} 'EMPTY'"


LINES = [*command_lines()]


def test_all_commands_with_values_are_tried():
    assert {line[0] for line, _ in LINES} >= {
        *("verify", "compare", "release", "export", "translate", "serve", "ui", "inspect"),
        *("new-corpus", "sync"),
    }


@pytest.mark.parametrize(("line", "place"), LINES, ids=" ".join)
@pytest.mark.parametrize("empty", ["", " ", " \t"])
def test_a_command_refuses_it(tmp_path, monkeypatch, capsys, line, place, empty):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["bleuprint", *(each.replace("EMPTY", empty) for each in line)]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    error = capsys.readouterr().err
    said = f"error: {place.replace('EMPTY', empty)} is empty: is a variable not set?\n"
    assert end.value.code == 2 and error.endswith(said)
    assert error.startswith(f"usage: bleuprint {line[0]}")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["verify", ""], "argument 1 of bleuprint verify ''"),
        (["compare", "tiny", ""], "argument 2 of bleuprint compare tiny ''"),
        (["compare", "", "tiny"], "argument 1 of bleuprint compare '' tiny"),
        (["", "verify"], "argument 1 of bleuprint '' verify"),
        (["translate", "--system", "", "a file"], "--system"),
    ],
)
def test_an_empty_argument_is_counted_from_the_command(monkeypatch, tmp_path, capsys, words, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bleuprint", *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert f"error: {place} is empty: is a variable not set?\n" in capsys.readouterr().err


@pytest.mark.parametrize("stage", [name for name in STAGES if name not in ("resolve", "report")])
def test_a_stage_refuses_it(tmp_path, monkeypatch, capsys, stage):
    monkeypatch.setattr(sys, "argv", [str(ROOT / "stages" / f"{stage}.py"), "", "own", "1"])
    monkeypatch.setattr("bleuprint.model.arithmetic.restart", lambda *_: None)
    monkeypatch.setattr("bleuprint.runtime.reexec.reexec", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(sys.argv[0], run_name="stage")["main"]
    with pytest.raises((SystemExit, UserError)) as end:
        main()
    said = capsys.readouterr().err + str(end.value)
    assert "argument 1 is empty: is a variable not set?" in said


@pytest.mark.parametrize("name", ["", " "])
def test_functions_refuse_it(name):
    for call in (lambda: verify.open_report(name), lambda: bleuprint.results(name)):
        with pytest.raises(UserError, match="empty"):
            call()


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("tiny@", "tiny", "no revision after the @"),
        ("@", "@", "both sides are the working tree"),
    ],
)
def test_nothing_is_compared_with_itself(first, second, problem):
    with pytest.raises(UserError, match=problem):
        next(iter(compare(first, second)))


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_variable_is_one_that_is_not_set(monkeypatch, value):
    for name in ("BLEUPRINT_MIRROR", "BLEUPRINT_WORKERS", "BLEUPRINT_PROCESSES", "DVC_ROOT"):
        monkeypatch.setenv(name, value)
    expected = environment.mirror(), environment.process_count(), environment.project_root()
    for name in ("BLEUPRINT_MIRROR", "BLEUPRINT_WORKERS", "BLEUPRINT_PROCESSES", "DVC_ROOT"):
        monkeypatch.delenv(name)
    assert (
        environment.mirror(),
        environment.process_count(),
        environment.project_root(),
    ) == expected


@pytest.mark.parametrize("name", ["", " "])
def test_make_recipe_refuses_it(name):
    done = subprocess.run(
        ["make", "recipe", f"NAME={name}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout.startswith("make recipe NAME=...: one of ")
