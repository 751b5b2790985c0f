"""SLURM for the Snakefile: a job's resources, and checks before the first job is submitted.

The checks refuse in one line what would otherwise fail hours later or never end: Snakemake waits
for a job that SLURM never starts, and for one whose end it cannot see.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from bleuprint.pipeline.rules import Rule
from bleuprint.runtime.errors import UserError

_PROFILE = "the profile (profiles/slurm/config.yaml)"


def resources(rule: Rule) -> dict[str, int | Callable[..., int]]:
    """A job's resources by Snakemake's names; a second attempt without GPUs has twice the memory.

    A job on GPUs that is submitted again has usually run out of time, not of memory.
    """

    def gpu(wildcards: Mapping[str, str]) -> int:
        return rule.stage(wildcards).gpu

    def memory(wildcards: Mapping[str, str], attempt: int) -> int:
        return 1000 * rule.any.memory_gb * (1 if gpu(wildcards) else min(attempt, 2))

    return {"mem_mb": memory, "runtime": 60 * rule.any.hours, "gpu": gpu, "nodes": 1}


def check_overrides(settings: Any, rules: Iterable[Rule]) -> None:
    """Raise UserError at a name in `set-resources` or `set-threads` that is no rule's.

    Snakemake ignores such an entry.
    """
    names = [rule.name for rule in rules]
    known = {*names, *(f"shard_{name}" for name in names)}
    given = {
        "set-threads": settings.overwrite_threads,
        "set-resources": settings.overwrite_resources,
    }
    for option, entries in given.items():
        for name in entries:
            if name not in known:
                raise UserError(f"{option}: no stage {name!r}; there are: {', '.join(names)}")


def check(workflow: Any) -> None:
    """Before a run: raise UserError if it is on SLURM and cannot succeed."""
    if workflow.executor_plugin.name == "slurm":
        check_status_command(workflow.executor_settings.status_command, _accounting_storage())
        check_no_earlier_jobs(Path.cwd())
        check_time_limits(job for job in workflow.dag.needrun_jobs() if not job.is_local)
        _keep_jobs_while_slurm_is_silent()


def check_status_command(command: str | None, storage: str) -> None:
    """Raise UserError if the executor would never see a job end.

    `command`: the executor's `status-command`; `storage`: SLURM's AccountingStorageType, "(null)"
    or ending in "none" without accounting, which sacct reads.
    """
    no_accounts = storage.endswith("none") or storage == "(null)"
    if no_accounts and command != "squeue" and shutil.which("sacct"):
        raise UserError(
            f"this cluster keeps no accounts (AccountingStorageType is {storage}), and Snakemake "
            "would wait forever for a job that has ended: put `slurm-status-command: squeue` into "
            f"{_PROFILE}"
        )


def check_no_earlier_jobs(folder: Path) -> None:
    """Raise UserError if jobs of a killed run still run here: they would replace outputs."""
    lines = _slurm("squeue", "-h", "-t", "PD,R,S", "-o", "%i|%k|%Z").split("\n")
    rows = [line.split("|") for line in lines if line.count("|") == 2]
    ours = " ".join(
        number
        for number, comment, place in rows
        if comment.startswith("rule_") and Path(place).resolve() == folder
    )
    if ours:
        raise UserError(
            f"jobs of an earlier run still run here: {ours}; wait for them (squeue), or end them: "
            f"scancel {ours}"
        )


def check_time_limits(jobs: Iterable[Any]) -> None:
    """Raise UserError at a job that is longer than its partition allows.

    SLURM queues such a job, and never starts it.
    """
    limits = _time_limits()
    for job in jobs:
        minutes, partition = job.resources["runtime"], job.resources.get("slurm_partition")
        partitions = str(partition or "").split(",")
        longest = max(limits.get(partition, sys.maxsize) for partition in partitions)
        if minutes > longest:
            raise UserError(
                f"{job.rule.name} requests {minutes} minutes, and its partition allows {longest}: "
                f"change `{job.rule.name}` by set-resources in {_PROFILE}; a training continues in "
                "the next job"
            )


def _time_limits() -> dict[str, int]:
    """By partition, "" for the default one, the minutes a job may last; without unlimited ones.

    sinfo prints limits as 30:00, 4:00:00, 2-12:00:00 or infinite.
    """
    limits = {}
    for line in _slurm("sinfo", "-a", "-h", "-o", "%P|%l").split("\n"):
        partition, _, limit = line.partition("|")
        if match := re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", limit):
            days, hours, minutes = (int(digits or 0) for digits in match.groups())
            limits[partition.removesuffix("*")] = 60 * (24 * days + hours) + minutes
            if partition.endswith("*"):
                limits[""] = limits[partition[:-1]]
    return limits


def _keep_jobs_while_slurm_is_silent() -> None:
    """Make the executor keep its jobs if SLURM does not answer a query of their states.

    Version 2.8.0 forgets all jobs then, and Snakemake waits forever.
    """
    plugin: Any = import_module("snakemake_executor_plugin_slurm")  # has no types

    query, check, answered = plugin.query_job_status, plugin.Executor.check_active_jobs, True

    async def noted_query(command: str, logger: Any) -> Any:
        nonlocal answered
        states, seconds = await query(command, logger)
        answered = states is not None
        return states, seconds

    async def patient_check(executor: Any, jobs: list[Any]) -> AsyncIterator[Any]:
        nonlocal answered
        answered = True
        async for job in check(executor, jobs):
            yield job
        if not answered:
            executor.logger.warning("SLURM does not answer; its jobs are checked again later.")
            for job in jobs:
                yield job

    plugin.query_job_status, plugin.Executor.check_active_jobs = noted_query, patient_check


def _accounting_storage() -> str:
    shown = re.search(r"AccountingStorageType\s*= (\S+)", _slurm("scontrol", "show", "config"))
    return shown[1] if shown else ""


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise UserError(f"{command[0]}: not installed; is this a login node?") from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"SLURM does not answer: {' '.join(error.stderr.split())}") from None
