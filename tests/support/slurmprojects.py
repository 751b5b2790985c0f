"""Snakemake with profiles/slurm on the test cluster."""

import time

import micro

# Options for the test cluster, which keeps no accounts, and whose jobs are short.
SITE = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2")
SNAKEMAKE = ("snakemake", "--profile", "profiles/slurm")


def make_project(cluster, root):
    """Make a micro project in which nothing has run, on the cluster's login node.

    Args:
        cluster: The cluster.
        root: The folder for the project.
    """
    project = micro.make(root)
    project.environment |= {
        **cluster.environment,
        "PATH": f"{cluster.root}/bin:{project.environment['PATH']}:/usr/sbin",
        "CUDA_VISIBLE_DEVICES": "",  # GPUs of this machine, which SLURM does not know.
    }
    return project


def wait(condition, describe_state):
    """Wait until a condition is true, and return its value; fails after five minutes.

    Five minutes, since Snakemake asks for the state of a job only once a minute, after the job has
    run for two minutes.

    Args:
        condition: A function without arguments.
        describe_state: A function that returns what a failure should show.
    """
    deadline = time.monotonic() + 300
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, describe_state()
        time.sleep(0.2)
