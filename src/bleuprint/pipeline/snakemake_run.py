"""What the Snakefile does before and after its jobs."""

import atexit
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import load
from bleuprint.pipeline.graph import Stage, inputs
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.pipeline.recording import begin, marks, record
from bleuprint.pipeline.resolve import resolve
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.progress import BESIDE


def record_or_print_error() -> None:
    """Record at the end of a Snakemake run; a failure must not hide the run's own result."""
    try:
        record()
    except UserError as error:
        say(str(error))


def outdate_unfinished(stages: Collection[Stage]) -> None:
    """Make the outputs that Snakemake restores where a stage fails older than all inputs.

    It restores them as new, so that the next run would take them for up to date.
    """
    for stage in stages:
        if Path(f"{stage.mark}.begun").exists():
            for path in filter(os.path.exists, stage.kept):
                os.utime(path, (1, 1))  # a time of 0 is none for Snakemake


def outdate_others(stages: Collection[Stage]) -> None:
    """Make outputs that DVC has made with other settings than these older than all inputs.

    Snakemake compares the settings with those of its own last run, and would keep the outputs. A
    stage without inputs runs if an output is missing: its ledger is removed, DVC's cache has it.
    """
    for stage in stages:
        if stage.recorded and stage.recorded != stage.parameters and not stage.mark.exists():
            for path in map(Path, filter(os.path.exists, stage.outputs)):
                if stage.dependencies:
                    os.utime(path, (1, 1))
                elif path.is_file():
                    path.unlink()


def record_at_exit(workflow: Any) -> None:
    """Record what a killed run has finished if Snakemake ends because nothing is left to do.

    It calls neither onsuccess nor onerror then.
    """

    @atexit.register
    def record_left() -> None:
        runs = workflow.executor_plugin is not None and not workflow.dryrun
        if runs and marks():
            record_or_print_error()


def resolve_first(stages: Collection[Stage]) -> None:
    """Write reports/resolved.json, which all jobs read, and mark the stage resolve as finished.

    Its own job comes later, or never: where only some outputs are wanted, or the run is killed,
    the file is newer than params.yaml at the next run.
    """
    (stage,) = (stage for stage in stages if stage.kind == "resolve")
    begin(stage.name, stage.digest, *inputs(stages)[stage.name])
    resolve()
    set_aside(load())
    Path(f"{stage.mark}.begun").rename(stage.mark)


def refuse_config(config: Mapping[str, Any]) -> None:
    """Raise UserError at --config, of which nothing would be read."""
    if config:
        raise UserError(
            f"--config {' '.join(config)}: has no effect; edit params.yaml, or use dvc exp run -S"
        )


def use_this_python() -> None:
    """Put this Python first on PATH, for the stages' commands, which run beside each other."""
    os.environ |= {BESIDE: "1", "PATH": environment.path_of_stages()}
