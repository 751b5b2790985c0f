"""Put faults into the package, one at a time, and see which ones its tests catch.

    python -m tools.fault_experiment FOLDER --seed 1 --count 60

draws 60 faults of HEAD, spread over all packages: operators, bounds, signs, keys, dropped lines.
FOLDER contains a clone of the project for each job, and faults-SEED.jsonl with what is known so
far: the same command continues after a stop. Faults that the tests did not catch are printed at
the end as diffs: each shows a missing test, unless no user can notice it.
"""

import argparse
import json
import platform
import queue
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tools.fault_experiment.drawing import count_functions, drawn, shares, sources_by_package
from tools.fault_experiment.faults import Fault
from tools.fault_experiment.trial import Copy, Outcome, as_record, diff, git

Record = dict[str, Any]
OF_PACKAGE = ("named", "package")
ELSEWHERE = ("elsewhere",)
RESULTS = ("caught", "survived", "time limit")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fault_experiment", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="folder for clones and results")
    parser.add_argument("--seed", type=int, required=True, help="of the draw")
    parser.add_argument("--count", type=int, default=60, help="number of faults (default: 60)")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time (default: 1)")
    parser.add_argument(
        "--minutes", type=float, default=30, help="time limit of each pytest run (default: 30)"
    )
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    experiment = Experiment(root, arguments.folder.resolve(), arguments.seed)
    experiment.run(arguments.count, arguments.jobs, arguments.minutes * 60)
    print(experiment.summary())


@dataclass(frozen=True)
class Draw:
    """A fault, and which draw of its package it is, from 0."""

    package: str
    number: int
    fault: Fault


