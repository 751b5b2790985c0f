"""The commit of the code, and the versions of the libraries that decide results."""

from types import SimpleNamespace

import pytest

from bleuprint.runtime import code


@pytest.mark.parametrize(
    ("head", "edited", "expected"),
    [
        (b"abc1\n", b"", "abc1"),
        (b"abc1\n", b"src/bleuprint/cli/app.py\n", "abc1+"),
        (b"", b"", None),
        (b"", b"src/bleuprint/cli/app.py\n", None),
    ],
)
def test_a_commit_is_marked_if_the_code_differs_from_it(monkeypatch, head, edited, expected):
    def git(_, command, *arguments):
        if command == "rev-parse":
            return head
        assert arguments[-3:] == ("src", "stages", "dvc.yaml")
        return edited

    monkeypatch.setattr(code, "git_output", git)
    assert code.code_commit() == expected


def test_git_says_nothing_outside_a_repository_or_where_it_is_missing(tmp_path, monkeypatch):
    assert code.git_output(tmp_path, "rev-parse", "HEAD") == b""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code.git_output(tmp_path, "--version") == b""


def test_versions_are_of_installed_libraries_in_a_fixed_order(monkeypatch):
    installed = {"sacrebleu": "2.6.0", "torch": "2.13.0"}

    def distributions(name):
        found = SimpleNamespace(name=name, version=installed.get(name))
        return [found] if name in installed else []

    monkeypatch.setattr(code, "distributions", distributions)
    assert code.library_versions() == "torch 2.13.0, sacrebleu 2.6.0"
