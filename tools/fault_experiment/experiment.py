"""The experiment: draw faults, try them in clones of the project, and sum up the results."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from tools.fault_experiment.clone import Clone, Outcome
from tools.fault_experiment.drawing import (
    count_functions,
    draw_faults,
    faults_per_package,
    python_files_by_package,
)
from tools.fault_experiment.fault import Fault
from tools.fault_experiment.results import DrawnFault, Results
from tools.fault_experiment.selection import PACKAGE_ROUNDS, Round
from tools.git_commands import git


class Experiment:
    """The faults of one seed in the last commit of a project.

    Attributes:
        results: What the tests said of the faults that were tried.
    """

    def __init__(self, root: Path, folder: Path, seed: int, package: str = "bleuprint") -> None:
        """Read the results so far.

        Args:
            root: The project's folder.
            folder: The folder for the clones and the results.
            seed: The seed of the draw.
            package: The name of the package in src/.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._folder = folder
        self._seed = seed
        self._package = package
        self._commit = git(root, "rev-parse", "HEAD")
        self.results = Results(folder / f"faults-{seed}.jsonl", seed, self._commit)
        # The faults drawn so far, tried or not.
        self._drawn = list[DrawnFault]()
        # For the summary: how many faults of its quota each package lacks after the last draw.
        self._lacking_at_the_end = dict[str, int]()
        self._idle_clones = Queue[Clone]()

    def run(self, count: int, jobs: int, seconds_per_run: float) -> None:
        """Try faults with the tests of their package, then the surviving ones with other tests.

        A fault with which the module cannot be imported does not count; the next one of its package
        takes its place.

        Args:
            count: The number of faults.
            jobs: The number of faults that are tried at a time.
            seconds_per_run: The time limit of each run of pytest.
        """
        for number in range(jobs):
            folder = self._folder / f"copy-{number}"
            clone = Clone(folder, seconds_per_run, self.results.failing_tests)
            clone.make(self._root, self._commit)
            self._idle_clones.put(clone)
        with ThreadPoolExecutor(jobs) as pool:
            self._try_new_faults(pool, count)
            self._repeat_falsely_caught(pool, PACKAGE_ROUNDS)
            survivors = self._with_result("survived")
            unfinished = [
                drawn_fault
                for drawn_fault in survivors
                if self._round(drawn_fault) != Round.ELSEWHERE
            ]
            self._try_all(pool, unfinished, (Round.ELSEWHERE,))
            self._repeat_falsely_caught(pool, tuple(Round))

    def _try_new_faults(self, pool: ThreadPoolExecutor, count: int) -> None:
        """Draw and try faults until `count` of them count.

        A fault with which the module cannot be imported does not count. So each batch draws as many
        faults as are still needed after the batches before. Faults that an earlier call of this
        program has tried are drawn again, but not tried again.
        """
        # All clones have the same files, so the faults are drawn from the first one.
        root = self._folder / "copy-0"
        files = python_files_by_package(root / "src" / self._package)
        quotas = faults_per_package(_function_counts(files), count)
        draws = dict[str, Iterator[DrawnFault]]()
        for package in quotas:
            faults = draw_faults(root, files[package], f"{self._seed} {package}")
            draws[package] = _numbered(package, faults)
        lacking = quotas
        while True:
            batch = _next_batch(draws, lacking)
            if not batch:
                break
            self._drawn += batch
            untried = [
                drawn_fault for drawn_fault in batch if drawn_fault not in self.results.trials
            ]
            self._try_all(pool, untried, PACKAGE_ROUNDS)
            lacking = self._lacking(quotas)
        self._lacking_at_the_end = lacking

    def _lacking(self, quotas: Mapping[str, int]) -> dict[str, int]:
        """Return how many faults each package still needs to reach its quota.

        Args:
            quotas: The number of counted faults that each package is to have.
        """
        lacking = dict(quotas)
        for drawn_fault in self._drawn:
            if self.results.trials[drawn_fault].is_counted:
                lacking[drawn_fault.package] -= 1
        return lacking

    def _repeat_falsely_caught(self, pool: ThreadPoolExecutor, rounds: tuple[Round, ...]) -> None:
        """Try faults again that were only caught by a test which also fails without a fault.

        Such a test says nothing, so it is skipped from then on. Another test that fails in the
        repeated trial is checked in the same way, until each failure is due to a fault.
        """
        while True:
            caught = self._with_result("caught")
            self._check_without_fault({self._test(drawn_fault) for drawn_fault in caught})
            failing_tests = self.results.failing_tests
            falsely_caught = [
                drawn_fault for drawn_fault in caught if self._test(drawn_fault) in failing_tests
            ]
            if not falsely_caught:
                return
            self._try_all(pool, falsely_caught, rounds)

    def _check_without_fault(self, tests: set[str]) -> None:
        """Run tests without a fault, to find those that fail anyway and so say nothing.

        Tests whose result is known are not run again.
        """
        unknown = tests - self.results.passing_tests - self.results.failing_tests
        # Empty if pytest ended before it named a test.
        unknown.discard("")
        if not unknown:
            return
        with self._clone() as clone:
            failing = clone.failing_without_fault(unknown)
        self.results.add_tests(passing=unknown - failing, failing=failing)

    def _try_all(
        self,
        pool: ThreadPoolExecutor,
        faults: list[DrawnFault],
        rounds: tuple[Round, ...],
    ) -> None:
        """Try faults, as many at a time as there are clones."""
        trials = [pool.submit(self._try_fault, drawn_fault, rounds) for drawn_fault in faults]
        for trial in trials:
            trial.result()

    def _try_fault(self, drawn_fault: DrawnFault, rounds: tuple[Round, ...]) -> None:
        """Try a fault, keep the result and print it."""
        with self._clone() as clone:
            source = (clone.folder / drawn_fault.fault.path).read_text("utf-8")
            outcome = clone.try_fault(drawn_fault.fault, rounds)
        self.results.add_trial(drawn_fault, outcome, source)
        print(_describe(drawn_fault.fault, outcome), flush=True)

    @contextmanager
    def _clone(self) -> Iterator[Clone]:
        """Take a clone that no other thread uses, for a `with` block; wait until there is one."""
        clone = self._idle_clones.get()
        try:
            yield clone
        finally:
            self._idle_clones.put(clone)

    def _with_result(self, result: str) -> list[DrawnFault]:
        """Return the drawn faults whose last trial has a result."""
        return [
            drawn_fault
            for drawn_fault in self._drawn
            if self._outcome(drawn_fault).result == result
        ]

    def _outcome(self, drawn_fault: DrawnFault) -> Outcome:
        return self.results.trials[drawn_fault].outcome

    def _round(self, drawn_fault: DrawnFault) -> str:
        return self._outcome(drawn_fault).round

    def _test(self, drawn_fault: DrawnFault) -> str:
        return self._outcome(drawn_fault).test

    def summary(self) -> str:
        """Return a text with the uncaught faults as diffs, and tables of all results.

        It also tells for which packages fewer faults were drawn than planned.
        """
        summary = self.results.summary()
        parts = list[str]()
        for package, number in self._lacking_at_the_end.items():
            if number > 0:
                parts.append(f"{number} in {package}")
        if not parts:
            return summary
        packages = ", ".join(parts)
        return f"{summary}\n\nnot drawn, since each function had one fault already: {packages}"


