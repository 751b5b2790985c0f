"""What SLURM costs a run: seconds that a job takes beyond its stage, and a level beyond its jobs.

    python benchmarks/slurm.py [--interval 10]

It runs the tests' micro project on a SLURM of virtual nodes on this machine (Debian's slurmctld,
slurmd, slurm-client, munge), with the profile as it is shipped. A job's seconds are SLURM's, which
has whole ones; those of its stage are measured by running the same command alone. A level is what
can begin when another has ended: its seconds go from the end of the last job that a job needs to
its submission. The micro project has stages of a second or two: what is left is overhead.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import micro
from bleuprint.pipeline import graph
from slurmcluster import HOW, Cluster, installed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--interval", type=int, default=10, help="slurm-init-seconds-before-status-checks"
    )
    given = parser.parse_args()
    if not installed():
        sys.exit(HOW)
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), given.interval)


def compare(folder: Path, interval: int) -> None:
    """Run the micro project without SLURM, stage by stage, and with it; print what it adds."""
    project = micro.make(folder / "project")
    alone, began = {}, time.monotonic()
    for stage in graph.load_stages(project.root):
        start = time.monotonic()
        project.run("bash", "-c", stage.command)
        alone[stage.name] = time.monotonic() - start
    serial = time.monotonic() - began
    project = micro.make(folder / "again")
    cluster = Cluster(folder / "slurm")
    try:
        cluster.start()
        seconds = run(project, cluster, interval)
        jobs = finished(cluster)
    finally:
        cluster.stop()
    show(project, alone, jobs, serial, seconds)


def run(project: micro.Project, cluster: Cluster, interval: int) -> float:
    """The seconds of a whole run on the cluster."""
    project.environment |= {
        **cluster.environment,
        "PATH": f"{cluster.root}/bin:{project.environment['PATH']}:/usr/sbin",
    }
    site = ("--slurm-status-command", "squeue")
    looks = ("--slurm-init-seconds-before-status-checks", str(interval))
    began = time.monotonic()
    project.run("snakemake", "--profile", "profiles/slurm", *site, *looks, timeout=1200)
    return time.monotonic() - began


def finished(cluster: Cluster) -> dict[str, tuple[datetime, datetime, datetime]]:
    """When each stage's job was submitted, began and ended."""
    found = {}
    for number, _, _, comment in cluster.jobs():
        job = dict(
            field.partition("=")[::2]
            for field in cluster.run("scontrol", "show", "job", number).split()
        )
        name = comment.removeprefix("rule_").partition("_wildcards")[0]
        times = [datetime.fromisoformat(job[f"{what}Time"]) for what in ("Submit", "Start", "End")]
        found[name] = times[0], times[1], times[2]
    return found


def show(
    project: micro.Project,
    alone: dict[str, float],
    jobs: dict[str, tuple[datetime, datetime, datetime]],
    serial: float,
    seconds: float,
) -> None:
    stages = graph.load_stages(project.root)
    needed = graph.input_paths(stages, project.root)
    maker = {path: stage.name for stage in stages for path in stage.outputs}
    added, waited = [], []
    for stage in stages:
        submitted, began, ended = jobs[stage.name]
        added.append((ended - began).total_seconds() - alone[stage.name])
        before = [jobs[maker[path]][2] for path in needed[stage.name] if path in maker]
        if before:
            waited.append((submitted - max(before)).total_seconds())
        print(f"{stage.name:28} alone {alone[stage.name]:5.1f} s, as a job {added[-1]:+5.1f} s")
    print(f"one after the other, without SLURM   {serial:6.1f} s, {len(stages)} stages")
    print(f"on SLURM                             {seconds:6.1f} s")
    for what, values in (("a job adds", added), ("a level adds", waited)):
        middle, mean, most = statistics.median(values), statistics.mean(values), max(values)
        print(f"{what:24} median {middle:5.1f} s, mean {mean:5.1f}, most {most:.1f}")
    lscpu = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    print(next(line for line in lscpu.split("\n") if line.startswith("Model name")))


if __name__ == "__main__":
    main()
