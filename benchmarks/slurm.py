"""Measures what SLURM costs: what a job takes beyond its stage, and a level beyond its jobs.

    python benchmarks/slurm.py [--interval 10]

It runs the tests' micro project on a SLURM of virtual nodes on this machine (Debian's slurmctld,
slurmd, slurm-client, munge), with the profile that the project ships. The seconds of a job are
SLURM's own, which are whole; the seconds of its stage are measured by running the same command
alone. A level is the set of jobs that can begin when another job has ended: its cost runs from the
end of the last job that a job needs to its own submission. The stages of the micro project take a
second or two, so that most of what is measured is overhead.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import micro
from bleuprint.pipeline import graph
from slurmcluster import Cluster, missing_programs


@dataclass(frozen=True)
class JobTimes:
    """When a job was submitted, began to run, and ended, by SLURM's clock."""

    submitted: datetime
    started: datetime
    ended: datetime

    @property
    def seconds(self) -> float:
        """How long the job ran."""
        return (self.ended - self.started).total_seconds()


def main() -> None:
    """Compare the micro project with and without SLURM."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--interval",
        type=int,
        default=10,
        help="slurm-init-seconds-before-status-checks",
    )
    arguments = parser.parse_args()
    missing = missing_programs()
    if missing:
        sys.exit(f"Programs of SLURM are missing: {', '.join(missing)}. Run: make debian")
    # SLURM does not see processes that were started before as part of a job.
    micro.Project.warm = False
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), arguments.interval)


def compare(folder: Path, interval: int) -> None:
    """Run the micro project without SLURM, stage by stage, and with it; print what SLURM adds.

    Args:
        folder: An empty folder.
        interval: Seconds before Snakemake first asks SLURM for a job's status.
    """
    project = micro.make(folder / "project")
    start = time.monotonic()
    # The other stages are known only when resolve has written reports/resolved.json.
    project.run("python", "stages/resolve.py")
    stage_seconds = {"resolve": time.monotonic() - start}
    for stage in graph.load_stages(project.root):
        if stage.kind == "resolve":
            continue
        stage_start = time.monotonic()
        project.run("bash", "-c", stage.command)
        stage_seconds[stage.name] = time.monotonic() - stage_start
    serial_seconds = time.monotonic() - start
    project = micro.make(folder / "again")
    cluster = Cluster(folder / "slurm")
    try:
        cluster.start()
        slurm_seconds = run_on_slurm(project, cluster, interval)
        jobs = finished_jobs(cluster, list(stage_seconds))
    finally:
        cluster.stop()
    print_stages(stage_seconds, jobs)
    print(
        f"one after the other, without SLURM   {serial_seconds:6.1f} s, {len(stage_seconds)} stages"
    )
    print(f"on SLURM                             {slurm_seconds:6.1f} s")
    print_statistics("a job adds", added_seconds(stage_seconds, jobs))
    print_statistics("a level adds", waiting_seconds(project, jobs))
    print_processor()


def run_on_slurm(project: micro.Project, cluster: Cluster, interval: int) -> float:
    """Run the whole project on the cluster; return the seconds it took.

    Args:
        project: The project.
        cluster: The SLURM cluster.
        interval: How often Snakemake asks for the state of its jobs, in seconds.
    """
    project.environment |= {
        **cluster.environment,
        "PATH": f"{cluster.root}/bin:{project.environment['PATH']}:/usr/sbin",
    }
    start = time.monotonic()
    project.run(
        "snakemake",
        "--profile",
        "profiles/slurm",
        "--slurm-status-command",
        "squeue",
        "--slurm-init-seconds-before-status-checks",
        str(interval),
        timeout=1200,
    )
    return time.monotonic() - start


def finished_jobs(cluster: Cluster, stages: Sequence[str]) -> dict[str, JobTimes]:
    """Return the times of each stage's job by the stage's name.

    Args:
        cluster: The SLURM cluster.
        stages: The names of the stages that ran as jobs, such as `train@tiny-own-1`.
    """
    stage_by_comment = {}
    for stage in stages:
        # Snakemake gives the job of this stage the comment `rule_train_wildcards_tiny_own_1`.
        kind, _, values = stage.partition("@")
        comment = f"rule_{kind}"
        if values:
            comment += f"_wildcards_{values.replace('-', '_')}"
        stage_by_comment[comment] = stage
    jobs = {}
    for job in cluster.jobs():
        fields = {}
        for field in cluster.run("scontrol", "show", "job", job.number).split():
            key, _, value = field.partition("=")
            fields[key] = value
        jobs[stage_by_comment[job.comment]] = JobTimes(
            submitted=datetime.fromisoformat(fields["SubmitTime"]),
            started=datetime.fromisoformat(fields["StartTime"]),
            ended=datetime.fromisoformat(fields["EndTime"]),
        )
    return jobs


def print_stages(stage_seconds: dict[str, float], jobs: dict[str, JobTimes]) -> None:
    """Print the seconds of each stage alone, and what its job adds.

    Args:
        stage_seconds: The seconds that each stage takes alone, by its name.
        jobs: The times of each stage's job, by the stage's name.
    """
    for stage, alone in stage_seconds.items():
        added = jobs[stage].seconds - alone
        print(f"{stage:28} alone {alone:5.1f} s, as a job {added:+5.1f} s")


def added_seconds(stage_seconds: dict[str, float], jobs: dict[str, JobTimes]) -> list[float]:
    """Return what each job takes beyond its stage.

    Args:
        stage_seconds: The seconds that each stage takes alone, by its name.
        jobs: The times of each stage's job, by the stage's name.
    """
    return [jobs[stage].seconds - alone for stage, alone in stage_seconds.items()]


def waiting_seconds(project: micro.Project, jobs: dict[str, JobTimes]) -> list[float]:
    """Return, for each job that needs other jobs, the seconds that Snakemake waited to submit it.

    The time is counted from the end of the last job whose output it reads.

    Args:
        project: The project.
        jobs: The times of each stage's job, by the stage's name.
    """
    stages = graph.load_stages(project.root)
    inputs_by_stage = graph.input_paths(stages, project.root)
    stage_by_output = {}
    for stage in stages:
        for path in stage.outputs:
            stage_by_output[path] = stage.name
    waits = []
    for stage in stages:
        ends = []
        for path in inputs_by_stage[stage.name]:
            if path in stage_by_output:
                ends.append(jobs[stage_by_output[path]].ended)
        if ends:
            waits.append((jobs[stage.name].submitted - max(ends)).total_seconds())
    return waits


def print_statistics(label: str, seconds: list[float]) -> None:
    """Print the median, the mean and the maximum of some times.

    Args:
        label: What the times are, in words.
        seconds: The times in seconds.
    """
    median = statistics.median(seconds)
    mean = statistics.mean(seconds)
    print(f"{label:24} median {median:5.1f} s, mean {mean:5.1f}, most {max(seconds):.1f}")


def print_processor() -> None:
    """Print the processor's name, as lscpu has it."""
    lscpu = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    for line in lscpu.splitlines():
        if line.startswith("Model name"):
            print(line)
            return


if __name__ == "__main__":
    main()
