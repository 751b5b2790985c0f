"""`bleuprint reproduce`, which `make reproduce` runs: `dvc repro` with a line for each stage."""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bleuprint.pipeline import side_by_side
from bleuprint.pipeline.plan import planned_stages
from bleuprint.report.cost_columns import duration
from bleuprint.runtime.code import git
from bleuprint.runtime.errors import say
from bleuprint.runtime.machine_errors import memory

# What DVC prints: commands, blank lines, stages that do not run, and advice that `changes` gives.
_NOISE = re.compile(
    r"> |$|.* didn't change, skipping|(Updating|Generating) lock file|To (track|enable)"
    r"|\t(git add|dvc config)|Use `dvc push`"
)


def run_stages() -> None:
    """Run `dvc repro`, and before it trainings of one thread beside each other.

    Exits if a stage fails. Errors and progress of the stages pass through.
    """
    planned = planned_stages()
    took = {each.stage.name: each.took for each in planned}
    if trainings := side_by_side.trainings(each.stage for each in planned):
        _run_dvc(took, *side_by_side.makers(trainings))
        still = {each.stage.name for each in planned_stages()}
        changed = [stage for stage in trainings if stage.name in still]
        if status := side_by_side.run(changed, lambda name: print(_line(name, took), flush=True)):
            sys.exit(status)
    _run_dvc(took)


def _run_dvc(planned: Mapping[str, float | None], *targets: str) -> None:
    """Run `dvc repro`; `planned`: see `stage_lines`."""
    kills = oom_kills()
    process = subprocess.Popen(["dvc", "repro", *targets], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in stage_lines(process.stdout, planned):
            print(line, flush=True)
    finally:
        status = process.wait()
    if status and oom_kills() > kills:
        say(f"the kernel has ended a process for lack of memory: {memory()}", "note")
    if status:
        sys.exit(status)


def oom_kills(statistics: Path = Path("/proc/vmstat")) -> int:
    """How many processes the kernel has ended for lack of memory since this machine started."""
    found = re.search(r"^oom_kill (\d+)$", statistics.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def stage_lines(output: Iterable[str], planned: Mapping[str, float | None]) -> Iterator[str]:
    """What DVC prints, with one line for a stage: its number, its name, how long it took before.

    `planned`: the stages that will run, in order, with these seconds.
    """
    for line in output:
        if running := re.match(r"Running stage '(?:.*:)?(.*)':", line):
            yield _line(running[1], planned)
        elif not _NOISE.match(line):
            yield line.rstrip("\n")


def _line(name: str, planned: Mapping[str, float | None]) -> str:
    """The line for a stage that begins."""
    names = [*planned]
    number = f"[{names.index(name) + 1}/{len(names)}] " if name in names else ""
    took = planned.get(name)
    return f"{number}{name}" + (f" (took {duration(took)} before)" if took else "")


def changes(root: Path = Path()) -> str:
    """What the run has changed that git tracks, and how to commit it; "" without git."""
    paths = ["params.yaml", "dvc.lock", "reports"]
    if not git(root, "rev-parse", "--git-dir"):
        return ""
    status = git(root, "status", "--porcelain", "--untracked-files=all", "--", *paths).decode()
    if not (changed := [line[3:] for line in status.splitlines()]):
        return "the same bytes as the committed results: dvc.lock and reports/ have not changed"
    count = f"{len(changed)} files of {', '.join(paths)}"
    named = ", ".join(changed) if len(changed) <= 4 else count
    return f"changed: {named}; to keep it: git add {' '.join(paths)} && git commit"
