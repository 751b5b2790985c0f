"""The commits that reports and documents name can be checked out."""

import re
import subprocess

import pandas as pd
import pytest

import requirements
from root import ROOT

_COMMIT = re.compile(r"\bcommits? ([0-9a-f]{7,40})\b")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def history():
    """All commits that HEAD comes from."""
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip(requirements.HISTORY)
    return git("rev-list", "HEAD").stdout.split()


def named():
    """Commits by where they are named."""
    for path in sorted(ROOT.glob("reports/**/costs.csv")):
        place = path.parent.name
        yield from ((place, each.rstrip("+")) for each in pd.read_csv(path).commit.unique())
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        yield from ((path.name, each) for each in _COMMIT.findall(path.read_text("utf-8")))


def test_every_commit_that_is_named_exists(history):
    found = list(named())
    assert len(found) > 30
    assert [it for it in found if not any(one.startswith(it[1]) for one in history)] == []
