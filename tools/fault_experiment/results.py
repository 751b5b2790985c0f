"""The results of an experiment: a file that grows with each of them, and a summary."""

import difflib
import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bleuprint.runtime.errors import UserError
from tools.fault_experiment.clone import Outcome
from tools.fault_experiment.fault import Fault, with_fault
from tools.fault_experiment.selection import Round

# The columns of the summary's tables. A fault counts as caught if a test of its package caught it;
# "caught elsewhere", if only another test did.
CAUGHT_ELSEWHERE = "caught elsewhere"
COLUMNS = ("caught", CAUGHT_ELSEWHERE, "survived", "time limit")
TIME_LIMIT_NOTE = (
    "time limit: pytest took too long although no single test hung, so it is unknown whether a "
    "test catches the fault. These faults count neither as caught nor as survived; raise --minutes."
)


@dataclass(frozen=True)
class DrawnFault:
    """A fault and its place in the draw.

    Attributes:
        package: The package whose faults were drawn.
        number: The position of the fault among those drawn in this package, from 0.
        fault: The fault.
    """

    package: str
    number: int
    fault: Fault


@dataclass(frozen=True)
class Trial:
    """A fault that was tried.

    Attributes:
        drawn_fault: The fault and its place in the draw.
        outcome: What the tests said of it.
        diff: The fault as a unified diff.
    """

    drawn_fault: DrawnFault
    outcome: Outcome
    diff: str

    @property
    def is_counted(self) -> bool:
        """Return whether the module could be imported with the fault, so that tests could run."""
        return self.outcome.result != "broken"

    @property
    def column(self) -> str:
        """The column of the summary's tables in which the trial counts."""
        if self.outcome.result == "caught" and self.outcome.round == Round.ELSEWHERE:
            return CAUGHT_ELSEWHERE
        return self.outcome.result


class Results:
    """What is known so far of the faults of one seed; each line of a file is one result.

    Attributes:
        trials: The last trial of each drawn fault.
        passing_tests: Tests that caught a fault and pass without it.
        failing_tests: Tests that fail without a fault as well.
    """

    def __init__(self, path: Path, seed: int, commit: str) -> None:
        """Read a file of results, or begin it.

        Args:
            path: The file.
            seed: The seed of the draw.
            commit: The commit into which faults are put.

        Raises:
            UserError: The file contains results of another commit.
        """
        self._path = path
        self.trials = dict[DrawnFault, Trial]()
        self.passing_tests = set[str]()
        self.failing_tests = set[str]()
        if path.exists():
            self._read(commit)
        else:
            header = {"commit": commit, "seed": seed, "python": platform.python_version()}
            self._append(header)

    def _read(self, commit: str) -> None:
        """Read the file of results: a header, then a line for each trial or check of tests.

        Raises:
            UserError: The file contains results of another commit.
        """
        header, *lines = self._path.read_text("utf-8").splitlines()
        file_commit = json.loads(header)["commit"]
        if file_commit != commit:
            commits = f"commit {file_commit[:10]}, not {commit[:10]}"
            raise UserError(f"{self._path} contains results of {commits}: remove it")
        for line in lines:
            record = json.loads(line)
            if "passing_tests" in record:
                self.passing_tests.update(record["passing_tests"])
                self.failing_tests.update(record["failing_tests"])
                continue
            fault = Fault(**record["fault"])
            drawn_fault = DrawnFault(record["package"], record["number"], fault)
            self.trials[drawn_fault] = Trial(
                drawn_fault, Outcome(**record["outcome"]), record["diff"]
            )

    def _append(self, record: dict[str, object]) -> None:
        """Append a record to the file of results, as one line of JSON."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def add_trial(self, drawn_fault: DrawnFault, outcome: Outcome, source: str) -> None:
        """Add a trial, which replaces an earlier one of the same fault.

        Args:
            drawn_fault: The fault.
            outcome: What the tests said of it.
            source: The text of its file without the fault.
        """
        trial = Trial(drawn_fault, outcome, _diff(source, drawn_fault.fault))
        self.trials[drawn_fault] = trial
        self._append(
            {
                "package": drawn_fault.package,
                "number": drawn_fault.number,
                "fault": asdict(drawn_fault.fault),
                "outcome": asdict(outcome),
                "diff": trial.diff,
            }
        )

    def add_tests(self, passing: set[str], failing: set[str]) -> None:
        """Add tests that were run without a fault.

        Args:
            passing: The tests that passed.
            failing: The tests that failed.
        """
        self.passing_tests |= passing
        self.failing_tests |= failing
        self._append({"passing_tests": sorted(passing), "failing_tests": sorted(failing)})

    def summary(self) -> str:
        """Return the faults that were not caught as diffs, and tables by package and by kind."""
        trials = sorted(self.trials.values(), key=_place_in_draw)
        counted = [trial for trial in trials if trial.is_counted]
        parts = list[str]()
        for trial in counted:
            if trial.outcome.result != "caught":
                title = f"{trial.outcome.result}: {trial.drawn_fault.fault.kind}"
                parts.append(f"{title}\n{trial.diff}")
        for test in sorted(self.failing_tests):
            parts.append(f"fails without a fault: {test}")
        parts.append(_table(counted, "package", lambda trial: trial.drawn_fault.package))
        parts.append(_table(counted, "kind", lambda trial: trial.drawn_fault.fault.kind))
        if any(trial.outcome.result == "time limit" for trial in counted):
            parts.append(TIME_LIMIT_NOTE)
        broken = len(trials) - len(counted)
        parts.append(f"not counted, since the module could not be imported: {broken}")
        return "\n\n".join(parts)


def _place_in_draw(trial: Trial) -> tuple[str, int]:
    """Return the key by which trials are sorted."""
    return trial.drawn_fault.package, trial.drawn_fault.number


def _diff(source: str, fault: Fault) -> str:
    """Return a fault as a unified diff with three lines of context."""
    lines = difflib.unified_diff(
        source.splitlines(keepends=True),
        with_fault(source, fault).splitlines(keepends=True),
        f"a/{fault.path}",
        f"b/{fault.path}",
    )
    return "".join(lines)


def _table(trials: list[Trial], title: str, name_of: Callable[[Trial], str]) -> str:
    """Return a Markdown table that counts trials by their results, such as "caught".

    Args:
        trials: The trials to count.
        title: The title of the first column, such as "package".
        name_of: Returns the name of the row in which a trial counts, such as its package.
    """
    lines = [
        f"| {title} | faults | {' | '.join(COLUMNS)} |",
        f"|---|---:|{'---:|' * len(COLUMNS)}",
    ]
    for name in sorted({name_of(trial) for trial in trials}):
        row = [trial for trial in trials if name_of(trial) == name]
        lines.append(_table_row(name, row))
    lines.append(_table_row("all", trials))
    return "\n".join(lines)


def _table_row(name: str, trials: list[Trial]) -> str:
    """Return one row of a table: the number of all trials, and of those in each column."""
    counts = [len(trials)]
    for column in COLUMNS:
        counts.append(sum(trial.column == column for trial in trials))
    return f"| {name} | {' | '.join(map(str, counts))} |"
