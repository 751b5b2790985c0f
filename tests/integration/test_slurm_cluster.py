"""The whole graph as jobs of a real SLURM, with the profile as it is shipped."""

import re
import signal
import time

import pytest

import micro

pytestmark = pytest.mark.cluster

# The test cluster keeps no accounts, and its jobs are short.
SITE = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2")
SNAKEMAKE = ("snakemake", "--profile", "profiles/slurm")
PATIENCE = "SLURM does not answer; its jobs are checked again later."
CHECKPOINTS = "work/trainings/tiny.own.1.*/checkpoint-*"
FAILS_ONCE = """\
from pathlib import Path

if not Path("work/failed").exists():
    Path("work/failed").touch()
    raise SystemExit("a disk was not there")
"""


@pytest.fixture
def project(cluster, tmp_path):
    """A project after cloning, on the cluster's login node."""
    yield on(cluster, micro.make(tmp_path / "project"))
    for number, state, *_ in cluster.jobs():
        if state in ("PENDING", "RUNNING"):
            cluster.run("scancel", number)


def on(cluster, project):
    project.environment |= {
        **cluster.environment,
        "PATH": f"{cluster.root}/bin:{project.environment['PATH']}:/usr/sbin",
        "CUDA_VISIBLE_DEVICES": "",  # of the machine on which this is tested
    }
    return project


def test_the_whole_graph_with_a_job_that_fails_once(cluster, project, by_dvc):
    (project.root / "work").mkdir()
    stage = project.read("stages/filter.py")
    opening, _, rest = stage.partition("\n\n")
    project.write("stages/filter.py", f"{opening}\n{FAILS_ONCE}\n{rest}")
    output = project.run(*SNAKEMAKE, *SITE, timeout=600)
    assert "recorded in DVC: 20 of 20 stages" in output
    assert len(re.findall(r"Error in rule filter@own", output)) == 1
    assert project.changed() == set()
    assert project.read("reports/results.json") == by_dvc.read("reports/results.json")
    asked = {}
    for number, _, _, comment in sorted(cluster.jobs(), key=lambda job: int(job[0])):
        shown = cluster.run("scontrol", "show", "job", number)
        job = dict(field.partition("=")[::2] for field in shown.split())
        kind = comment.removeprefix("rule_").partition("@")[0]
        asked[kind] = job.get("TresPerJob"), job["CPUs/Task"], job["MinMemoryNode"]
    gpus = {kind for kind, (gpu, _, _) in asked.items() if gpu == "gres:gpu:1"}
    assert gpus == {"train", "translate"}
    assert asked["train"][1:] == ("8", "32000M")
    assert asked["score"] == (None, "1", "4000M")
    assert asked["filter"] == (None, "8", "16000M")  # of the second try


def test_a_training_outlives_its_job_its_node_and_snakemake(cluster, project, tmp_path):
    wide = project.read("params.yaml").partition("  wide:\n")[0]
    project.write("params.yaml", wide)
    project.edit("params.yaml", "updates: 60\n", "updates: 2500\n")
    project.edit("params.yaml", "validate_every: 60\n", "validate_every: 500\n")
    undisturbed = project.copy(tmp_path / "copy")
    undisturbed.repro()
    project.snakemake("data/binary/own", "data/statistics/own", "data/tests/own")

    snakemake, node = project.start(*SNAKEMAKE, *SITE), ""
    try:
        # SIGTERM, as at preemption or when the time is over
        job, _, before = training(cluster, project, after=0)
        cluster.run("scancel", "--signal=TERM", job)  # as the profile's --signal does
        log = project.root / f".snakemake/slurm_logs/rule_train@tiny-own-1/{job}.log"
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


def test_a_slurm_that_does_not_answer_for_a_while_is_waited_for(cluster, project):
    snakemake = project.start(*SNAKEMAKE, *SITE, "data/clean/own")
    try:
        # a job that was about to be launched would be held by SLURM
        logs = project.root / ".snakemake/slurm_logs"
        wait(
            lambda: any("rule download@own" in log.read_text() for log in logs.glob("*/*.log")),
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
    assert project.recorded() == {"download@own", "clean@own"}


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
def test_what_would_never_end_is_refused_at_once(cluster, project, options, said):
    before = len(cluster.jobs())
    output = project.run(*SNAKEMAKE, *options, status=1)
    (line,) = [line for line in output.split("\n") if line.startswith("bleuprint: ")]
    assert re.search(said, line)
    assert "Traceback" not in output
    assert len(cluster.jobs()) == before


def training(cluster, project, after):
    """Wait until a job has trained beyond update `after`; its number, node and last checkpoint."""

    def now():
        updates = [int(path.name.partition("-")[2]) for path in project.root.glob(CHECKPOINTS)]
        running = [job for job in cluster.jobs() if job[1] == "RUNNING" and "train@" in job[3]]
        if not running or max(updates, default=0) <= after:
            return None
        return running[0][0], running[0][2], max(updates)

    return wait(now, lambda: cluster.jobs())


def state(cluster, job):
    return next((one[1] for one in cluster.jobs() if one[0] == job), None)


def wait(condition, described):
    """What `condition` returns once it is true; fails after five minutes.

    Snakemake looks after a job that has run for two minutes once a minute only.
    """
    deadline = time.monotonic() + 300
    while not (found := condition()):
        assert time.monotonic() < deadline, described()
        time.sleep(0.2)
    return found
