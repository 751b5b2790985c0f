"""The experiment with faults: which tests catch a fault, and what the summary reports."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from tools.fault_experiment import clone as clone_module
from tools.fault_experiment.clone import Clone, Outcome
from tools.fault_experiment.experiment import Experiment
from tools.fault_experiment.fault import Fault
from tools.fault_experiment.faults import faults_in
from tools.fault_experiment.results import DrawnFault, Results
from tools.fault_experiment.selection import Round
from tools.git_commands import git

# The module of the project below. Tests call `clamp` directly and `middle` in a new process;
# no test calls `unused`.
MODULE = """\
def clamp(value, low, high):
    if value < low:
        return low
    return min(value, high)


def middle(low, high):
    return (low + high) / 2


def unused(value):
    return value + 1
"""
TESTS = """\
import subprocess
import sys

from toy.bounds.clamping import clamp

CODE = "from toy.bounds.clamping import middle; print(middle(1, 3))"


def test_in_a_process():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.stdout == "2.0\\n"


def test_low():
    assert clamp(-1, 1, 3) == 1


def test_always_fails():
    assert False
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a committed project with one module, of which one function has tests."""
    root = tmp_path_factory.mktemp("project")
    files = {
        "src/toy/__init__.py": "",
        "src/toy/bounds/__init__.py": "",
        "src/toy/bounds/clamping.py": MODULE,
        "tests/bounds/test_clamping.py": TESTS,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for variable in ("GIT_AUTHOR", "GIT_COMMITTER"):
        environment |= {f"{variable}_NAME": "tester", f"{variable}_EMAIL": "tester@localhost"}
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *command], cwd=root, env=environment, check=True)
    return root


def first_fault(kind: str, function: str) -> Fault:
    """Return the first fault of a kind in a function of `MODULE`."""
    for fault in faults_in("src/toy/bounds/clamping.py", MODULE):
        if fault.kind == kind and fault.function == function:
            return fault
    raise AssertionError(f"{function} has no fault of kind {kind}")


@pytest.fixture(autouse=True)
def fast_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no plugins of pytest: the project's tests need none, and loading takes seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture(scope="module")
def clone(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    folder = tmp_path_factory.mktemp("clones") / "clone"
    clone = Clone(folder, seconds_per_run=60, failing_tests=set())
    clone.make(project, git(project, "rev-parse", "HEAD"))
    return clone


def test_a_fault_is_caught_by_the_test_that_fails_with_it(clone: Clone) -> None:
    """`clamp` begins `if value < low: return low`; test_low asserts `clamp(-1, 1, 3) == 1`."""
    without_the_if = first_fault("dropped guard", "clamp")

    outcome = clone.try_fault(without_the_if, [Round.NAMED])

    assert outcome.result == "caught"
    assert outcome.test == "tests/bounds/test_clamping.py::test_low"
    assert outcome.message == "assert -1 == 1"


def test_the_clone_contains_the_original_module_after_a_fault_was_tried(clone: Clone) -> None:
    """Otherwise the next fault would be tried in a module with two faults."""
    clone.try_fault(first_fault("dropped guard", "clamp"), [Round.NAMED])

    assert (clone.folder / "src/toy/bounds/clamping.py").read_text() == MODULE


def test_processes_that_tests_start_run_the_faulty_code(clone: Clone) -> None:
    """test_in_a_process starts Python, which imports `middle` and prints `middle(1, 3)`."""
    fault_in_middle = first_fault("arithmetic", "middle")

    outcome = clone.try_fault(fault_in_middle, [Round.NAMED])

    assert outcome.test == "tests/bounds/test_clamping.py::test_in_a_process"


def test_tests_that_fail_without_a_fault_are_identified(clone: Clone) -> None:
    """Such a test cannot tell whether a fault is there, so it must not count as catching one."""
    passing = "tests/bounds/test_clamping.py::test_low"
    failing = "tests/bounds/test_clamping.py::test_always_fails"

    assert clone.failing_without_fault([passing, failing]) == {failing}


def test_a_fault_with_which_the_module_cannot_be_imported_is_called_broken(clone: Clone) -> None:
    """Any test would notice such a fault; "broken" ones are left out of the statistics."""
    path = "src/toy/bounds/clamping.py"
    division_by_zero = Fault(path, "", "number", 1, start=0, end=3, replacement="1 / 0\ndef")

    outcome = clone.try_fault(division_by_zero, [Round.NAMED])

    assert outcome.result == "broken"


def test_the_same_command_continues_from_the_results_on_disk(project: Path, tmp_path: Path) -> None:
    """An experiment takes hours. After it ended, the same command tries no fault a second time."""
    results_file = tmp_path / "faults-1.jsonl"
    first = Experiment(project, tmp_path, 1, "toy")
    first.run(2, jobs=1, seconds_per_run=60)
    first_results = results_file.read_text().splitlines()

    second = Experiment(project, tmp_path, 1, "toy")
    second.run(2, jobs=1, seconds_per_run=60)

    assert results_file.read_text().splitlines() == first_results
    assert second.summary() == first.summary()
    assert "| bounds | 2 |" in second.summary()


def test_a_fault_survives_if_the_only_failing_test_also_fails_without_it(
    project: Path, tmp_path: Path
) -> None:
    """No test calls `unused`. test_always_fails fails with each fault, and without one."""
    experiment = Experiment(project, tmp_path, 1, "toy")

    experiment.run(4, jobs=2, seconds_per_run=60)

    outcomes = dict[str, Outcome]()
    for drawn_fault, trial in experiment.results.trials.items():
        outcomes[drawn_fault.fault.function] = trial.outcome
    assert outcomes["middle"].result == "caught"
    assert outcomes["middle"].test.endswith("::test_in_a_process")
    assert outcomes["unused"].result == "survived"
    assert outcomes["unused"].test == ""
    note = "fails without a fault: tests/bounds/test_clamping.py::test_always_fails"
    assert note in experiment.summary()


def test_the_summary_says_how_many_faults_could_not_be_drawn(project: Path, tmp_path: Path) -> None:
    functions = 3  # `clamp`, `middle` and `unused`; each gets at most one fault
    requested_faults = 5
    experiment = Experiment(project, tmp_path, 1, "toy")

    experiment.run(requested_faults, jobs=1, seconds_per_run=60)

    assert len(experiment.results.trials) == functions
    last_line = experiment.summary().splitlines()[-1]
    assert last_line == "not drawn, since each function had one fault already: 2 in bounds"


def test_all_tests_of_a_file_that_pytest_cannot_import_fail_without_a_fault(clone: Clone) -> None:
    """For such a file, pytest reports one error and names none of its tests."""
    file = clone.folder / "tests/bounds/test_not_collected.py"
    file.write_text("import a_module_that_is_missing\n")
    tests_of_the_file = {
        "tests/bounds/test_not_collected.py::test_one",
        "tests/bounds/test_not_collected.py::test_two",
    }
    passing = "tests/bounds/test_clamping.py::test_low"

    try:
        failing = clone.failing_without_fault({*tests_of_the_file, passing})
    finally:
        file.unlink()

    assert failing == tests_of_the_file


# A test that calls `clamp`; with the fault, it executes the statement `reaction`.
TOY_TEST = """\
import os
import time

