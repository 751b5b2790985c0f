"""A second experiment in a Git worktree, as docs/running.md sets it up: nothing is prepared again.

The stages of the project compute nothing (see stand_ins); all have run and are committed.
"""

import os
import re

import pytest

import micro
from contributing import code_blocks
from root import ROOT

NEW_SYSTEM = """\
  deep:
    like: tiny
    model: {encoder_layers: 2}
    corpora: {own: {}}
"""


def how_to_commands():
    """Return the commands of the section of docs/running.md on a second experiment."""
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    section = page.partition("## A second experiment beside the first\n")[2].partition("\n## ")[0]
    (commands,) = code_blocks(section, "bash")
    return commands


@pytest.fixture
def second(own_first, tmp_path):
    """Return the project in the worktree, after all commands of the section but the plan."""
    commands = how_to_commands().replace("bleuprint plan\n", "")
    own_first.run("bash", "-euc", commands)
    return micro.Project(tmp_path / "second")


@pytest.fixture
def own_first(stand_in, tmp_path):
    """Return the first project, with an environment that consists of an empty file."""
    first = stand_in.copy(tmp_path / "first")
    (first.root / ".venv").mkdir()
    (first.root / ".venv" / ".ready").touch()
    return first


def test_the_section_ends_with_a_plan_that_is_empty(own_first):
    output = own_first.run("bash", "-euc", how_to_commands())

    assert output.endswith("all stages are up to date: make reproduce would run none\n")


def test_only_the_stages_of_a_new_row_run_in_the_worktree(second):
    """Neither a text is prepared nor another system trained."""
    second.write("params.yaml", second.read("params.yaml") + NEW_SYSTEM)

    stages = second.repro()

    assert set(stages) == {
        "resolve",
        "fresh@deep-1",
        "train@deep-own-1",
        "train@deep-other-1",
        "average@deep-own-1",
        "average@deep-other-1",
        "translate@deep-own-1",
        "translate@deep-other-1",
        "score@deep-own-1",
        "score@deep-other-1",
        "report",
    }
    assert second.changed_stages() == set()


def test_stages_that_ran_in_the_first_folder_after_its_commit_come_from_the_run_cache(
    second, own_first
):
    """The run cache is a part of the cache, which both folders use."""
    for project in (own_first, second):
        project.write("params.yaml", project.read("params.yaml") + NEW_SYSTEM)
    first_stages = own_first.repro()
    assert "train@deep-own-1" in first_stages

    output = second.run("dvc", "repro")

    assert "Stage 'train@deep-own-1' is cached" in output
    assert "Running stage 'train" not in output


def test_the_worktree_has_its_own_work_folder_and_shares_downloads(second, own_first):
    """One program at a time runs stages in a work folder."""
    assert not (second.root / "work").is_symlink()
    downloads = second.root / "work" / "downloads"
    assert downloads.resolve() == own_first.root / "work" / "downloads"


def test_make_takes_the_environment_of_the_first_folder_as_complete(own_first, tmp_path):
    """Otherwise it would install the package of the worktree into the shared environment.

    The files in the worktree are newer than the environment, since Git has just written them.
    """
    own_first.write("Makefile", (ROOT / "Makefile").read_text("utf-8"))
    for name in ("constraints.txt", "pyproject.toml", "setup.py"):
        own_first.write(name, "")
    own_first.commit()
    os.utime(own_first.root / ".venv" / ".ready", (0, 0))

    own_first.run("bash", "-euc", how_to_commands().replace("bleuprint plan\n", ""))

    output = micro.Project(tmp_path / "second").run("make", "--dry-run", "setup")
    assert re.search("Nothing to be done|up to date", output), output
