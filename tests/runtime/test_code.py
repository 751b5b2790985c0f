"""The commit of the code, and the versions of the libraries that decide results."""

from types import SimpleNamespace

import pytest

from bleuprint.runtime import code


@pytest.mark.parametrize(
    ("head", "changed_files", "expected"),
    [
        pytest.param(b"abc1\n", b"", "abc1", id="committed"),
        pytest.param(b"abc1\n", b"src/bleuprint/cli/app.py\n", "abc1+", id="edited"),
        pytest.param(b"", b"", None, id="no repository"),
        pytest.param(b"", b"src/bleuprint/cli/app.py\n", None, id="no commit yet"),
    ],
)
def test_a_plus_after_the_commit_marks_edited_code(monkeypatch, head, changed_files, expected):
    """Results of edited code cannot be reproduced from the commit alone."""

    def git_output(_, command, *arguments):
        if command == "rev-parse":
            return head
        if command == "ls-files":
            return b""  # All modules in own/ are committed.
        # The other command lists changed files, only of what decides results.
        assert arguments[-4:] == ("src", "stages", "own", "dvc.yaml")
        return changed_files

    monkeypatch.setattr(code, "git_output", git_output)

    assert code.code_commit() == expected


def test_the_output_of_git_is_empty_outside_a_repository(tmp_path):
    assert code.git_output(tmp_path, "rev-parse", "HEAD") == b""


def test_the_output_of_git_is_empty_if_git_is_not_installed(tmp_path, monkeypatch):
    empty_folder = tmp_path
    monkeypatch.setenv("PATH", str(empty_folder))

    assert code.git_output(tmp_path, "--version") == b""


def test_library_versions_list_the_installed_libraries_in_a_fixed_order(monkeypatch):
    """Torch comes first; sacremoses and subword-nmt are not installed here and are left out."""
    installed = {"sacrebleu": "2.6.0", "torch": "2.13.0"}

    def distributions(name):
        """Stand in for importlib.metadata.distributions: the installed versions of a library."""
        if name not in installed:
            return []
        return [SimpleNamespace(name=name, version=installed[name])]

    monkeypatch.setattr(code, "distributions", distributions)

    assert code.library_versions() == "torch 2.13.0, sacrebleu 2.6.0"
