"""`bleuprint reproduce`, which `make reproduce` runs: a line for each stage, then what changed."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import Timeout

from bleuprint.pipeline import side_by_side
from bleuprint.pipeline.plan import planned_stages
from bleuprint.report.cost_columns import duration
from bleuprint.runtime import environment
from bleuprint.runtime.code import git
from bleuprint.runtime.errors import say
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.machine_errors import memory


def run_stages() -> None:
    """Run what `dvc repro` would run, independent stages beside each other.

    Exits if a stage fails. Errors and progress of the stages pass through.
    """
    kills = oom_kills()
    with alone():
        took = {each.stage.name: each.took for each in planned_stages()}
        status = side_by_side.run(lambda *begun: print(line(took, *begun), flush=True))
    if status and oom_kills() > kills:
        say(f"the kernel has ended a process for lack of memory: {memory()}", "note")
    if status:
        sys.exit(status)


@contextmanager
def alone() -> Iterator[None]:
    """Wait for another `bleuprint reproduce` of this project, which would run the same stages."""
    environment.work().mkdir(parents=True, exist_ok=True)
    lock = FileLock(environment.work() / "reproduce.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say("another bleuprint reproduce runs here: waiting for it", "note")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def oom_kills(statistics: Path = Path("/proc/vmstat")) -> int:
    """How many processes the kernel has ended for lack of memory since this machine started.

    0 where it does not tell, as in some containers.
    """
    text = statistics.read_text() if statistics.exists() else ""
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def line(planned: Mapping[str, float | None], name: str, restored: bool) -> str:
    """The line for a stage that begins: its number, its name, how long it took before.

    `planned`: the stages that will run, in order, with these seconds; `restored`: see `run`.
    """
    names = [*planned]
    number = f"[{names.index(name) + 1}/{len(names)}] " if name in names else ""
    took = planned.get(name)
    before = f" (took {duration(took)} before)" if took else ""
    return f"{number}{name}{': outputs from the run cache' if restored else before}"


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
