"""The whole graph as jobs of a real SLURM, with the profile as it is shipped."""

import re

import pytest

import micro
from slurmprojects import SITE, SNAKEMAKE, wait

pytestmark = pytest.mark.cluster

PATIENCE = "SLURM does not answer; its jobs are checked again later."
FAILS_ONCE = """\
from pathlib import Path

if not Path("work/failed").exists():
    Path("work/failed").touch()
    raise SystemExit("a disk was not there")
"""


def test_the_whole_graph_with_a_job_that_fails_once(cluster, slurm_project, by_dvc):
    project = slurm_project
    (project.root / "work").mkdir()
    stage = project.read("stages/filter.py")
    opening, _, rest = stage.partition("\n\n")
    project.write("stages/filter.py", f"{opening}\n{FAILS_ONCE}\n{rest}")
    output = project.run(*SNAKEMAKE, *SITE, timeout=600)
    assert "recorded in DVC: 20 of 20 stages" in output
    assert len(re.findall(r"Error in rule filter\b", output)) == 1
    assert project.changed() == set()
    assert project.read("reports/results.json") == by_dvc.read("reports/results.json")
    asked = {}
    for number, _, _, comment in sorted(cluster.jobs(), key=lambda job: int(job[0])):
        shown = cluster.run("scontrol", "show", "job", number)
        job = dict(field.partition("=")[::2] for field in shown.split())
        kind = comment.removeprefix("rule_").partition("_wildcards")[0]
        asked[kind] = job.get("TresPerJob"), job["CPUs/Task"], job["MinMemoryNode"]
    gpus = {kind for kind, (gpu, _, _) in asked.items() if gpu == "gres:gpu:1"}
    assert gpus == {"train", "translate"}
    assert asked["train"][1:] == ("8", "32000M")
    assert asked["score"] == (None, "1", "4000M")
    assert asked["filter"] == (None, "8", "16000M")  # of the second try


def test_a_slurm_that_does_not_answer_for_a_while_is_waited_for(cluster, slurm_project):
    project = slurm_project
    snakemake = project.start(*SNAKEMAKE, *SITE, "data/clean/own")
    try:
        # a job that was about to be launched would be held by SLURM
        logs = project.root / ".snakemake/slurm_logs"
        wait(
            lambda: any("download@own" in log.read_text() for log in logs.rglob("*.log")),
            cluster.jobs,
        )
        cluster.stop_controller()
        (log,) = (project.root / ".snakemake/log").glob("*.log")
        wait(lambda: PATIENCE in log.read_text(), log.read_text)
        cluster.start_controller()
        output, _ = snakemake.communicate(timeout=300)
    finally:
        micro.kill(snakemake)
    assert snakemake.returncode == 0, output
    assert project.recorded() == {"resolve", "download@own", "clean@own"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "this cluster keeps no accounts.*put `slurm-status-command: squeue` into the profile"),
        (
            (*SITE, "--default-resources", "slurm_partition=small"),
            r"requests \d+ minutes, and its partition allows 60",
        ),
    ],
)
def test_what_would_never_end_is_refused_at_once(cluster, slurm_project, options, said):
    before = len(cluster.jobs())
    output = slurm_project.run(*SNAKEMAKE, *options, status=1)
    (line,) = [line for line in output.split("\n") if line.startswith("bleuprint: ")]
    assert re.search(said, line)
    assert "Traceback" not in output
    assert len(cluster.jobs()) == before
