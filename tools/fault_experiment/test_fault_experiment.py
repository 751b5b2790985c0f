"""The experiment with faults: what it draws, and that tests which see a fault catch it."""

import ast
import os
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from root import ROOT
from tools.fault_experiment import clone as clone_module
from tools.fault_experiment.clone import Clone, Outcome
from tools.fault_experiment.drawing import draw_faults, faults_per_package
from tools.fault_experiment.experiment import Experiment
from tools.fault_experiment.fault import Fault, is_another_program, with_fault
from tools.fault_experiment.faults import faults_in
from tools.fault_experiment.results import DrawnFault, Results
from tools.fault_experiment.selection import Round, select_tests
from tools.git_commands import git

SOURCE = '''\
"""A docstring with 1 < 2 and not 3."""


def limited(values: dict[str, int], most: int = 10) -> int:
    """Return the sum, at most `most`; not below 0."""
    assert most > 0
    if not values:
        return 0
    total = values["first"] + values["second"]
    if total < 0 or total is None:
        raise ValueError(f"{total} is below 0")
    total = min(total, most)
    return round(total, -1)


class Named:
    def __repr__(self) -> str:
        return "ä" * 7

    def size(self, width: float, height: float) -> float:
        area = self.scaled(width, height)
        print(f"ä: {area - 1}")
        return -area * 0.5 if self.is_negative and self.has_area else area
'''


def faulty_lines(kind: str) -> list[str]:
    """Return the lines that faults of one kind change, with the fault in them."""
    lines = list[str]()
    for fault in faults_in("module.py", SOURCE):
        if fault.kind == kind:
            faulty = with_fault(SOURCE, fault).splitlines()
            lines.append(faulty[fault.line - 1].strip())
    return lines


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("bound", ["if total <= 0 or total is None:"]),
        ("comparison", ["if total < 0 or total is not None:"]),
        (
            "and/or",
            [
                "if total < 0 and total is None:",
                "return -area * 0.5 if self.is_negative or self.has_area else area",
            ],
        ),
        (
            "sign",
            [
                "return round(total, 1)",
                "return area * 0.5 if self.is_negative and self.has_area else area",
            ],
        ),
        ("dropped not", ["if values:"]),
        ("dropped raise", ["pass"]),
        ("dropped return", ["pass"]),
        ("dropped assignment", ["pass"]),
        ("dropped call", ["pass"]),
        ("dropped guard", ["pass", "pass"]),
        (
            "key",
            [
                'total = values["second"] + values["second"]',
                'total = values["first"] + values["first"]',
            ],
        ),
        (
            "attribute",
            [
                "return -area * 0.5 if self.has_area and self.has_area else area",
                "return -area * 0.5 if self.is_negative and self.is_negative else area",
            ],
        ),
        (
            "arithmetic",
            [
                'total = values["first"] - values["second"]',
                'print(f"ä: {area + 1}")',
                "return -area / 0.5 if self.is_negative and self.has_area else area",
            ],
        ),
        ("swapped arguments", ["return round(-1, total)", "area = self.scaled(height, width)"]),
    ],
)
def test_the_faults_of_each_kind(kind: str, lines: list[str]) -> None:
    assert faulty_lines(kind) == lines


def test_numbers_become_one_more_or_less_and_fractions_double_or_half() -> None:
    lines = faulty_lines("number")
    assert "return 1" in lines
    assert "def limited(values: dict[str, int], most: int = 11) -> int:" in lines
    assert "def limited(values: dict[str, int], most: int = 9) -> int:" in lines
    assert "return -area * 1.0 if self.is_negative and self.has_area else area" in lines
    assert "return -area * 0.25 if self.is_negative and self.has_area else area" in lines


