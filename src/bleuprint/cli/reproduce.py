"""`bleuprint reproduce`: what `make reproduce` runs, with a line for each stage that DVC runs."""

import io
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from bleuprint.cli.plan import cell_of, forecast_of
from bleuprint.config.experiment import load
from bleuprint.pipeline.dvc_lock import params_parsed_once
from bleuprint.pipeline.plan import planned_stages
from bleuprint.report.cost_columns import duration
from bleuprint.runtime.errors import say
from bleuprint.runtime.machine_errors import memory
from bleuprint.runtime.streams import terminal

# commands, blank lines, stages that do not run, and advice that `changes` gives
_NOISE = r"> |\n?$|.* didn't change, skipping|Updating lock file|\nTo (track|enable)"


class StageLines(logging.Filter):
    """Replaces DVC's lines of a stage by one: its number, name, and forecast if it trains.

    `seconds`: the stages that will run, in order, with their forecasts, which are scaled by what
    the trainings before took. `not_run`: those that DVC has not run yet.
    """

    def __init__(self, seconds: Mapping[str, float | None]) -> None:
        super().__init__()
        self._seconds, self._names = seconds, list(seconds)
        self.not_run = list(seconds)
        self.killed = False  # whether a stage was, by SIGKILL
        self._training: tuple[float, float] | None = None  # when it began, its forecast
        self._took = self._forecast = 0.0  # of trainings that have ended

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if running := re.fullmatch(r"Running stage '(.*)':", message):
            name = running[1].rpartition(":")[2]
            record.msg, record.args = self._line(name, record.created), ()
            return True
        error = record.exc_info[1] if record.exc_info else None
        self.killed |= bool(re.search(r"exited with (-9|137)$", str(error and error.__cause__)))
        # an error may have its text in the traceback alone
        return record.levelno > logging.INFO or not re.match(_NOISE, message)

    def _line(self, name: str, now: float) -> str:
        if self._training:
            began, forecast = self._training
            self._took, self._forecast = (
                self._took + max(0.0, now - began),
                self._forecast + forecast,
            )
            self._training = None
        if name not in self._names:
            return name
        self.not_run.remove(name)
        at = self._names.index(name)
        line, own = f"[{at + 1}/{len(self._names)}] {name}", self._seconds[name]
        if own is None:
            return line
        self._training = now, own
        scale = self._took / self._forecast if self._forecast else 1.0
        left = sum(self._seconds[each] or 0.0 for each in self._names[at:])
        return f"{line}: about {duration(own * scale)}; trainings to come: {duration(left * scale)}"


def run_dvc() -> None:
    """Run `dvc repro` in this process; exits if it fails. The plan is printed before."""
    from dvc.cli import main

    # its own process, which frees the memory of its probes
    plan = subprocess.run([sys.executable, "-m", "bleuprint", "plan"])
    if plan.returncode:
        sys.exit(plan.returncode)
    settings = load()
    trainings = {
        each.stage.name: forecast_of(settings, cell_of(each.stage))
        if each.stage.kind == "train"
        else None
        for each in planned_stages()
    }
    lines = StageLines(trainings)
    for handler in logging.getLogger("dvc").handlers:
        handler.addFilter(lines)
    # without its advice to push, which it prints; the stages write to the terminal themselves
    colored = redirect_stderr(terminal())
    with params_parsed_once(), redirect_stdout(io.StringIO()), colored:
        status = main(["repro"])
    if lines.killed:
        say(f"the stage was killed, probably by the kernel for lack of memory: {memory()}", "note")
    if status:
        sys.exit(status)
    if lines.not_run:
        print(f"planned but not needed, since inputs are as before: {', '.join(lines.not_run)}")


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
