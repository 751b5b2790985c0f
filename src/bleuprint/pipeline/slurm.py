"""What a stage's job asks a cluster for, and whether SLURM has it; the Snakefile's other helper.

What cannot end well is refused before anything is submitted: jobs that no node can take would wait
for ever, and so would Snakemake where it cannot see that a job has ended.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bleuprint.pipeline.graph import Stage
from bleuprint.runtime.errors import UserError, say

_PROFILE = "the profile (profiles/slurm/config.yaml)"
# Seconds: Snakemake's executor looks after its jobs at least so often.
_LONGEST_BETWEEN_LOOKS = 180


def resources(stage: Stage) -> dict[str, int | Callable[..., int]]:
    """A job's resources in Snakemake's names; one that is tried again gets twice the memory.

    Not those on GPUs: they are tried again when their time was over.
    """

    def memory(wildcards: object, attempt: int) -> int:  # noqa: ARG001, for Snakemake
        return 1000 * stage.memory_gb * (1 if stage.gpu else min(attempt, 2))

    return {"mem_mb": memory, "runtime": 60 * stage.hours, "gpu": stage.gpu, "nodes": 1}


def spread(settings: Any, stages: Iterable[Stage]) -> None:
    """Have what `set-resources` and `set-threads` say of `train` hold for each training.

    A rule's own entry (`train@small-phrasebook-1`) goes before that of its kind. Raises UserError
    at the name of no stage.
    """
    stages = list(stages)
    threads, others = dict(settings.overwrite_threads), dict(settings.overwrite_resources)
    kinds = dict.fromkeys(stage.kind for stage in stages)
    known = {
        f"{shard}{name}"
        for shard in ("", "shard_")
        for stage in stages
        for name in (stage.name, stage.kind)
    }
    for option, given in (("set-threads", threads), ("set-resources", others)):
        for name in given:
            if name not in known:
                raise UserError(
                    f"{option}: there is no stage {name!r}; there are: {', '.join(kinds)}"
                )
    for stage in stages:
        for prefix in ("", "shard_"):
            name, kind = f"{prefix}{stage.name}", f"{prefix}{stage.kind}"
            if kind in threads:
                threads.setdefault(name, threads[kind])
            if kind in others:
                own, others[name] = others.get(name, {}), others[kind].copy()
                others[name].update(own)
    settings.overwrite_threads, settings.overwrite_resources = threads, others


def check_or_exit(workflow: Any) -> None:
    """Before a run on SLURM begins: end it in one line where it could not succeed."""
    if workflow.executor_plugin.name != "slurm":
        return
    try:
        settings = workflow.executor_settings
        interval = settings.init_seconds_before_status_checks
        check_status_command(settings.status_command, interval, _configuration())
        check_no_earlier_jobs(Path.cwd())
        jobs = [_request(job) for job in workflow.dag.needrun_jobs() if not job.is_local]
        check_requests(jobs, _nodes())
        _forget_no_job()
    except UserError as error:
        say(str(error))
        sys.exit(1)


@dataclass(frozen=True)
class Request:
    """What a job asks for: memory in MB and time in minutes; `gpus` in all, the rest a node."""

    name: str
    partition: str | None
    cpus: int
    memory: int
    minutes: int
    gpus: int
    nodes: int

    def __str__(self) -> str:
        nodes = "a node" if self.nodes == 1 else f"{self.nodes} nodes"
        return f"{nodes} with {_amounts(self.cpus, self.memory, -(-self.gpus // self.nodes))}"


@dataclass(frozen=True)
class Node:
    """A node as a partition offers it: memory in MB; `minutes` a job may last, None for any."""

    name: str
    partition: str
    default: bool
    cpus: int
    memory: int
    gpus: int
    minutes: int | None

    def __str__(self) -> str:
        return _amounts(self.cpus, self.memory, self.gpus)

    def holds(self, request: Request) -> bool:
        return (
            self.cpus >= request.cpus
            and self.memory >= request.memory
            and self.gpus * request.nodes >= request.gpus
        )


def check_status_command(
    command: str | None, interval: int, configuration: Mapping[str, str]
) -> None:
    """Raise UserError where the executor would never see a job end.

    `command` is the executor's `status-command`, `interval` its
    `init-seconds-before-status-checks`; `configuration` is that of SLURM.
    """
    storage, has_sacct = configuration["AccountingStorageType"], shutil.which("sacct")
    if not storage.endswith("none") and storage != "(null)":  # as newer SLURM writes it
        return
    if command != "squeue" and has_sacct:
        raise UserError(
            f"this cluster keeps no accounts (AccountingStorageType is {storage}), so that sacct "
            "cannot tell when a job has ended and Snakemake would wait for ever: put "
            f"`slurm-status-command: squeue` into {_PROFILE}"
        )
    forgotten = int(configuration["MinJobAge"].split()[0])
    if forgotten < _LONGEST_BETWEEN_LOOKS:
        raise UserError(
            f"this cluster keeps no accounts and forgets a job {forgotten} s after its end "
            f"(MinJobAge), but Snakemake looks only every {_LONGEST_BETWEEN_LOOKS} s: it would "
            "wait for ever; its administrator can raise MinJobAge"
        )
    if forgotten < 3 * interval and has_sacct:  # which it would ask then
        raise UserError(
            f"slurm-init-seconds-before-status-checks is {interval}, more than a third of this "
            f"cluster's MinJobAge of {forgotten} s: lower it in {_PROFILE}"
        )


def check_requests(jobs: Iterable[Request], nodes: list[Node]) -> None:
    """Raise UserError at a job whose partition there is not, or none of whose nodes can take it."""
    partitions = {node.partition for node in nodes}
    default = next((node.partition for node in nodes if node.default), None)
    for job in jobs:
        name = job.partition or default
        if name is None:
            continue  # SLURM itself has something to say to that
        for one in name.split(","):
            if one not in partitions:
                raise UserError(
                    f"slurm_partition is {one!r} in {_PROFILE}; this cluster's partitions are: "
                    f"{', '.join(sorted(partitions))}"
                )
        offered = [node for node in nodes if node.partition in name.split(",")]
        # a job gets all its nodes from one of the partitions
        able = max(
            (
                [n for n in offered if n.partition == one and n.holds(job)]
                for one in name.split(",")
            ),
            key=len,
        )
        if len(able) < job.nodes:
            kinds = sorted({f"nodes of {node}" for node in offered}, key=len)
            raise UserError(
                f"{job.name} asks for {job}, and partition {name} has {len(able) or 'none'} such "
                f"(it has {', '.join(kinds)}): {_how_to_change(job)}"
            )
        longest = max(node.minutes or job.minutes for node in able)
        if longest < job.minutes:
            raise UserError(
                f"{job.name} asks for {job.minutes} minutes, and partition {name} gives {longest}: "
                f"{_how_to_change(job)}; a training goes on in the next job"
            )


def check_no_earlier_jobs(folder: Path) -> None:
    """Raise UserError where jobs of a run that was killed go on: they would replace outputs."""
    rows = [
        line.split("|")
        for line in _slurm("squeue", "-h", "-t", "PD,R,S", "-o", "%i|%k|%Z").split("\n")
    ]
    ours = [
        row[0]
        for row in rows
        if len(row) == 3 and row[1].startswith("rule_") and Path(row[2]).resolve() == folder
    ]
    if ours:
        raise UserError(
            f"jobs that an earlier run has started here go on: {' '.join(ours)}; "
            "wait for them (squeue), or end them: scancel " + " ".join(ours)
        )


def _forget_no_job() -> None:
    """Have the executor keep its jobs in sight while SLURM does not answer.

    As it is (2.8.0), a look without an answer drops all jobs, and Snakemake waits for ever.
    """
    plugin: Any = import_module("snakemake_executor_plugin_slurm")  # has no types

    query, look, answered = plugin.query_job_status, plugin.Executor.check_active_jobs, True

    async def noted(command: str, logger: Any) -> Any:
        nonlocal answered
        states, seconds = await query(command, logger)
        answered = states is not None
        return states, seconds

    async def patient(executor: Any, jobs: list[Any]) -> AsyncIterator[Any]:
        nonlocal answered
        answered = True
        async for job in look(executor, jobs):
            yield job
        if not answered:
            executor.logger.warning("SLURM does not answer; its jobs are looked after again later.")
            for job in jobs:
                yield job

    plugin.query_job_status, plugin.Executor.check_active_jobs = noted, patient


def _how_to_change(job: Request) -> str:
    return f"give `{job.name.partition('@')[0]}` less by set-resources or set-threads in {_PROFILE}"


def _amounts(cpus: int, memory: int, gpus: int) -> str:
    return f"{cpus} CPUs, {memory} MB, {gpus} GPUs"


def _request(job: Any) -> Request:
    given = job.resources
    cpus = given.get("cpus_per_task") or job.threads
    each = given.get("mem_mb_per_cpu")
    return Request(
        name=job.rule.name,
        partition=str(given.get("slurm_partition") or "") or None,
        cpus=cpus,
        memory=cpus * _whole(job, "mem_mb_per_cpu") if each else _whole(job, "mem_mb"),
        minutes=_whole(job, "runtime"),
        gpus=_whole(job, "gpu") or _gpus(str(given.get("gres") or "")),
        nodes=_whole(job, "nodes", least=1),
    )


def _whole(job: Any, resource: str, least: int = 0) -> int:
    value = job.resources.get(resource)
    if not isinstance(value, int) or value < least:
        raise UserError(
            f"{job.rule.name} asks for {resource}: {value!r} in {_PROFILE}; "
            f"it must be a whole number, {least} or more"
        )
    return value


def _configuration() -> dict[str, str]:
    lines = _slurm("scontrol", "show", "config").split("\n")
    found = (re.match(r"(\w+)\s*= (.*)", line) for line in lines)
    return {match[1]: match[2].strip() for match in found if match}


def _nodes() -> list[Node]:
    """Each node, once for each partition that it is in."""
    found = []
    for line in _slurm("sinfo", "-a", "-h", "-N", "-e", "-o", "%N|%P|%c|%m|%G|%l").split("\n"):
        if line:
            name, partition, cpus, memory, gres, limit = line.split("|")
            node = Node(
                name=name,
                partition=partition.removesuffix("*"),
                default=partition.endswith("*"),
                cpus=int(cpus),
                memory=int(memory),
                gpus=_gpus(gres),
                minutes=_minutes(limit),
            )
            found.append(node)
    return found


def _gpus(gres: str) -> int:
    """The GPUs in a list such as gpu:a100:4(S:0-1),mps:400."""
    return sum(int(number) for number in re.findall(r"gpu:(?:[^:,(]+:)?(\d+)", gres))


def _minutes(limit: str) -> int | None:
    """A time limit such as 2-12:00:00, as SLURM writes it."""
    if not limit[:1].isdigit():
        return None  # infinite
    days, _, rest = limit.rpartition("-")
    hours, minutes, _ = ("0:" * (2 - rest.count(":")) + rest).split(":")
    return (24 * int(days or 0) + int(hours)) * 60 + int(minutes)


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise UserError(
            f"{command[0]}: not installed here: is this a cluster's login node?"
        ) from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"SLURM does not answer: {' '.join(error.stderr.split())}") from None