def test_docstrings_assertions_and_repr_stay_as_they_are() -> None:
    for fault in faults_in("module.py", SOURCE):
        faulty = with_fault(SOURCE, fault)
        tree = ast.parse(faulty)
        assert ast.get_docstring(tree) == "A docstring with 1 < 2 and not 3."
        assert "assert most > 0\n" in faulty
        assert 'return "ä" * 7\n' in faulty


def test_kernels_that_only_run_on_a_gpu_stay_as_they_are() -> None:
    source = "@triton.jit\ndef kernel(x):\n    return x + 1\n"
    assert faults_in("module.py", source) == []


def test_what_is_drawn_are_other_valid_programs_one_in_each_function() -> None:
    paths = [ROOT / "src" / "bleuprint" / "text" / "numbers.py"]
    source = paths[0].read_text("utf-8")
    faults = list(draw_faults(ROOT, paths, "1"))
    assert len(faults) > 10
    assert len({fault.function for fault in faults}) == len(faults)
    for fault in faults:
        assert is_another_program(source, fault)
        # The rest of the file keeps its form.
        faulty = with_fault(source, fault)
        assert faulty.startswith(source.encode()[: fault.start].decode())
        assert faulty.endswith(source.encode()[fault.end :].decode())


def test_a_seed_draws_the_same_faults_and_another_seed_others() -> None:
    paths = sorted((ROOT / "src" / "bleuprint" / "rules").glob("*.py"))
    first = list(islice(draw_faults(ROOT, paths, "1 rules"), 12))
    assert list(islice(draw_faults(ROOT, paths, "1 rules"), 12)) == first
    assert list(islice(draw_faults(ROOT, paths, "2 rules"), 12)) != first


def test_each_package_gets_two_faults_and_the_rest_in_proportion_to_its_functions() -> None:
    # 60 - 3 * 2 = 54 in proportion to 300, 80, 1: 42.5, 11.3, 0.1
    assert faults_per_package({"large": 300, "small": 80, "tiny": 1}, 60) == {
        "large": 45,
        "small": 13,
        "tiny": 2,
    }
    assert sum(faults_per_package({"large": 300, "small": 80, "tiny": 1}, 2).values()) == 2


def test_tests_named_for_a_module_or_importing_it_come_first() -> None:
    rounds = select_tests(ROOT, "src/bleuprint/text/numbers.py")
    assert rounds[Round.NAMED][0] == "tests/text/test_numbers.py"
    assert "tests/text/test_moses.py" in rounds[Round.PACKAGE]
    assert "tests/text/test_numbers.py" not in rounds[Round.PACKAGE]
    assert "tests/integration/test_dvc.py" in rounds[Round.ELSEWHERE]


def test_the_tests_of_a_command_are_in_several_folders() -> None:
    rounds = select_tests(ROOT, "src/bleuprint/cli/translate.py")
    assert "tests/cli/test_main.py" in rounds[Round.PACKAGE]
    assert "tests/serving/test_translator.py" in rounds[Round.ELSEWHERE]


# Of the project below: `clamp` is tested, `middle` only in a process, `unused` nowhere.
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


def the_fault(kind: str, function: str) -> Fault:
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


def test_a_tested_fault_is_caught_and_the_file_is_put_back(clone: Clone) -> None:
    outcome = clone.try_fault(the_fault("dropped guard", "clamp"), [Round.NAMED])
    assert outcome.result == "caught"
    assert outcome.test == "tests/bounds/test_clamping.py::test_low"
    assert outcome.message == "assert -1 == 1"
    assert (clone.folder / "src/toy/bounds/clamping.py").read_text() == MODULE


def test_processes_that_tests_start_run_the_faulty_code(clone: Clone) -> None:
    outcome = clone.try_fault(the_fault("arithmetic", "middle"), [Round.NAMED])
    assert outcome.test == "tests/bounds/test_clamping.py::test_in_a_process"


def test_tests_that_fail_without_a_fault_are_found(clone: Clone) -> None:
    tests = [f"tests/bounds/test_clamping.py::{name}" for name in ("test_low", "test_always_fails")]
    assert clone.failing_without_fault(tests) == {tests[1]}


