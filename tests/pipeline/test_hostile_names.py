"""Names of params.yaml are parts of shell commands: the first stage refuses those that are none."""

import os
import subprocess
import sys

import networkx
import pytest
from dvc.repo import Repo

NAME = '"x; touch hostile #"'


@pytest.mark.parametrize(
    ("command", "entry"), [(["dvc", "repro"], "  wide:\n"), (["snakemake", "-c1"], "  own:\n")]
)
def test_a_name_with_a_command_runs_nothing(clean, tmp_path, command, entry):
    root = clean.copy(tmp_path / "project").root
    params = (root / "params.yaml").read_text(encoding="utf-8")
    name = entry.strip().partition(":")[0]
    hostile = params.replace(entry, entry.replace(name, NAME, 1), 1)
    assert hostile != params
    (root / "params.yaml").write_text(hostile, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env={**os.environ, "DVC_NO_ANALYTICS": "true"},
        capture_output=True,
        text=True,
    )
    assert done.returncode and "x; touch hostile #: a name is of letters" in done.stderr
    assert not (root / "hostile").exists()


def test_every_stage_with_a_name_in_its_command_comes_after_that_check(clean):
    """By DVC's edges, whatever the order of stages that do not depend on each other."""
    with Repo(str(clean.root)) as repo:
        graph = repo.index.graph
        before = {each.name: {b.name for b in networkx.descendants(graph, each)} for each in graph}
    named = {name for name in before if "@" in name}
    assert len(named) > 15
    for name in named:
        assert "resolve" in before[name], name
