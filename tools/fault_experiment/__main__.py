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
from itertools import islice
from pathlib import Path
from typing import Any

from tools.fault_experiment.drawing import count_functions, drawn, shares, sources_by_package
from tools.fault_experiment.faults import Fault
from tools.fault_experiment.trial import Copy, Outcome, as_record, diff, git

Record = dict[str, Any]
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
            sys.exit(
                f"{self._state} is of commit {commit[:10]}, not {self._commit[:10]}: remove it"
            )
        for line in lines:
            record = json.loads(line)
            self.records[record["package"], record["number"]] = record

    def _append(self, record: Record) -> None:
        with self._state.open("a", encoding="utf-8") as state:
            state.write(json.dumps(record, ensure_ascii=False) + "\n")

    def run(self, count: int, jobs: int, seconds: float) -> None:
        """Try `count` faults, `jobs` at a time, with a time limit for each run of pytest.

        For a fault with which the module cannot be imported, the next one of its package is tried.
        """
        copies = queue.Queue[Copy]()
        for number in range(jobs):
            copy = Copy(self._folder / f"copy-{number}", seconds)
            copy.make(self._root, self._commit)
            copies.put(copy)
        drawing = self._folder / "copy-0"
        files = sources_by_package(drawing / "src" / self._package)
        weights = {package: count_functions(paths) for package, paths in files.items()}
        wanted = {package: part for package, part in shares(weights, count).items() if part}
        draws = {}
        for package in wanted:
            draws[package] = enumerate(drawn(drawing, files[package], f"{self._seed} {package}"))
        tried = Counter[str]()
        with ThreadPoolExecutor(jobs) as pool:
            while batch := list(_next_faults(draws, wanted, tried)):
                done = pool.map(lambda item: self._tried(copies, *item), batch)
                for package, result in done:
                    tried[package] += result != "broken"

    def _tried(
        self, copies: "queue.Queue[Copy]", package: str, number: int, fault: Fault
    ) -> tuple[str, str]:
        """Try a fault, unless that was done before; its package and the result."""
        known = self.records.get((package, number))
        if known is not None:
            return package, str(known["result"])
        copy = copies.get()
        try:
            source = (copy.folder / fault.path).read_text("utf-8")
            outcome = copy.try_fault(fault)
        finally:
            copies.put(copy)
        record: Record = {"package": package, "number": number, **as_record(fault, outcome)}
        record["diff"] = diff(source, fault)
        record["wrong_tests"] = sorted(copy.wrong_tests)
        self.records[package, number] = record
        self._append(record)
        print(_line(fault, outcome), flush=True)
        return package, outcome.result

    def summary(self) -> str:
        """Return the survivors as diffs, and the numbers of each package and kind as tables."""
        records = [self.records[key] for key in sorted(self.records)]
        tried = [record for record in records if record["result"] != "broken"]
        parts = list[str]()
        for record in tried:
            if record["result"] != "caught":
                parts.append(f"{record['result']}: {record['kind']}\n{record['diff']}")
        wrong_tests = {test for record in records for test in record["wrong_tests"]}
        for test in sorted(wrong_tests):
            parts.append(f"fails without a fault: {test}")
        parts += [_table(tried, "package"), _table(tried, "kind")]
        broken = len(records) - len(tried)
        parts.append(f"not counted, since the module could not be imported: {broken}")
        return "\n\n".join(parts)


def _next_faults(
    draws: dict[str, "enumerate[Fault]"], wanted: dict[str, int], tried: "Counter[str]"
) -> Iterator[tuple[str, int, Fault]]:
    """Yield the faults that are still missing, from one package after the other in turn."""
    missing = {package: wanted[package] - tried[package] for package in wanted}
    for turn in range(max(missing.values())):
        for package, number in missing.items():
            if turn < number:
                for position, fault in islice(draws[package], 1):
                    yield package, position, fault


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