def test_a_module_that_cannot_be_imported_is_not_counted(clone: Clone) -> None:
    at_import = Fault("src/toy/bounds/clamping.py", "", "number", 1, 0, 3, "1 / 0\ndef")
    assert clone.try_fault(at_import, [Round.NAMED]).result == "broken"


def test_the_same_command_continues(project: Path, tmp_path: Path) -> None:
    first = Experiment(project, tmp_path, 1, "toy")
    first.run(2, jobs=1, seconds_per_run=60)
    lines = (tmp_path / "faults-1.jsonl").read_text().splitlines()
    again = Experiment(project, tmp_path, 1, "toy")
    again.run(2, jobs=1, seconds_per_run=60)
    assert (tmp_path / "faults-1.jsonl").read_text().splitlines() == lines
    assert again.summary() == first.summary()
    assert "| bounds | 2 |" in again.summary()


def test_an_untested_fault_survives_although_another_test_fails_without_it(
    project: Path, tmp_path: Path
) -> None:
    experiment = Experiment(project, tmp_path, 1, "toy")
    experiment.run(4, jobs=2, seconds_per_run=60)
    results = dict[str, tuple[str, str]]()
    for drawn_fault, trial in experiment.results.trials.items():
        test = trial.outcome.test.rpartition("::")[2]
        results[drawn_fault.fault.function] = (trial.outcome.result, test)
    assert results["middle"] == ("caught", "test_in_a_process")
    assert results["unused"] == ("survived", "")
    assert "fails without a fault: tests/bounds/test_clamping.py::test_always_fails" in (
        experiment.summary()
    )


def test_the_summary_says_how_many_faults_could_not_be_drawn(project: Path, tmp_path: Path) -> None:
    experiment = Experiment(project, tmp_path, 1, "toy")
    experiment.run(5, jobs=1, seconds_per_run=60)
    # The module has three functions, of which each gets one fault.
    assert len(experiment.results.trials) == 3
    last_line = "not drawn, since each function had one fault already: 2 in bounds"
    assert experiment.summary().splitlines()[-1] == last_line


def test_all_tests_of_a_file_that_cannot_be_collected_fail_without_a_fault(clone: Clone) -> None:
    file = clone.folder / "tests/bounds/test_not_collected.py"
    file.write_text("import a_module_that_is_missing\n")
    tests = {f"tests/bounds/test_not_collected.py::{name}" for name in ("test_one", "test_two")}
    try:
        assert (
            clone.failing_without_fault({*tests, "tests/bounds/test_clamping.py::test_low"})
            == tests
        )
    finally:
        file.unlink()


# A test that notices a fault in `clamp`, and what it then does.
TOY_TEST = """\
import os
import time

from toy.bounds.clamping import clamp


def test_before():
    pass


def test_toy():
    if clamp(-1, 1, 3) != 1:
        {consequence}
"""


@pytest.fixture
def outcome_of(clone: Clone) -> Iterator[Callable[[str], Outcome]]:
    """Return a function that tries a fault with a test, given what the test does if it fails."""
    tests = clone.folder / "tests/bounds/test_clamping.py"

    def outcome_of(consequence: str) -> Outcome:
        tests.write_text(TOY_TEST.format(consequence=consequence))
        return clone.try_fault(the_fault("dropped guard", "clamp"), [Round.NAMED, Round.PACKAGE])

    yield outcome_of
    tests.write_text(TESTS)


