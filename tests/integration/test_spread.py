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
    fresh,
    project,
    train,
    wait_for_checkpoint,
    without_mlflow,
    write_params,
)

pytestmark = pytest.mark.cluster
CELL = Path("micro", "toy", "1")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The toy project after an uninterrupted training on one process."""
    root = project(tmp_path_factory.mktemp("trained"))
    train(root)
    return root


def submit(cluster, root, before=""):
    """Submit a job of two nodes whose script starts the stage once; its number."""
    given = {**environment(), **without_mlflow(root), **cluster.environment}
    # the names of virtual nodes cannot be resolved
    given = {**given, "MASTER_ADDR": "127.0.0.1"}
    del given["BLEUPRINT_PROCESSES"]
    stage = f"{before} {sys.executable} {STAGES / 'train.py'} micro toy 1"
    options = ("--nodes=2", "--gpus-per-node=1", "--mem=1000", "--output=job.log")
    command = ["sbatch", "--parsable", *options, f"--wrap=exec {stage}"]
    return subprocess.check_output(command, cwd=root, env=given, text=True).strip()


def end(cluster, number):
    """Wait for the end of a job; its exit status."""
    deadline = time.monotonic() + 300
    while True:
        job = cluster.run("scontrol", "show", "job", number)
        if not re.search(r"JobState=(PENDING|CONFIGURING|RUNNING|COMPLETING)", job):
            found = re.search(r"ExitCode=(\d+):", job)
            assert found, job
            return int(found[1])
        assert time.monotonic() < deadline, job
        time.sleep(0.2)


# as a job's script does, and as Snakemake's executor does within the job
@pytest.mark.parametrize("before", ["", "srun -n1 --cpu-bind=q"])
def test_all_nodes_train_and_make_the_losses_of_one_process(trained, tmp_path, cluster, before):
    job = submit(cluster, fresh(trained, tmp_path), before)
    assert end(cluster, job) == 0, (tmp_path / "job.log").read_text()
    timing = json.loads(next((tmp_path / "timings" / CELL).glob("train-*")).read_text())
    assert timing["processes"] == 2
    assert losses(tmp_path) == pytest.approx(losses(trained), rel=1e-4)


@pytest.mark.parametrize("receiver", ["steps", "script"])
def test_sigterm_saves(trained, tmp_path, cluster, receiver):
    write_params(fresh(trained, tmp_path), max_updates=100_000)
    job = submit(cluster, tmp_path)
    wait_for_checkpoint(tmp_path, 0)
    if receiver == "steps":
        cluster.run("scancel", "--signal=TERM", job)
    else:
        os.kill(script_of(job), signal.SIGTERM)
    assert end(cluster, job) == 75, (tmp_path / "job.log").read_text()
    assert "stopped by SIGTERM: saved at update" in (tmp_path / "job.log").read_text()


def script_of(number):
    """The process of a job's script, which runs the stage by exec."""
    for folder in Path("/proc").iterdir():
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        step = any(name.startswith(b"SLURM_STEP_ID") for name in variables)
        ours = f"SLURM_JOB_ID={number}".encode() in variables and not step
        if ours and b"train.py" in command and b"srun" not in command:
            return int(folder.name)
    raise AssertionError(f"job {number} has no script")


def losses(root):
    curves = json.loads((root / "results" / CELL / "curves.json").read_text())
    return [point["loss"] for point in curves["training"]]