class Experiment:
    """The faults of one seed, and what the tests said of them.

    Attributes:
        records: Those that were tried, by package and number of the draw.
    """

    def __init__(self, root: Path, folder: Path, seed: int, package: str = "bleuprint") -> None:
        """Read what is known so far.

        Args:
            root: The project's folder.
            folder: For the clones and the results.
            seed: The seed of the draw.
            package: The name of the package in src/.
        """
        self._root = root
        self._folder = folder
        self._seed = seed
        self._package = package
        self._state = folder / f"faults-{seed}.jsonl"
        self._commit = git(root, "rev-parse", "HEAD")
        self.records = dict[tuple[str, int], Record]()
        self._faults = dict[tuple[str, int], Draw]()
        self._right_tests = set[str]()
        self._wrong_tests = set[str]()
        self._copies = queue.Queue[Copy]()
        folder.mkdir(parents=True, exist_ok=True)
        if self._state.exists():
            self._read()
        else:
            self._append(
                {"commit": self._commit, "seed": seed, "python": platform.python_version()}
            )

    def _read(self) -> None:
        header, *lines = self._state.read_text("utf-8").splitlines()
        commit = json.loads(header)["commit"]
        if commit != self._commit:
            commits = f"{commit[:10]}, not {self._commit[:10]}"
            sys.exit(f"{self._state} is of commit {commits}: remove it")
        for line in lines:
            record = json.loads(line)
            if "right_tests" in record:
                self._right_tests.update(record["right_tests"])
                self._wrong_tests.update(record["wrong_tests"])
            else:
                # a fault that was tried again has its last outcome
                self.records[record["package"], record["number"]] = record

    def _append(self, record: Record) -> None:
        with self._state.open("a", encoding="utf-8") as state:
            state.write(json.dumps(record, ensure_ascii=False) + "\n")

    def run(self, count: int, jobs: int, seconds: float) -> None:
        """Try `count` faults, `jobs` at a time, with a time limit for each run of pytest.

        For a fault with which the module cannot be imported, the next one of its package is tried.
        All faults meet the tests of their package first, and survivors then the tests elsewhere.
        """
        for number in range(jobs):
            copy = Copy(self._folder / f"copy-{number}", seconds, self._wrong_tests)
            copy.make(self._root, self._commit)
            self._copies.put(copy)
        with ThreadPoolExecutor(jobs) as pool:
            self._try_drawn(pool, count)
            self._try_again(pool, OF_PACKAGE)
            survivors = self._with_result("survived")
            not_finished = [draw for draw in survivors if self._round(draw) != ELSEWHERE[-1]]
            list(pool.map(lambda draw: self._try(draw, ELSEWHERE), not_finished))
            self._try_again(pool, (*OF_PACKAGE, *ELSEWHERE))

    def _try_drawn(self, pool: ThreadPoolExecutor, count: int) -> None:
        """Draw and try faults until `count` of them could be imported."""
        drawing = self._folder / "copy-0"
        files = sources_by_package(drawing / "src" / self._package)
        weights = {package: count_functions(paths) for package, paths in files.items()}
        weights = {package: weight for package, weight in weights.items() if weight}
        missing = shares(weights, count)
        draws = {}
        for package in missing:
            faults = drawn(drawing, files[package], f"{self._seed} {package}")
            draws[package] = enumerate(faults)
        while batch := list(_in_turn(draws, missing)):
            for draw in batch:
                self._faults[draw.package, draw.number] = draw
            unknown = [draw for draw in batch if (draw.package, draw.number) not in self.records]
            list(pool.map(lambda draw: self._try(draw, OF_PACKAGE), unknown))
            for draw in batch:
                is_broken = self._result(draw) == "broken"
                missing[draw.package] -= not is_broken

    def _try_again(self, pool: ThreadPoolExecutor, rounds: tuple[str, ...]) -> None:
        """Try faults again that were caught by tests which fail without a fault as well."""
        while True:
            caught = self._with_result("caught")
            unchecked = {self._test(draw) for draw in caught} - self._right_tests
            if unchecked:
                copy = self._copies.get()
                wrong = copy.wrong(unchecked - self._wrong_tests)
                self._copies.put(copy)
                self._wrong_tests.update(wrong)
                self._right_tests.update(unchecked - self._wrong_tests)
                tests = {"right_tests": sorted(self._right_tests)}
                self._append({**tests, "wrong_tests": sorted(self._wrong_tests)})
            again = [draw for draw in caught if self._test(draw) in self._wrong_tests]
            if not again:
                return
            list(pool.map(lambda draw: self._try(draw, rounds), again))

    def _try(self, draw: "Draw", rounds: tuple[str, ...]) -> None:
        """Try a fault and record the outcome."""
        fault = draw.fault
        copy = self._copies.get()
        try:
            source = (copy.folder / fault.path).read_text("utf-8")
            outcome = copy.try_fault(fault, rounds)
        finally:
            self._copies.put(copy)
        record: Record = {"package": draw.package, "number": draw.number}
        record |= as_record(fault, outcome)
        record["diff"] = diff(source, fault)
        self.records[draw.package, draw.number] = record
        self._append(record)
        print(_line(fault, outcome), flush=True)

    def _with_result(self, result: str) -> list["Draw"]:
        return [draw for draw in self._faults.values() if self._result(draw) == result]

    def _result(self, draw: "Draw") -> str:
        return str(self.records[draw.package, draw.number]["result"])

    def _round(self, draw: "Draw") -> str:
        return str(self.records[draw.package, draw.number]["round"])

    def _test(self, draw: "Draw") -> str:
        return str(self.records[draw.package, draw.number]["test"])

    def summary(self) -> str:
        """Return the survivors as diffs, and the numbers of each package and kind as tables."""
        records = [self.records[key] for key in sorted(self.records)]
        tried = [record for record in records if record["result"] != "broken"]
        parts = list[str]()
        for record in tried:
            if record["result"] != "caught":
                parts.append(f"{record['result']}: {record['kind']}\n{record['diff']}")
        for test in sorted(self._wrong_tests):
            parts.append(f"fails without a fault: {test}")
        parts += [_table(tried, "package"), _table(tried, "kind")]
        broken = len(records) - len(tried)
        parts.append(f"not counted, since the module could not be imported: {broken}")
        return "\n\n".join(parts)


def _in_turn(draws: dict[str, "enumerate[Fault]"], missing: dict[str, int]) -> Iterator["Draw"]:
    """Yield the faults that are still missing, from one package after the other in turn."""
    for turn in range(max(missing.values())):
        for package, number in missing.items():
            if turn < number:
                for position, fault in islice(draws[package], 1):
                    yield Draw(package, position, fault)


def _line(fault: Fault, outcome: Outcome) -> str:
    """Say in one line what became of a fault."""
    place = f"{fault.path}:{fault.line}: {fault.kind}"
    if outcome.result != "caught":
        return f"{outcome.result}: {place}, {outcome.seconds:.0f} s"
    return f"caught: {place}, by {outcome.test} in {outcome.seconds:.0f} s: {outcome.message}"


def _table(records: list[Record], column: str) -> str:
    """Return the number of faults with each result, by package or kind, as a Markdown table."""
    counts = Counter((record[column], record["result"]) for record in records)
    lines = [f"| {column} | faults | {' | '.join(RESULTS)} |", "|---|---:|---:|---:|---:|"]
    for name in [*sorted({record[column] for record in records}), "all"]:
        cells = list[int]()
        for result in RESULTS:
            if name == "all":
                cells.append(sum(record["result"] == result for record in records))
            else:
                cells.append(counts[name, result])
        lines.append(f"| {name} | {sum(cells)} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
