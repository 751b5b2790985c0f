"""SLURM for the Snakefile: the resources of a job, and checks before the first job is submitted.

The checks refuse at once what would otherwise fail hours later, or would wait forever for a job
whose end Snakemake cannot see.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bleuprint.pipeline.rules import Rule
from bleuprint.runtime.errors import UserError


def job_resources(rule: Rule) -> dict[str, int | Callable[..., int]]:
    """Return the resources of a rule's jobs, by Snakemake's names for them.

    Snakemake submits a failed job again. If the job uses no GPU, the second attempt reserves twice
    the memory. A job on GPUs has usually run out of time instead.
    """

    def memory_mb(wildcards: Mapping[str, str], attempt: int) -> int:
        """Return the memory of a job in megabytes."""
        stage = rule.stage(wildcards)
        factor = 1 if stage.gpu else min(attempt, 2)
        return 1000 * stage.memory_gb * factor

    def minutes(wildcards: Mapping[str, str]) -> int:
        """Return the time limit of a job in minutes."""
        return 60 * rule.stage(wildcards).hours

    def gpus(wildcards: Mapping[str, str]) -> int:
        """Return the number of GPUs of a job."""
        return rule.stage(wildcards).gpu

    return {"mem_mb": memory_mb, "runtime": minutes, "gpu": gpus, "nodes": 1}


def check_cluster(workflow: Any) -> None:
    """Check that a Snakemake run on SLURM can see the end of its jobs, and is the only one here.

    Args:
        workflow: Snakemake's workflow. Nothing is checked if it does not use SLURM.

    Raises:
        UserError: The run would wait forever, or jobs of an earlier run still write here.
    """
    if workflow.executor_plugin.name != "slurm":
        return
    cluster_config = _slurm_output("scontrol", "show", "config")
    # Without accounting, `sacct` exists but reports no job. Then Snakemake has to ask `squeue`.
    storage = re.search(r"AccountingStorageType\s*= (\(null\)|\S*none)\n", cluster_config)
    asks_squeue = workflow.executor_settings.status_command == "squeue"
    if storage and not asks_squeue and shutil.which("sacct"):
        raise UserError(
            f"this cluster keeps no accounts (AccountingStorageType is {storage[1]}), and "
            "Snakemake would wait forever for a job that has ended: put `slurm-status-command: "
            "squeue` into the profile (profiles/slurm/config.yaml)"
        )
    check_no_earlier_jobs(Path.cwd())


def check_no_earlier_jobs(folder: Path) -> None:
    """Check that no job of an earlier Snakemake run, which was killed, still writes to a project.

    Args:
        folder: The folder of the project.

    Raises:
        UserError: There is such a job, waiting, running or suspended.
    """
    # For each job a line: its number, its comment, in which Snakemake names the rule, and its
    # folder.
    lines = _slurm_output("squeue", "-h", "-t", "PD,R,S", "-o", "%i|%k|%Z")
    jobs = re.findall(r"(?m)^([^|\n]*)\|rule_[^|\n]*\|(.*)$", lines)
    numbers = []
    for number, job_folder in jobs:
        if Path(job_folder).resolve() == folder:
            numbers.append(number)
    if numbers:
        names = " ".join(numbers)
        raise UserError(
            f"jobs of an earlier run still run here: {names}; wait for them (squeue), or end them: "
            f"scancel {names}"
        )


def _slurm_output(*command: str) -> str:
    """Run a command of SLURM and return what it prints.

    Raises:
        UserError: The command does not exist or fails.
    """
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise UserError(f"{command[0]}: not installed; is this a login node?") from None
    except subprocess.CalledProcessError as error:
        reason = " ".join(error.stderr.split())
        raise UserError(
            f"SLURM does not answer {' '.join(command)}: {reason}; when this command works here "
            "(on a login node, while the controller runs), run snakemake again"
        ) from None
