"""SLURM for the Snakefile: memory and time of a job, and checks before the first is submitted.

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
    """Return the memory and time of each job of a rule, by Snakemake's resource names.

    Values that differ between the jobs are functions, which Snakemake calls for a job.

    Args:
        rule: The rule, such as `train`, whose jobs are the stages for all systems and corpora.
    """

    def memory_mb(wildcards: Mapping[str, str], attempt: int) -> int:
        """Return the memory to reserve for a job, in megabytes.

        A job without a GPU that fails is submitted again with twice the memory, since it may have
        needed more. A job on a GPU has usually run out of time instead.

        Args:
            wildcards: The values of the job, such as its system and corpus.
            attempt: How often the job has been submitted, counted from 1.
        """
        stage = rule.stage(wildcards)
        factor = 1 if stage.gpu else min(attempt, 2)
        return 1000 * stage.memory_gb * factor

    def minutes(wildcards: Mapping[str, str]) -> int:
        """Return the time limit of a job in minutes."""
        return 60 * rule.stage(wildcards).hours

    return {"mem_mb": memory_mb, "runtime": minutes, "nodes": 1}


def check_cluster(workflow: Any) -> None:
    """Check, before Snakemake submits jobs to a SLURM cluster, that the run can work there.

    Snakemake must be able to see when a job ends. And no job of an earlier Snakemake run, which was
    killed, may still write to this project. Without SLURM, nothing is checked.

    Args:
        workflow: Snakemake's workflow object.

    Raises:
        UserError: One of the checks has failed.
    """
    if workflow.executor_plugin.name != "slurm":
        return
    cluster_config = _slurm_output("scontrol", "show", "config")
    # Snakemake asks the command `sacct` for the state of a job. On a cluster that keeps no job
    # accounts, `sacct` knows no job, and Snakemake has to ask the command `squeue`. Such a cluster
    # prints a line such as `AccountingStorageType = (null)`.
    no_accounts = re.search(r"AccountingStorageType\s*= (\(null\)|\S*none)\n", cluster_config)
    asks_squeue = workflow.executor_settings.status_command == "squeue"
    if no_accounts and not asks_squeue and shutil.which("sacct"):
        raise UserError(
            f"this cluster keeps no accounts (AccountingStorageType is {no_accounts[1]}), so "
            "Snakemake would wait forever for a job that has ended. Add this line to "
            "profiles/slurm/config.yaml: slurm-status-command: squeue"
        )
    check_no_earlier_jobs(Path.cwd())


def check_no_earlier_jobs(folder: Path) -> None:
    """Check that SLURM has no job of an earlier Snakemake run of this project.

    If Snakemake is killed, its jobs continue on the cluster. They would write the same files as the
    jobs of a new Snakemake run, at the same time.

    Args:
        folder: The folder of the project.

    Raises:
        UserError: There is such a job.
    """
    # Prints a line `ID|COMMENT|FOLDER` for each job that is pending, running or suspended (-t),
    # without a header (-h). Snakemake's jobs have the comment `rule_` and the name of the rule.
    lines = _slurm_output("squeue", "-h", "-t", "PD,R,S", "-o", "%i|%k|%Z")
    snakemake_jobs = re.findall(r"(?m)^([^|\n]*)\|rule_[^|\n]*\|(.*)$", lines)
    job_ids = []
    for job_id, job_folder in snakemake_jobs:
        if Path(job_folder).resolve() == folder:
            job_ids.append(job_id)
    if job_ids:
        listed_ids = " ".join(job_ids)
        raise UserError(
            f"jobs of an earlier Snakemake run still run in this project: {listed_ids}. Wait until "
            f"they end (squeue lists them), or end them: scancel {listed_ids}"
        )


def _slurm_output(*command: str) -> str:
    """Run a command of SLURM and return what it prints.

    Args:
        command: The words of the command, such as "scontrol", "show", "config".

    Raises:
        UserError: The command does not exist, or fails because the cluster does not answer.
    """
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise UserError(
            f"{command[0]} is not installed here. Run snakemake on a login node"
        ) from None
    except subprocess.CalledProcessError as error:
        # The error text on one line.
        reason = " ".join(error.stderr.split())
        raise UserError(
            f"SLURM does not answer {' '.join(command)}: {reason}. Run snakemake on a login node, "
            "where this command works while the controller is running"
        ) from None
