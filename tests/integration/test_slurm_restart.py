"""A training whose job, node and Snakemake end continues in the next job of a real SLURM."""

import re
import signal
from typing import NamedTuple

import pytest

import micro
from slurmprojects import SITE, SNAKEMAKE, wait

pytestmark = pytest.mark.cluster


class RunningTraining(NamedTuple):
    """A training that runs on the cluster.

    Attributes:
        job: The number of its job.
        node: The name of its node.
        update: The update of its last checkpoint.
    """

    job: str
    node: str
    update: int


def test_a_training_outlives_its_job_its_node_and_snakemake(cluster, slurm_project, tmp_path):
    """A training on SLURM is stopped three times, and continues from its last checkpoint each time.

    Its results must equal those of a copy of the project whose training nothing disturbs. One test
    checks all of this, since each step continues the training of the step before.
    """
    prepare_long_training(slurm_project)
    undisturbed = slurm_project.copy(tmp_path / "copy")
    undisturbed.repro()
    slurm_project.snakemake("data/binary/own", "data/corpus_stats/own", "data/test_stats/own")

    snakemake = slurm_project.start(*SNAKEMAKE, *SITE)
    node_to_restart = None
    try:
        # SLURM ends a job by SIGTERM, at preemption or when its time is over.
        first = wait_for_training(cluster, slurm_project, after=0)
        cluster.run("scancel", "--signal=TERM", first.job)
        saved_update = wait_until_saved(slurm_project, first.job)
        assert saved_update >= first.update

        # The next job continues. Its node fails, and SLURM restarts the job on another node.
        second = wait_for_training(cluster, slurm_project, after=saved_update)
        node_to_restart = second.node
        cluster.kill_node(second.node)
        third = wait_for_training(cluster, slurm_project, after=second.update)
        assert third.job == second.job
        assert third.node != second.node

        # Ctrl-C ends Snakemake, which cancels its jobs.
        micro.kill(snakemake, signal.SIGINT)
        snakemake.communicate(timeout=120)
        assert snakemake.returncode != 0
        wait(lambda: state_of(cluster, third.job) != "RUNNING", lambda: cluster.jobs())
    finally:
        micro.kill(snakemake)
        if node_to_restart:
            cluster.start_node(node_to_restart)

    # The next Snakemake continues the training, and finishes the project.
    output = slurm_project.run(*SNAKEMAKE, *SITE, timeout=600)
    log = slurm_project.read("work/snakemake/logs/train@tiny-own-1.log")
    assert "continuing from update" in log
    assert "recorded in DVC" in output
    stages_out_of_date = slurm_project.changed_stages()
    assert stages_out_of_date == set()
    results = slurm_project.read("reports/results.json")
    assert results == undisturbed.read("reports/results.json")


def prepare_long_training(project):
    """Leave one system in the settings of a micro project, and let it train for a minute."""
    params, _, _ = project.read("params.yaml").partition("  wide:\n")
    project.write("params.yaml", params)
    project.edit("params.yaml", "updates: 60\n", "updates: 2500\n")
    project.edit("params.yaml", "validate_interval: 60\n", "validate_interval: 500\n")


def wait_for_training(cluster, project, after):
    """Wait until a job runs that has trained beyond an update, and return its training.

    Args:
        cluster: The cluster.
        project: The project, with one training.
        after: The update that its last checkpoint must be beyond.
    """

    def training_beyond():
        updates = [0]
        for checkpoint in project.root.glob("work/trainings/tiny.own.1.*/checkpoint-*"):
            updates.append(int(checkpoint.name.removeprefix("checkpoint-")))
        last_update = max(updates)
        for job in cluster.jobs():
            if job.state == "RUNNING" and "rule_train" in job.comment and last_update > after:
                return RunningTraining(job.number, job.node, last_update)
        return None

    return wait(training_beyond, lambda: cluster.jobs())


def wait_until_saved(project, job):
    """Wait until a job that got SIGTERM has saved a checkpoint, and return its update."""
    log = project.root / f".snakemake/slurm_logs/rule_train/tiny_own_1/{job}.log"
    wait(lambda: "stopped by SIGTERM and saved at update" in log.read_text(), log.read_text)
    return int(re.search(r"saved at update (\d+)", log.read_text())[1])


def state_of(cluster, number):
    """Return SLURM's word for the state of a job; None if SLURM does not know the job."""
    for job in cluster.jobs():
        if job.number == number:
            return job.state
    return None