def test_a_fault_with_which_a_test_hangs_is_caught(
    outcome_of: Callable[[str], Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clone_module, "SECONDS_PER_TEST", 1)
    outcome = outcome_of("time.sleep(3600)")
    assert (outcome.result, outcome.message) == ("caught", "hung for 1 s")
    assert outcome.test == "tests/bounds/test_clamping.py::test_toy"


def test_a_run_that_takes_too_long_is_neither_caught_nor_survived(
    outcome_of: Callable[[str], Outcome], clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clone, "seconds_per_run", 1)
    outcome = outcome_of("time.sleep(3600)")
    assert (outcome.result, outcome.round, outcome.test) == ("time limit", "named", "")
    assert (clone.folder / "src/toy/bounds/clamping.py").read_text() == MODULE


@pytest.mark.parametrize("consequence", ["os._exit(3)", "os.kill(os.getpid(), 11)"])
def test_a_fault_with_which_a_test_ends_pytest_is_caught(
    outcome_of: Callable[[str], Outcome], consequence: str
) -> None:
    outcome = outcome_of(consequence)
    assert outcome.result == "caught"
    assert outcome.test == "tests/bounds/test_clamping.py::test_toy"


def test_the_limit_of_a_test_is_recognized_in_what_pytest_prints(tmp_path: Path) -> None:
    # Python's faulthandler prints this after 400 seconds.
    output = (
        "tests/test_a.py::test_one PASSED [ 50%]\n"
        "tests/test_a.py::test_two Timeout (0:06:40)!\n"
        "Thread 0x00007f (most recent call first):\n"
    )
    failure = clone_module._read_failure(tmp_path, output)
    assert failure.test == "tests/test_a.py::test_two"
    assert failure.message == "hung for 400 s"


def test_the_tables_tell_who_caught_a_fault(tmp_path: Path) -> None:
    results = Results(tmp_path / "faults-1.jsonl", 1, "a" * 40)
    outcomes = [
        Outcome("caught", Round.NAMED, "tests/bounds/test_clamping.py::test_low"),
        Outcome("caught", Round.PACKAGE, "tests/bounds/test_other.py::test_low"),
        Outcome("caught", Round.ELSEWHERE, "tests/integration/test_all.py::test_low"),
        Outcome("survived", Round.ELSEWHERE),
        Outcome("broken", Round.NAMED),
    ]
    for number, outcome in enumerate(outcomes):
        drawn_fault = DrawnFault("bounds", number, the_fault("dropped guard", "clamp"))
        results.add_trial(drawn_fault, outcome, MODULE)
    lines = results.summary().splitlines()
    header = "| package | faults | caught | caught elsewhere | survived | time limit |"
    header_index = lines.index(header)
    assert lines[header_index + 1 : header_index + 4] == [
        "|---|---:|---:|---:|---:|---:|",
        "| bounds | 4 | 2 | 1 | 1 | 0 |",
        "| all | 4 | 2 | 1 | 1 | 0 |",
    ]
    assert not [line for line in lines if line.startswith("time limit: pytest")]


def test_the_summary_says_how_time_limits_count(tmp_path: Path) -> None:
    results = Results(tmp_path / "faults-1.jsonl", 1, "a" * 40)
    drawn_fault = DrawnFault("bounds", 0, the_fault("dropped guard", "clamp"))
    results.add_trial(drawn_fault, Outcome("time limit", Round.ELSEWHERE), MODULE)
    lines = results.summary().splitlines()
    assert lines.count("| bounds | 1 | 0 | 0 | 0 | 1 |") == 1
    (note,) = [line for line in lines if line.startswith("time limit: pytest")]
    assert "count neither as caught nor as survived" in note


def test_results_of_another_commit_are_refused(project: Path, tmp_path: Path) -> None:
    state = tmp_path / "faults-1.jsonl"
    state.write_text('{"commit": "0123456789abcdef"}\n')
    with pytest.raises(
        UserError, match=r"contains results of commit 0123456789, not \w{10}: remove"
    ):
        Experiment(project, tmp_path, 1, "toy")


def test_an_error_of_git_says_what_git_said(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        git(tmp_path, "rev-parse", "HEAD")
    message = f"{tmp_path}: `git rev-parse HEAD` failed: fatal: not a git repository"
    assert str(caught.value).startswith(message)
