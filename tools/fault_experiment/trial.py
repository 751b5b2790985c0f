"""Run the tests against a fault in a copy of the project."""

import difflib
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
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.fault_experiment.faults import Fault, with_fault

# A test that takes longer hangs; the slowest takes a fifth of this on an idle machine.
SECONDS_PER_TEST = 400
# Tests of the whole program take minutes each.
WHOLE_PROGRAM = ("tests/integration/", "tests/faults/")
# The folders of tests in which some packages are tested as well as in their own.
OTHER_FOLDERS = {"cli": ("tests/serving/",), "cells": ("tests/tracking/",)}
# pytest's exit status if no test was selected.
NONE_SELECTED = 5


@dataclass(frozen=True)
class Outcome:
    """What the tests said of one fault.

    Attributes:
        result: "caught", "survived", "broken" (the module cannot be imported) or "time limit".
        round: The last round of tests that was run (see `rounds_of_tests`).
        test: The test that failed.
        message: The first line of its failure.
        seconds: How long all of this took.
    """

    result: str
    round: str
    test: str
    message: str
    seconds: float


@dataclass(frozen=True)
class _Failure:
    """A test that failed, hung or ended the process."""

    test: str
    message: str


class _TimeLimit(Exception):
    """The tests took longer than they may, although none of them hung."""


