"""`bleuprint reproduce`: DVC's lines of a stage as one, and what is to be committed."""

import io
import logging
import subprocess
import sys

import pytest

from bleuprint.cli.reproduce import StageLines, changes

STAGES = {"clean@a": None, "train@x-a-1": 90.0, "train@y-a-1": 3600.0, "score@x-a-1": None}


@pytest.fixture
def said():
    """What a handler with the filter prints for messages of DVC."""
    logger = logging.Logger("dvc")
    handler = logging.StreamHandler(stream := io.StringIO())
    handler.addFilter(stages := StageLines(STAGES))
    logger.addHandler(handler)

    def lines(*messages, seconds=0.0):
        """`seconds`: the time of the first; each is as long after the one before."""
        for number, (message, *arguments) in enumerate(messages, 1):
            values = {"msg": message, "args": tuple(arguments), "levelno": logging.INFO}
            logger.handle(logging.makeLogRecord({**values, "created": number * seconds}))
        return stream.getvalue().splitlines()

    lines.stages = stages
    return lines


def test_a_stage_is_one_line_with_its_number_and_the_time_to_come(said):
    assert said(
        ("Stage '%s' didn't change, skipping", "download@a"),
        ("Running stage '%s':", "clean@a"),
        ("%s %s", ">", "env PYTHONPATH=src python stages/clean.py a"),
        ("",),
        ("Running stage '%s':", "train@x-a-1"),
        ("Updating lock file 'dvc.lock'",),
        ("Running stage '%s':", "train@y-a-1"),
        ("\nTo track the changes with git, run:\n\n\tgit add dvc.lock",),
        seconds=45.0,
    ) == [
        "[1/4] clean@a",
        "[2/4] train@x-a-1: about 0:01:30; trainings to come: 1:01:30",
        "[3/4] train@y-a-1: about 1:00:00; trainings to come: 1:00:00",
    ]


@pytest.mark.parametrize("command", ["kill -9 $$", "sh -c 'kill -9 $$'; exit 137"])
def test_a_stage_that_the_kernel_kills_is_noted(tmp_path, command):
    (tmp_path / "dvc.yaml").write_text(f'stages: {{killed: {{cmd: "{command}"}}}}\n')
    program = """
import logging
from dvc.cli import main
from bleuprint.cli.reproduce import StageLines
assert main(["init", "--no-scm", "--quiet"]) == 0
lines = StageLines({})
for handler in logging.getLogger("dvc").handlers:
    handler.addFilter(lines)
assert main(["repro"])
assert lines.killed
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_forecasts_are_scaled_by_what_trainings_before_took(said):
    lines = said(
        *(("Running stage '%s':", name) for name in ("train@x-a-1", "train@y-a-1", "score@x-a-1")),
        seconds=30.0,
    )
    # 30 s instead of 90: a third of what was forecast
    assert lines[1] == "[3/4] train@y-a-1: about 0:20:00; trainings to come: 0:20:00"
    assert said.stages.not_run == ["clean@a"]


def test_what_else_dvc_says_stays(said):
    message = "failed to reproduce 'train@x-a-1': failed to run: env ..."
    assert said((message,), ("Stage '%s' is cached - skipping run", "b")) == [
        message,
        "Stage 'b' is cached - skipping run",
    ]


def test_an_error_whose_text_is_in_its_traceback_stays():
    record = logging.LogRecord("dvc", logging.ERROR, __file__, 1, "", (), None)
    assert StageLines(STAGES).filter(record)


def test_a_stage_that_the_plan_did_not_foresee_is_named(said):
    assert said(("Running stage '%s':", "new@b")) == ["new@b"]


def test_what_has_changed_is_named_with_the_command_that_keeps_it(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    assert changes(tmp_path) == ""  # not in git
    git("init", "-q")
    for name in ("params.yaml", "dvc.lock", "reports/table.md", "other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "one")
    assert changes(tmp_path).startswith("nothing has changed")
    (tmp_path / "other").write_text("2")
    assert changes(tmp_path).startswith("nothing has changed")
    (tmp_path / "dvc.lock").write_text("2")
    (tmp_path / "reports" / "new.md").write_text("2")
    assert changes(tmp_path) == (
        "changed: dvc.lock, reports/new.md; to keep it: "
        "git add params.yaml dvc.lock reports && git commit"
    )
