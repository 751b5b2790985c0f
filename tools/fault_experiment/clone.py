"""Run the tests against a fault in a clone of the project."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bleuprint.runtime.errors import UserError
from tools.fault_experiment.fault import Fault, with_fault
from tools.fault_experiment.selection import Round, module_of, select_tests
from tools.git_commands import clone_commit, git

# A test that takes longer hangs; the slowest takes a fifth of this on an idle machine.
SECONDS_PER_TEST = 400
# pytest's exit status if all tests passed, and if none was selected.
ALL_PASSED = 0
NONE_SELECTED = 5


@dataclass(frozen=True)
class Outcome:
    """What the tests said of one fault.

    Attributes:
        result: "caught", "survived", "broken" (the module cannot be imported) or "time limit".
        round: The last round of tests that was run.
        test: The test that failed; empty if all passed.
        message: The first line of its failure.
        seconds: The time that all of this took.
    """

    result: str
    round: str
    test: str = ""
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class _Failure:
    """A test that failed, hung or ended the process."""

    test: str
    message: str

    @property
    def is_of_collection(self) -> bool:
        """Return whether a whole file failed, since pytest could not collect its tests."""
        return "::" not in self.test


class _TimeLimitExceeded(Exception):
    """A run of pytest took longer than it may, although no single test hung."""


@dataclass
class Clone:
    """A clone of the project in which faults are put.

    Attributes:
        folder: The folder of the clone.
        seconds_per_run: The time limit of each run of pytest.
        failing_tests: Tests that fail without a fault as well; pytest leaves them out.
    """

    folder: Path
    seconds_per_run: float
    failing_tests: set[str]

    def make(self, root: Path, commit: str) -> None:
        """Clone the project, or use an existing clone after undoing what a killed run left in it.

        Args:
            root: The folder of the project.
            commit: The commit to check out.

        Raises:
            UserError: The clone exists and is of another commit.
        """
        clone_commit(root, self.folder, commit)
        git(self.folder, "checkout", "--quiet", "--", ".")

    def try_fault(self, fault: Fault, rounds: Iterable[Round]) -> Outcome:
        """Put a fault into its file, run tests until one fails, and take the fault out again.

        Args:
            fault: The fault.
            rounds: The rounds of tests to run.
        """
        start_seconds = time.monotonic()
        path = self.folder / fault.path
        source = path.read_text("utf-8")
        tests = select_tests(self.folder, fault.path)
        _write_module(path, with_fault(source, fault))
        try:
            tests_by_round = {round_name: tests[round_name] for round_name in rounds}
            outcome = self._outcome(fault, tests_by_round)
        finally:
            _write_module(path, source)
        return replace(outcome, seconds=round(time.monotonic() - start_seconds, 1))

    def _outcome(self, fault: Fault, tests: dict[Round, list[str]]) -> Outcome:
        """Run the tests, round by round until one fails, while the fault is in its file.

        Args:
            fault: The fault.
            tests: The test files of each round.

        Returns:
            "caught" if a test fails and "survived" if none does; "broken" if the module cannot be
            imported with the fault, so that the fault does not count.
        """
        last_round = ""
        failure = None
        for last_round, files in tests.items():
            try:
                failure = self._first_failure(files)
            except _TimeLimitExceeded:
                return Outcome("time limit", last_round)
            if failure is not None:
                break
        # Code outside functions runs at import, where a fault may break the whole module.
        runs_at_import = not fault.function
        may_be_broken = runs_at_import or (failure is not None and failure.is_of_collection)
        if may_be_broken and not self._can_import(fault.path):
            result = "broken"
        elif failure is not None:
            result = "caught"
        else:
            result = "survived"
        if failure is None:
            return Outcome(result, last_round)
        return Outcome(result, last_round, failure.test, failure.message)

    def failing_without_fault(self, tests: Iterable[str]) -> set[str]:
        """Run tests without a fault and return those that fail.

        pytest stops at the first failure. So it runs again without the failed test, until the
        remaining tests pass.
        """
        failing = set[str]()
        remaining = sorted(tests)
        while remaining:
            failure = self._first_failure(remaining)
            if failure is None:
                break
            if failure.is_of_collection:
                failed = {test for test in remaining if test.partition("::")[0] == failure.test}
            else:
                failed = {failure.test}
            if failed.isdisjoint(remaining):
                log = self._sibling_path("log")
                raise UserError(f"{log}: pytest failed without a fault: {failure.message}")
            failing |= failed
            # Tests that passed before the failure run again. Which ones they are is unknown, since
            # tests/conftest.py may have changed the order.
            remaining = [test for test in remaining if test not in failed]
        return failing

    def _first_failure(self, tests: list[str]) -> _Failure | None:
        """Run pytest until a test fails; None if all pass."""
        # `--deselect` has no effect on a file that cannot be collected.
        tests = [test for test in tests if test not in self.failing_tests]
        if not tests:
            return None
        # Outside the clone: some tests check that Git finds no new files in it.
        cache = self._sibling_path("cache")
        log = self._sibling_path("log")
        shutil.rmtree(cache, ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "--exitfirst", "--verbose", "--tb=short"]
        command += ["-p", "no:xdist"]
        command += ["-o", f"cache_dir={cache}"]
        command += ["-o", f"faulthandler_timeout={SECONDS_PER_TEST}"]
        command += ["-o", "faulthandler_exit_on_timeout=true"]
        command += ["--basetemp", str(self._sibling_path("tmp"))]
        command += [f"--deselect={test}" for test in sorted(self.failing_tests)]
        with log.open("w", encoding="utf-8") as output:
            status = self._run([*command, *tests], output.fileno())
        if status in (ALL_PASSED, NONE_SELECTED):
            return None
        return _read_failure(cache, log.read_text("utf-8", errors="replace"))

    def _run(self, command: list[str], output: int) -> int:
        """Run a command and return its exit status; end all processes that it leaves.

        Args:
            command: The program and its arguments.
            output: The file descriptor for standard output and standard error.

        Raises:
            _TimeLimitExceeded: The command did not end in time; it has been killed.
        """
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(self.seconds_per_run)
        except subprocess.TimeoutExpired:
            raise _TimeLimitExceeded from None
        finally:
            # Ends processes that the command has left. There is no group if all have ended.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _can_import(self, path: str) -> bool:
        """Return whether Python can import the module in a file of the clone."""
        module = module_of(path)
        if module.endswith("__main__"):
            return True
        done = subprocess.run(
            [sys.executable, "-c", f"import {module}"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def _environment(self) -> dict[str, str]:
        """Return variables with which processes that tests start run the code of the clone."""
        scripts = str(Path(sys.executable).parent)
        search_path = f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "PATH": search_path, "PYTHONPATH": str(self.folder / "src")}

    def _sibling_path(self, suffix: str) -> Path:
        """Return a path beside the clone, such as copy-0.log."""
        return self.folder.with_name(f"{self.folder.name}.{suffix}")


def _write_module(path: Path, text: str) -> None:
    """Write a Python file and remove the bytecode that was compiled from it.

    Python checks bytecode by the size and the time, in seconds, of its source. It would use the old
    bytecode for a new text of equal size that was written in the same second.
    """
    path.write_text(text, "utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def _read_failure(cache: Path, output: str) -> _Failure:
    """Read which test failed: from pytest's cache, or from its output if pytest was ended.

    Args:
        cache: The folder of pytest's cache.
        output: What pytest printed.
    """
    last_failed = cache / "v" / "cache" / "lastfailed"
    if last_failed.exists():
        test = next(iter(json.loads(last_failed.read_text("utf-8"))))
        errors = re.findall(r"(?m)^E   +(\S.*)$", output)
        return _Failure(test, errors[0] if errors else "")
    # pytest was ended while a test ran. It prints the name of a test when the test starts, so the
    # last name belongs to this test. Next to it, Python prints why it ends, such as `Timeout (`.
    after_name = r"PASSED|SKIPPED|XFAIL|Timeout \(|Fatal Python error: "
    started = re.findall(rf"(?m)^(\S+\.py(?:::.*?)?)(?: (?:{after_name}).*)?$", output)
    test = started[-1].rstrip() if started else ""
    if f"Timeout (0:{SECONDS_PER_TEST // 60:02}" in output:
        return _Failure(test, f"hung for {SECONDS_PER_TEST} s")
    lines = output.strip().splitlines()
    return _Failure(test, lines[-1] if lines else "")
