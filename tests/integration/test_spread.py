"""In a SLURM job of several nodes the train stage, started once, trains on all of them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainings import (
    STAGES,
    environment,
    make_project,
    train,
    untrained_copy,
    wait_for_checkpoint,
    without_mlflow,
    write_params,
)

pytestmark = pytest.mark.cluster
RUN_FOLDER = Path("micro", "toy", "1")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The toy project after an uninterrupted training on one process."""
    root = make_project(tmp_path_factory.mktemp("trained"))
    train(root)
    return root


def submit_training(cluster, root, launcher=""):
    """Submit a job of two nodes that starts the train stage once, and return its number.

    Args:
        cluster: The cluster.
        root: The folder of a toy project.
        launcher: A command that starts the stage within the job; "" if the job's script is the
            stage itself.
    """
    variables = {**environment(), **without_mlflow(root), **cluster.environment}
    # The names of virtual nodes cannot be resolved.
    variables["MASTER_ADDR"] = "127.0.0.1"
    # The stage counts the job's nodes itself.
    del variables["BLEUPRINT_PROCESSES"]
    stage = f"{launcher} {sys.executable} {STAGES / 'train.py'} micro toy 1"
    command = [
        "sbatch",
        "--parsable",
        "--nodes=2",
        "--gpus-per-node=1",
        "--mem=1000",
        "--output=job.log",
        f"--wrap=exec {stage}",
    ]
    return subprocess.check_output(command, cwd=root, env=variables, text=True).strip()


def wait_for_end(cluster, number):
    """Wait for the end of a job, and return its exit status."""
    deadline = time.monotonic() + 300
    while True:
        job = cluster.run("scontrol", "show", "job", number)
        if not re.search(r"JobState=(PENDING|CONFIGURING|RUNNING|COMPLETING)", job):
            exit_code = re.search(r"ExitCode=(\d+):", job)
            assert exit_code, job
            return int(exit_code[1])
        assert time.monotonic() < deadline, job
        time.sleep(0.2)


def training_losses(root):
    """Return the losses in the training curve of a toy project."""
    curves = json.loads((root / "results" / RUN_FOLDER / "curves.json").read_text())
    return [point["loss"] for point in curves["training"]]


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param("", id="the job's script starts the stage"),
        pytest.param("srun -n1 --cpu-bind=q", id="Snakemake's executor starts it in the job"),
    ],
)
def test_a_stage_started_once_trains_on_both_nodes_with_the_losses_of_one_process(
    trained, tmp_path, cluster, launcher
):
    """A SLURM job of two nodes starts stages/train.py on one of them.

    The stage has to start a process on the other node, too. `trained` is the same training on one
    process, the reference.
    """
    job = submit_training(cluster, untrained_copy(trained, tmp_path), launcher)

    exit_status = wait_for_end(cluster, job)

    assert exit_status == 0, (tmp_path / "job.log").read_text()
    *_, last_timing_file = sorted((tmp_path / "timings" / RUN_FOLDER).glob("train-*"))
    assert json.loads(last_timing_file.read_text())["processes"] == 2
    assert training_losses(tmp_path) == pytest.approx(training_losses(trained), rel=1e-4)


@pytest.mark.parametrize("receiver", ["steps", "script"])
def test_sigterm_to_the_steps_or_the_script_of_a_job_saves_a_checkpoint(
    trained, tmp_path, cluster, receiver
):
    """SLURM sends SIGTERM before it ends a job.

    `scancel` signals the processes on all nodes (the job's steps), `scancel --batch` only the job's
    script. Both must save the training on both nodes.
    """
    many_updates = 100_000  # more than the test waits for
    write_params(untrained_copy(trained, tmp_path), max_updates=many_updates)
    job = submit_training(cluster, tmp_path)
    wait_for_checkpoint(tmp_path, 0)

    if receiver == "steps":
        cluster.run("scancel", "--signal=TERM", job)
    else:
        os.kill(script_process(job), signal.SIGTERM)

    exit_status = wait_for_end(cluster, job)
    log = (tmp_path / "job.log").read_text()
    # EX_TEMPFAIL, for which Snakemake's profile submits the job again.
    assert exit_status == 75, log
    assert "stopped by SIGTERM and saved at update" in log


def script_process(number):
    """Return the process of a job's script, which the stage replaces by `exec`.

    The processes of the job's steps have the variable SLURM_STEP_ID, which the script lacks.
    """
    for folder in Path("/proc").iterdir():
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        is_of_job = f"SLURM_JOB_ID={number}".encode() in variables
        is_of_step = any(variable.startswith(b"SLURM_STEP_ID") for variable in variables)
        is_stage = b"train.py" in command and b"srun" not in command
        if is_of_job and is_stage and not is_of_step:
            return int(folder.name)
    raise AssertionError(f"job {number} has no script")
