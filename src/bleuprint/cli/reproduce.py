"""`bleuprint reproduce`: what `make reproduce` runs, `dvc repro` with a line for each stage."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bleuprint.cli.plan import seconds_before
from bleuprint.pipeline.plan import planned_stages
from bleuprint.report.cost_columns import duration
from bleuprint.runtime.errors import say
from bleuprint.runtime.machine_errors import memory

# What DVC prints: commands, blank lines, stages that do not run, and advice that `changes` gives.
_NOISE = re.compile(
    r"> |$|.* didn't change, skipping|(Updating|Generating) lock file|To (track|enable)"
    r"|\t(git add|dvc config)|Use `dvc push`"
)


def run_dvc() -> None:
    """Run `dvc repro`; exits if it fails. Errors and progress of the stages pass through."""
    planned = {each.stage.name: seconds_before(each.stage) for each in planned_stages()}
    kills = oom_kills()
    process = subprocess.Popen(["dvc", "repro"], stdout=subprocess.PIPE, text=True)
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
    names = [*planned]
    for line in output:
        running = re.match(r"Running stage '(?:.*:)?(.*)':", line)
        if running is None:
            if not _NOISE.match(line):
                yield line.rstrip("\n")
            continue
        name = running[1]
        number = f"[{names.index(name) + 1}/{len(names)}] " if name in names else ""
        took = planned.get(name)
        yield f"{number}{name}" + (f" (took {duration(took)} before)" if took else "")


def changes(root: Path = Path()) -> str:
    """What the run has changed that git tracks, and how to commit it; "" without git."""
    if shutil.which("git") is None:
        return ""
    paths = ["params.yaml", "dvc.lock", "reports"]
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--", *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:  # not in git
        return ""
    changed = [line[3:] for line in done.stdout.splitlines()]
    if not changed:
        return "nothing has changed: dvc.lock and reports/ are those of the last commit"
    named = (
        ", ".join(changed) if len(changed) <= 4 else f"{len(changed)} files of {', '.join(paths)}"
    )
    return f"changed: {named}; to keep it: git add {' '.join(paths)} && git commit"
