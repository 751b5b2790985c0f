"""A training whose job, node and Snakemake end continues in the next job of a real SLURM."""

import re
import signal

import pytest

import micro
from slurmprojects import SITE, SNAKEMAKE, wait

pytestmark = pytest.mark.cluster
CHECKPOINTS = "work/trainings/tiny.own.1.*/checkpoint-*"


def test_a_training_outlives_its_job_its_node_and_snakemake(cluster, slurm_project, tmp_path):
    project = slurm_project
    wide = project.read("params.yaml").partition("  wide:\n")[0]
    project.write("params.yaml", wide)
    project.edit("params.yaml", "updates: 60\n", "updates: 2500\n")
    project.edit("params.yaml", "validate_interval: 60\n", "validate_interval: 500\n")
    undisturbed = project.copy(tmp_path / "copy")
    undisturbed.repro()
    project.snakemake("data/binary/own", "data/corpus_stats/own", "data/test_stats/own")

    snakemake, node = project.start(*SNAKEMAKE, *SITE), ""
    try:
        # SIGTERM, as at preemption or when the time is over
        job, _, before = training(cluster, project, after=0)
        cluster.run("scancel", "--signal=TERM", job)  # as the profile's --signal does
        log = project.root / f".snakemake/slurm_logs/rule_train/tiny_own_1/{job}.log"
        wait(lambda: "stopped by SIGTERM: saved at update" in log.read_text(), log.read_text)
        saved = int(re.search(r"saved at update (\d+)", log.read_text())[1])
        assert saved >= before

        # the next job continues; its node fails, and SLURM restarts it on another
        job, node, before = training(cluster, project, after=saved)
        cluster.kill_node(node)
        again, other, before = training(cluster, project, after=before)
        assert again == job
        assert other != node

        # Ctrl-C takes back its jobs
        micro.kill(snakemake, signal.SIGINT)
        snakemake.communicate(timeout=120)
        assert snakemake.returncode
        wait(lambda: state(cluster, job) != "RUNNING", lambda: cluster.jobs())
    finally:
        micro.kill(snakemake)
        if node:
            cluster.start_node(node)
    output = project.run(*SNAKEMAKE, *SITE, timeout=600)
    assert "continuing from update" in project.read("work/snakemake/logs/train@tiny-own-1.log")
    assert "recorded in DVC" in output
    assert project.changed() == set()
    assert project.read("reports/results.json") == undisturbed.read("reports/results.json")


def training(cluster, project, after):
    """Wait until a job has trained beyond update `after`; its number, node and last checkpoint."""

    def now():
        updates = [int(path.name.partition("-")[2]) for path in project.root.glob(CHECKPOINTS)]
        running = [job for job in cluster.jobs() if job[1] == "RUNNING" and "rule_train" in job[3]]
        if not running or max(updates, default=0) <= after:
            return None
        return running[0][0], running[0][2], max(updates)

    return wait(now, lambda: cluster.jobs())


def state(cluster, job):
    return next((one[1] for one in cluster.jobs() if one[0] == job), None)