def _function_counts(files_by_package: Mapping[str, list[Path]]) -> dict[str, int]:
    """Return the number of functions of each package that has any."""
    counts = dict[str, int]()
    for package, paths in files_by_package.items():
        functions = count_functions(paths)
        if functions > 0:
            counts[package] = functions
    return counts


def _numbered(package: str, faults: Iterator[Fault]) -> Iterator[DrawnFault]:
    """Yield the faults of a package with their positions in its draw."""
    for number, fault in enumerate(faults):
        yield DrawnFault(package, number, fault)


def _next_batch(
    draws: Mapping[str, Iterator[DrawnFault]], lacking: Mapping[str, int]
) -> list[DrawnFault]:
    """Draw as many faults as packages still need, one from each package in turn.

    Args:
        draws: For each package, an iterator over the faults that have not been drawn yet.
        lacking: The number of faults that each package still needs.

    Returns:
        The faults; empty if no package needs any. A package without further faults gets fewer.
    """
    batch = list[DrawnFault]()
    for turn in range(max(lacking.values())):
        for package, number in lacking.items():
            if turn >= number:
                continue
            drawn_fault = next(draws[package], None)
            if drawn_fault is not None:
                batch.append(drawn_fault)
    return batch


def _describe(fault: Fault, outcome: Outcome) -> str:
    """Describe in one line whether a fault was caught, and by which test."""
    fault_name = f"{fault.path}:{fault.line}: {fault.kind}"
    if outcome.result != "caught":
        return f"{outcome.result}: {fault_name}, {outcome.seconds:.0f} s"
    return f"caught: {fault_name}, by {outcome.test} in {outcome.seconds:.0f} s: {outcome.message}"
