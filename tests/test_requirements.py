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

# Six tests: one runs, one is slow, one fails as expected, and three lack something.
TEST_FEW = """
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
TEST_MODULE = """
import pytest

pytest.skip("a module that cannot be imported here", allow_module_level=True)
"""
CONFTEST = """
pytest_plugins = ["required_tests", "not_run"]
"""


@pytest.fixture
def run_few_tests(tmp_path):
    """Return a function that runs pytest on TEST_FEW and TEST_MODULE, and returns how it ended.

    It takes arguments of pytest, and variables of the environment as keyword arguments. The tests
    use the plugins of tests/support, and nothing else of ours.
    """
    (tmp_path / "test_few.py").write_text(TEST_FEW)
    (tmp_path / "test_module.py").write_text(TEST_MODULE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: slow\n")
    environment = {}
    for name, value in os.environ.items():
        if not name.startswith("PYTEST") and name != "BLEUPRINT_REQUIRE":
            environment[name] = value
    paths = [str(ROOT / "tests" / "support"), str(ROOT / "src")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    # In a folder of its own, it does not remove the temporary folders of this process.
    options = ["-q", "-ra", f"--basetemp={tmp_path / 'base'}", "-m", "not slow"]

    def run(*arguments, **variables):
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_tests_that_lack_something_are_skipped_counted_and_named(run_few_tests, workers):
    """TEST_FEW has six tests: one runs, one is slow, one is expected to fail, three lack something.

    The module TEST_MODULE cannot be imported, so it is skipped, too.
    """
    output = run_few_tests(*workers).stdout

    *_, not_run, totals = output.splitlines()
    assert not_run == "Not run: 1 slow (make test-slow), 4 skipped for the reasons above."
    assert "1 passed, 4 skipped" in totals
    assert "needs a-program-that-is-not-there: make debian" in output


# In CI, BLEUPRINT_REQUIRE=all makes a failure of each skip without an allowed reason.


def test_ci_fails_for_a_module_that_is_skipped(run_few_tests):
    """It ends the run, as a module that cannot be imported does."""
    output = run_few_tests(BLEUPRINT_REQUIRE="all").stdout

    assert "BLEUPRINT_REQUIRE=all requires it: a module that cannot be imported here" in output


def test_ci_fails_for_tests_that_lack_a_program(run_few_tests):
    """In CI, BLEUPRINT_REQUIRE=all turns skips into failures, unless the reason is allowed.

    One test lacks a program by a mark: pytest counts it as an error, since it has not begun. One
    finds out while it runs, and counts as failed. One lacks COMET, an allowed reason.
    """
    output = run_few_tests("--ignore=test_module.py", BLEUPRINT_REQUIRE="all").stdout

    *_, totals = output.splitlines()
    assert "1 failed, 1 passed, 1 skipped" in totals
    assert "1 error" in totals
    assert "BLEUPRINT_REQUIRE=all requires it: needs another-program: make debian" in output


def test_ci_skips_a_test_for_an_allowed_reason(run_few_tests):
    """COMET is such a reason: CI does not install it."""
    output = run_few_tests("--ignore=test_module.py", BLEUPRINT_REQUIRE="all").stdout

    assert re.search(rf"SKIPPED \[1\] test_few\.py:\d+: {requirements.COMET}", output)


def test_an_unknown_value_of_the_variable_is_refused(run_few_tests):
    process = run_few_tests(BLEUPRINT_REQUIRE="ALL")

    assert process.returncode == pytest.ExitCode.USAGE_ERROR
    assert process.stderr == "ERROR: BLEUPRINT_REQUIRE is 'ALL': it must be all, or not set\n\n"


@pytest.mark.parametrize("option", ["-k=not here", "--deselect=test_few.py::test_here"])
def test_the_summary_ignores_a_test_that_the_user_deselected_by_name(run_few_tests, option):
    """The user deselects test_here; the slow test is deselected by default. Three lack something.

    The last line but one of the output is our summary.
    """
    output = run_few_tests("--ignore=test_module.py", option).stdout

    *_, summary_line, totals = output.splitlines()
    assert "2 deselected" in totals
    assert summary_line == "Not run: 3 skipped for the reasons above."


def test_the_summary_counts_tests_of_make_test_as_others_if_only_slow_tests_run(run_few_tests):
    """Of six tests, one is slow."""
    output = run_few_tests("--ignore=test_module.py", "-m", "slow").stdout

    *_, not_run, totals = output.splitlines()
    assert "1 passed, 5 deselected" in totals
    assert not_run == "Not run: 5 others (make test)."


def test_the_summary_names_each_kind_of_test_that_was_not_run_and_its_command():
    counts = Counter(slow=210, long=23, gpu=35, others=7)

    line = summary(counts, 0)

    assert line == (
        "Not run: 210 slow (make test-slow), 23 long (make test-long), "
        "35 gpu (python benchmarks/gpu.py tests), 7 others (make test)."
    )


def test_there_is_no_summary_if_all_tests_were_run():
    assert summary(Counter(), 0) == ""


def test_there_are_at_most_eight_reasons_to_skip_in_ci():
    assert len(requirements.ALLOWED) <= 8


def test_a_mirror_has_what_lies_below_its_folder(tmp_path, monkeypatch):
    """BLEUPRINT_MIRROR names a folder with copies of public files, by HOST/PATH."""
    (tmp_path / "mirror" / "example.org" / "texts").mkdir(parents=True)
    monkeypatch.setenv("BLEUPRINT_MIRROR", str(tmp_path / "mirror"))

    assert requirements.mirror_has("example.org/texts")
    assert not requirements.mirror_has("example.org/models")


@pytest.mark.parametrize("mirror", [None, "", "mirror", "http://localhost/mirror"])
def test_only_a_folder_by_its_absolute_path_is_a_mirror(tmp_path, monkeypatch, mirror):
    """BLEUPRINT_MIRROR must be an absolute path to a folder with copies of public files.

    Here example.org exists in the working folder, and in the folder mirror below it. A value that
    is not absolute must not find them.
    """
    for folder in (tmp_path, tmp_path / "mirror"):
        (folder / "example.org").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BLEUPRINT_MIRROR", raising=False)
    if mirror is not None:
        monkeypatch.setenv("BLEUPRINT_MIRROR", mirror)

    assert not requirements.mirror_has("example.org")
