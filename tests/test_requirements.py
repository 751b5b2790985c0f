"""What becomes of tests that cannot run here, and the line that says what was not run."""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

import requirements
from not_run import summary
from root import ROOT

TESTS = """
import pytest
import requirements
from requirements import COMET, needs, needs_programs

@needs_programs("a-program-that-is-not-there")
def test_of_a_program(): ...

@needs(COMET, False)
def test_of_comet(): ...

def test_in_between():
    requirements.skip_without("another-program")

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.xfail
def test_that_fails_as_expected():
    raise AssertionError

def test_here(): ...
"""
MODULE = """
import pytest

pytest.skip("a module that cannot be imported here", allow_module_level=True)
"""
CONFTEST = """
pytest_plugins = ["required_tests", "not_run"]
"""


def run(folder, *arguments, **variables):
    """Run pytest on TESTS, with tests/support and nothing else of ours; return how it ended."""
    (folder / "test_few.py").write_text(TESTS)
    (folder / "test_module.py").write_text(MODULE)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: slow\n")
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    kept.pop("BLEUPRINT_REQUIRE", None)
    paths = os.pathsep.join([str(ROOT / "tests" / "support"), str(ROOT / "src")])
    # with a folder of its own, it does not clean up those of earlier runs
    own_folder = f"--basetemp={folder / 'base'}"
    command = [sys.executable, "-m", "pytest", "-q", "-ra", own_folder, "-m", "not slow"]
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": paths, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_tests_that_lack_something_are_skipped_and_counted(tmp_path, workers):
    printed = run(tmp_path, *workers).stdout
    *_, not_run, numbers = printed.splitlines()
    assert not_run == "Not run: 1 slow (make test-slow), 4 skipped for the reasons above."
    assert "1 passed, 4 skipped" in numbers
    assert "needs a-program-that-is-not-there: make debian" in printed


def test_in_ci_only_allowed_reasons_skip(tmp_path):
    printed = run(tmp_path, BLEUPRINT_REQUIRE="all").stdout
    # a module that is skipped as a whole ends the run, as one that cannot be imported does
    assert "BLEUPRINT_REQUIRE=all requires it: a module that cannot be imported here" in printed
    printed = run(tmp_path, "--ignore=test_module.py", BLEUPRINT_REQUIRE="all").stdout
    # a mark stops a test before it begins, which pytest counts as an error
    *_, numbers = printed.splitlines()
    assert "1 failed, 1 passed, 1 skipped" in numbers and "1 error" in numbers
    assert "BLEUPRINT_REQUIRE=all requires it: needs another-program: make debian" in printed
    assert re.search(rf"SKIPPED \[1\] test_few\.py:\d+: {requirements.COMET}", printed)


def test_an_unknown_value_of_the_variable_is_refused(tmp_path):
    done = run(tmp_path, BLEUPRINT_REQUIRE="ALL")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr == "ERROR: BLEUPRINT_REQUIRE is 'ALL': it must be all, or not set\n\n"


@pytest.mark.parametrize("by_name", ["-k=not here", "--deselect=test_few.py::test_here"])
def test_tests_that_are_left_out_by_name_are_not_counted(tmp_path, by_name):
    printed = run(tmp_path, "--ignore=test_module.py", by_name).stdout
    *_, not_run, numbers = printed.splitlines()
    assert "2 deselected" in numbers  # test_here and the slow test
    assert not_run == "Not run: 3 skipped for the reasons above."


def test_tests_of_make_test_are_counted_if_other_marks_are_selected(tmp_path):
    printed = run(tmp_path, "--ignore=test_module.py", "-m", "slow").stdout
    *_, not_run, numbers = printed.splitlines()
    assert "1 passed, 5 deselected" in numbers
    assert not_run == "Not run: 5 others (make test)."


def test_the_line_at_the_end_names_each_kind_that_was_left_out():
    found = summary(Counter(slow=210, long=23, gpu=35, others=7), 0)
    assert found == (
        "Not run: 210 slow (make test-slow), 23 long (make test-long), "
        "35 gpu (python benchmarks/gpu.py tests), 7 others (make test)."
    )
    assert summary(Counter(), 0) == ""


def test_there_are_at_most_eight_reasons_to_skip_in_ci():
    assert len(requirements.ALLOWED) <= 8


def test_a_mirror_has_what_lies_below_its_folder(tmp_path, monkeypatch):
    (tmp_path / "mirror" / "example.org" / "texts").mkdir(parents=True)
    monkeypatch.setenv("BLEUPRINT_MIRROR", str(tmp_path / "mirror"))
    assert requirements.mirror_has("example.org/texts")
    assert not requirements.mirror_has("example.org/models")


@pytest.mark.parametrize("mirror", [None, "", "mirror", "http://localhost/mirror"])
def test_only_a_folder_by_its_whole_path_is_a_mirror(tmp_path, monkeypatch, mirror):
    """Files of the working folder are never those of a mirror."""
    for folder in (tmp_path, tmp_path / "mirror"):
        (folder / "example.org").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BLEUPRINT_MIRROR", raising=False)
    if mirror is not None:
        monkeypatch.setenv("BLEUPRINT_MIRROR", mirror)
    assert not requirements.mirror_has("example.org")
