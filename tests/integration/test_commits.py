"""The commits that reports and documents name can be checked out."""

import re
import subprocess

import pandas as pd
import pytest

import requirements
from root import ROOT


def run_git(*arguments):
    """Run git in this repository, and return what it printed."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def history():
    """Return the hashes of all commits that HEAD comes from; skips in a shallow clone."""
    if run_git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip(requirements.HISTORY)
    return run_git("rev-list", "HEAD").split()


def commits_in_reports():
    """Return the folder and the hash of each commit that a report names as its code."""
    commits = []
    for path in sorted(ROOT.glob("reports/**/costs.csv")):
        for commit in pd.read_csv(path).commit.unique():
            # A + says that there were changes which were not committed.
            commits.append((path.parent.name, commit.rstrip("+")))
    return commits


def commits_in_documents():
    """Return the file name and the hash of each commit that README.md or docs/ name."""
    commits = []
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        for commit in re.findall(r"\bcommits? ([0-9a-f]{7,40})\b", path.read_text("utf-8")):
            commits.append((path.name, commit))
    return commits


def test_every_commit_that_a_report_or_document_names_is_in_the_history(history):
    """A reader checks out the commit to repeat a result. A commit that was rebased is lost.

    `history` are the full hashes of all commits before HEAD; documents may name shorter ones.
    """
    commits = commits_in_reports() + commits_in_documents()
    assert len(commits) > 30, "the patterns find too few commits"

    missing_commits = []
    for file_name, commit in commits:
        if not any(full_hash.startswith(commit) for full_hash in history):
            missing_commits.append((file_name, commit))
    assert missing_commits == []
