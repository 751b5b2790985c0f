"""Snakemake with profiles/slurm on the test cluster."""

import time

import micro

# The test cluster keeps no accounts, and its jobs are short.
SITE = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2")
SNAKEMAKE = ("snakemake", "--profile", "profiles/slurm")


def make_project(cluster, root):
    """A project after cloning, on the cluster's login node."""
    project = micro.make(root)
    project.environment |= {
        **cluster.environment,
        "PATH": f"{cluster.root}/bin:{project.environment['PATH']}:/usr/sbin",
        "CUDA_VISIBLE_DEVICES": "",  # of the machine on which this is tested
    }
    return project


def wait(condition, described):
    """What `condition` returns once it is true; fails after five minutes.

    Snakemake looks after a job that has run for two minutes once a minute only.
    """
    deadline = time.monotonic() + 300
    while not (found := condition()):
        assert time.monotonic() < deadline, described()
        time.sleep(0.2)
    return found
