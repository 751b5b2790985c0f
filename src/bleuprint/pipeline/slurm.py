"""SLURM for the Snakefile: a job's resources, and checks before the first job is submitted.

They refuse in one line what would otherwise fail hours later, or wait forever for a job whose end
Snakemake cannot see.
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
    """A job's resources by Snakemake's names; a second attempt without GPUs has twice the memory.

    A job on GPUs that is submitted again has usually run out of time, not of memory.
    """

    def memory(wildcards: Mapping[str, str], attempt: int) -> int:
        stage = rule.stage(wildcards)
        return 1000 * stage.memory_gb * (1 if stage.gpu else min(attempt, 2))

    return {
        "mem_mb": memory,
        "runtime": lambda wildcards: 60 * rule.stage(wildcards).hours,
        "gpu": lambda wildcards: rule.stage(wildcards).gpu,
        "nodes": 1,
    }


def check_cluster(workflow: Any) -> None:
    """Raise UserError if a run on SLURM would never end, or replace what an earlier one writes."""
    if workflow.executor_plugin.name != "slurm":
        return
    shown = _slurm("scontrol", "show", "config")
    storage = re.search(r"AccountingStorageType\s*= (\(null\)|\S*none)\n", shown)
    if storage and workflow.executor_settings.status_command != "squeue" and shutil.which("sacct"):
        raise UserError(
            f"this cluster keeps no accounts (AccountingStorageType is {storage[1]}), and "
            "Snakemake would wait forever for a job that has ended: put `slurm-status-command: "
            "squeue` into the profile (profiles/slurm/config.yaml)"
        )
    check_no_earlier_jobs(Path.cwd())


def check_no_earlier_jobs(folder: Path) -> None:
    """Raise UserError if jobs of a killed run still run here: they would replace outputs."""
    jobs = _slurm("squeue", "-h", "-t", "PD,R,S", "-o", "%i|%k|%Z")
    found = re.findall(r"(?m)^([^|\n]*)\|rule_[^|\n]*\|(.*)$", jobs)
    ours = " ".join(number for number, place in found if Path(place).resolve() == folder)
    if ours:
        raise UserError(
            f"jobs of an earlier run still run here: {ours}; wait for them (squeue), or end them: "
            f"scancel {ours}"
        )


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise UserError(f"{command[0]}: not installed; is this a login node?") from None
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"SLURM does not answer {' '.join(command)}: {' '.join(error.stderr.split())}; when "
            "this command works here (on a login node, while the controller runs), run snakemake "
            "again"
        ) from None