@dataclass
class Copy:
    """A clone of the project in which faults are put.

    Attributes:
        folder: The clone.
        seconds: The time limit of each run of pytest.
        wrong_tests: Tests that fail without a fault as well, which are deselected.
    """

    folder: Path
    seconds: float
    wrong_tests: set[str]

    def make(self, root: Path, commit: str) -> None:
        """Clone the commit, unless the clone is there, and check that it is of this commit."""
        if not self.folder.exists():
            partial = self.folder.with_name(f"{self.folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            git(root, "clone", "--quiet", "--no-checkout", str(root), str(partial))
            git(partial, "checkout", "--quiet", "--detach", commit)
            # the library of native functions and its checksum
            for path in root.glob("src/_*_native*"):
                shutil.copy(path, partial / "src")
            partial.rename(self.folder)
        found = git(self.folder, "rev-parse", "HEAD")
        if found != commit:
            sys.exit(f"{self.folder} is of commit {found[:10]}, not {commit[:10]}: remove it")
        # a fault that a killed run left
        git(self.folder, "checkout", "--quiet", "--", ".")

    def try_fault(self, fault: Fault, rounds: Iterable[str]) -> Outcome:
        """Run tests against a fault until one fails.

        Args:
            fault: The fault, which is taken out at the end.
            rounds: Which tests (see `rounds_of_tests`), the likeliest to fail first.
        """
        began = time.monotonic()
        path = self.folder / fault.path
        source = path.read_text("utf-8")
        tests = rounds_of_tests(self.folder, fault.path)
        result, round_name, failure = "survived", "", None
        self._write(path, with_fault(source, fault))
        try:
            for round_name in rounds:
                failure = self._first_failure(tests[round_name])
                if failure is not None:
                    result = "caught"
                    break
            is_collected = failure is None or "::" in failure.test
            is_run_at_import = not fault.function
            if (is_run_at_import or not is_collected) and not self._can_import(fault.path):
                result = "broken"
        except _TimeLimit:
            result = "time limit"
        finally:
            self._write(path, source)
        seconds = round(time.monotonic() - began, 1)
        test, message = ("", "") if failure is None else (failure.test, failure.message)
        return Outcome(result, round_name, test, message, seconds)

    def wrong(self, tests: Iterable[str]) -> set[str]:
        """Return which of some tests fail without a fault as well."""
        found = set[str]()
        remaining = sorted(tests)
        while remaining:
            failure = self._first_failure(remaining)
            if failure is None:
                return found
            found.add(failure.test)
            # those before it passed, unless tests/conftest.py has put them after it
            remaining = [test for test in remaining if test not in found]
        return found

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        # compiled files are compared by size and second, which may be equal
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def _environment(self) -> dict[str, str]:
        """Variables with which processes that tests start load the code of the copy as well."""
        scripts = str(Path(sys.executable).parent)
        path = f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(self.folder / "src")}

    def _can_import(self, path: str) -> bool:
        module = module_of(path)
        if module.endswith("__main__"):
            return True
        done = subprocess.run(
            [sys.executable, "-c", f"import {module}"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return done.returncode == 0

    def _first_failure(self, tests: list[str]) -> _Failure | None:
        """Run pytest until a test fails; None if all pass."""
        # a file that cannot be collected is not deselected
        tests = [test for test in tests if test not in self.wrong_tests]
        if not tests:
            return None
        # beside the copy, since tests compare what Git says of it
        cache = self.folder.with_name(f"{self.folder.name}.cache")
        log = self.folder.with_name(f"{self.folder.name}.log")
        shutil.rmtree(cache, ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "--exitfirst", "--verbose", "--tb=short"]
        command += ["-p", "no:xdist", "-o", f"cache_dir={cache}"]
        command += ["-o", f"faulthandler_timeout={SECONDS_PER_TEST}"]
        command += ["-o", "faulthandler_exit_on_timeout=true"]
        command += ["--basetemp", str(self.folder.with_name(f"{self.folder.name}.tmp"))]
        command += [f"--deselect={test}" for test in sorted(self.wrong_tests)]
        with log.open("w", encoding="utf-8") as output:
            status = self._run([*command, *tests], output.fileno())
        if status in (0, NONE_SELECTED):
            return None
        return _failure(cache, log.read_text("utf-8", errors="replace"))

    def _run(self, command: list[str], output: int) -> int:
        """Run a command in a process group of its own and end the group with it."""
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
            return process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            raise _TimeLimit from None
        finally:
            # unless all processes of the group have ended
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _failure(cache: Path, output: str) -> _Failure:
    """Read which test failed from pytest's cache, or from its output if it was ended."""
    last_failed = cache / "v" / "cache" / "lastfailed"
    errors = re.findall(r"(?m)^E   +(\S.*)$", output)
    if last_failed.exists():
        test = next(iter(json.loads(last_failed.read_text("utf-8"))))
        return _Failure(test, errors[0] if errors else "")
    started = re.findall(r"(?m)^(\S+\.py(?:::.*?)?)(?: (?:PASSED|SKIPPED|XFAIL).*)?$", output)
    test = started[-1].rstrip() if started else ""
    if f"Timeout (0:{SECONDS_PER_TEST // 60:02}" in output:
        return _Failure(test, f"hung for {SECONDS_PER_TEST} s")
    lines = output.strip().splitlines()
    return _Failure(test, lines[-1] if lines else "")


def rounds_of_tests(root: Path, path: str) -> dict[str, list[str]]:
    """Return the tests for a file of the package: first the likeliest to fail.

    Args:
        root: The project's folder.
        path: The file, from there.

    Returns:
        Test files, from there, by round: "named" for the module or importing it, in the tests of
        its package; "package" for the rest of these; "elsewhere" for others that import it, for
        `OTHER_FOLDERS` and for tests of the whole program. A package without a folder in tests/
        has the tests that import it.
    """
    module = module_of(path)
    package = Path(path).parts[2]
    everywhere = [
        *sorted(root.glob("tests/**/test_*.py")),
        *sorted(root.glob("tools/**/test_*.py")),
    ]
    texts = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in everywhere}
    stem = module.rpartition(".")[2]
    named = [name for name in texts if Path(name).stem.startswith(f"test_{stem}")]
    importing = [name for name, text in texts.items() if imports(text, module)]
    whole = [name for name in texts if name.startswith(WHOLE_PROGRAM)]
    others = [name for name in texts if name.startswith(OTHER_FOLDERS.get(package, ()))]
    if (root / "tests" / package).is_dir():
        of_package = [name for name in texts if name.startswith(f"tests/{package}/")]
    else:
        dotted = ".".join(module.split(".")[:2])
        of_package = [name for name, text in texts.items() if imports(text, dotted)]
        of_package = [name for name in of_package if name not in whole]
    likeliest = [name for name in dict.fromkeys([*named, *importing]) if name in of_package]
    rest = [name for name in of_package if name not in likeliest]
    every = dict.fromkeys([*importing, *others, *whole])
    elsewhere = [name for name in every if name not in of_package]
    return {"named": likeliest, "package": rest, "elsewhere": elsewhere}


def imports(text: str, module: str) -> bool:
    """Whether the text of a test names a module, in an import or as a string."""
    parent, _, stem = module.rpartition(".")
    from_parent = rf"from {re.escape(parent)} import [^\n]*\b{stem}\b"
    return re.search(rf"\b{re.escape(module)}\b|{from_parent}", text) is not None


def module_of(path: str) -> str:
    """Return the dotted name of a file in src/."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(part for part in parts if part != "__init__")


def diff(source: str, fault: Fault) -> str:
    """Return a fault as a unified diff with three lines of context."""
    lines = difflib.unified_diff(
        source.splitlines(keepends=True),
        with_fault(source, fault).splitlines(keepends=True),
        f"a/{fault.path}",
        f"b/{fault.path}",
    )
    return "".join(lines)


def as_record(fault: Fault, outcome: Outcome) -> dict[str, object]:
    """Return fault and outcome as an object for JSON."""
    return {**asdict(fault), **asdict(outcome)}


def git(folder: Path, *arguments: str) -> str:
    """Return what a Git command prints."""
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()