from toy.bounds.clamping import clamp


def test_before():
    pass


def test_toy():
    if clamp(-1, 1, 3) != 1:
        {reaction}
"""


@pytest.fixture
def outcome_with(clone: Clone) -> Iterator[Callable[[str], Outcome]]:
    """Return a function that tries a fault with a test, given what the test does with the fault."""
    tests = clone.folder / "tests/bounds/test_clamping.py"

    def outcome_with(reaction: str) -> Outcome:
        tests.write_text(TOY_TEST.format(reaction=reaction))
        fault = first_fault("dropped guard", "clamp")
        return clone.try_fault(fault, [Round.NAMED, Round.PACKAGE])

    yield outcome_with
    tests.write_text(TESTS)


def test_a_test_that_hangs_because_of_a_fault_catches_it(
    outcome_with: Callable[[str], Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test may take 400 seconds; here one second, so that this test ends soon."""
    monkeypatch.setattr(clone_module, "SECONDS_PER_TEST", 1)

    outcome = outcome_with("time.sleep(3600)")

    assert outcome.result == "caught"
    assert outcome.message == "hung for 1 s"
    assert outcome.test == "tests/bounds/test_clamping.py::test_toy"


def test_if_all_tests_together_exceed_their_time_the_result_is_time_limit(
    outcome_with: Callable[[str], Outcome], clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow machine is a possible reason, so the fault is neither "caught" nor "survived"."""
    monkeypatch.setattr(clone, "seconds_per_run", 1)

    outcome = outcome_with("time.sleep(3600)")

    assert outcome.result == "time limit"
    assert outcome.round == "named"
    assert outcome.test == ""
    assert (clone.folder / "src/toy/bounds/clamping.py").read_text() == MODULE


@pytest.mark.parametrize(
    "reaction",
    [
        pytest.param("os._exit(3)", id="exit"),
        pytest.param("os.kill(os.getpid(), 11)", id="segmentation fault"),
    ],
)
def test_a_test_that_ends_the_whole_process_because_of_a_fault_catches_it(
    outcome_with: Callable[[str], Outcome], reaction: str
) -> None:
    """The process of pytest ends before it reports which test failed."""
    outcome = outcome_with(reaction)

    assert outcome.result == "caught"
    assert outcome.test == "tests/bounds/test_clamping.py::test_toy"


def test_a_test_that_hung_is_named_from_the_output_of_pytest(tmp_path: Path) -> None:
    """Python's faulthandler ends a test after 400 s (0:06:40) and prints "Timeout"."""
    output = (
        "tests/test_a.py::test_one PASSED [ 50%]\n"
        "tests/test_a.py::test_two Timeout (0:06:40)!\n"
        "Thread 0x00007f (most recent call first):\n"
    )

    failure = clone_module._read_failure(tmp_path, output)

    assert failure.test == "tests/test_a.py::test_two"
    assert failure.message == "hung for 400 s"


def summary_of(outcomes: list[Outcome], folder: Path) -> list[str]:
    """Return the lines of the summary of faults with these outcomes, in the package `bounds`."""
    results = Results(folder / "faults-1.jsonl", 1, "a" * 40)
    for number, outcome in enumerate(outcomes):
        drawn_fault = DrawnFault("bounds", number, first_fault("dropped guard", "clamp"))
        results.add_trial(drawn_fault, outcome, MODULE)
    return results.summary().splitlines()


def test_the_summary_counts_faults_by_the_tests_that_caught_them(tmp_path: Path) -> None:
    """Broken faults are not counted; tests outside the package catch "elsewhere"."""
    outcomes = [
        Outcome("caught", Round.NAMED, "tests/bounds/test_clamping.py::test_low"),
        Outcome("caught", Round.PACKAGE, "tests/bounds/test_other.py::test_low"),
        Outcome("caught", Round.ELSEWHERE, "tests/integration/test_all.py::test_low"),
        Outcome("survived", Round.ELSEWHERE),
        Outcome("broken", Round.NAMED),
    ]

    lines = summary_of(outcomes, tmp_path)

    header = "| package | faults | caught | caught elsewhere | survived | time limit |"
    first_line = lines.index(header)
    assert lines[first_line : first_line + 4] == [
        "| package | faults | caught | caught elsewhere | survived | time limit |",
        "|---|---:|---:|---:|---:|---:|",
        "| bounds | 4 | 2 | 1 | 1 | 0 |",
        "| all | 4 | 2 | 1 | 1 | 0 |",
    ]


def test_the_summary_explains_the_time_limit_if_a_fault_reached_it(tmp_path: Path) -> None:
    lines = summary_of([Outcome("time limit", Round.ELSEWHERE)], tmp_path)

    # One fault: none caught, none caught elsewhere, none survived, one at the time limit.
    assert lines.count("| bounds | 1 | 0 | 0 | 0 | 1 |") == 1
    (note,) = [line for line in lines if line.startswith("time limit: pytest")]
    assert "count neither as caught nor as survived" in note


def test_the_summary_has_no_note_on_the_time_limit_if_no_fault_reached_it(tmp_path: Path) -> None:
    outcomes = [
        Outcome("caught", Round.NAMED, "tests/bounds/test_clamping.py::test_low"),
        Outcome("survived", Round.ELSEWHERE),
        Outcome("broken", Round.NAMED),
    ]

    lines = summary_of(outcomes, tmp_path)

    for line in lines:
        assert not line.startswith("time limit: pytest")


def test_results_of_another_commit_are_refused(project: Path, tmp_path: Path) -> None:
    """One statistic over the tests of two commits would describe neither."""
    (tmp_path / "faults-1.jsonl").write_text('{"commit": "0123456789abcdef"}\n')

    # \w{10} is the beginning of the project's commit, which is new in each run of the tests.
    message = r"contains results of commit 0123456789, not \w{10}: remove"
    with pytest.raises(UserError, match=message):
        Experiment(project, tmp_path, 1, "toy")


def test_the_error_for_a_failed_git_command_contains_the_message_of_git(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        git(tmp_path, "rev-parse", "HEAD")

    message = f"{tmp_path}: `git rev-parse HEAD` failed: fatal: not a git repository"
    assert str(error.value).startswith(message)
