"""The whole graph as jobs of a real SLURM, with the profile as it is shipped."""

import re

import pytest

from slurmprojects import SITE, SNAKEMAKE

pytestmark = pytest.mark.cluster

# The graph has 13 levels. Snakemake asks for the state of its jobs 2, 14, 36 and 68 seconds after
# it has submitted them: the plugin waits 10 seconds longer each time. On a busy machine a job takes
# 20 to 26 seconds, most of them for two starts of Snakemake, so that a level costs 36 seconds.
MAX_SECONDS = 1500
# Python code that fails where it runs first, and succeeds afterwards.
FAIL_ONCE = """\
from pathlib import Path

if not Path("work/failed").exists():
    Path("work/failed").touch()
    raise SystemExit("a disk was not there")
"""


def make_filter_stage_fail_once(project):
    """Change stages/filter.py so that its first job fails."""
    (project.root / "work").mkdir()
    docstring, quotes, code = project.read("stages/filter.py").partition('\n"""\n')
    project.write("stages/filter.py", f"{docstring}{quotes}{FAIL_ONCE}\n{code}")


def read_resources_by_rule(cluster):
    """Return the resources that SLURM's last job of each rule requested, by rule.

    The resources of a job are its fields TresPerJob (GPUs), CPUs/Task and MinMemoryNode in
    `scontrol show job`.
    """
    resources_by_rule = {}
    for job in sorted(cluster.jobs(), key=lambda job: int(job.number)):
        rule = job.comment.removeprefix("rule_").partition("_wildcards")[0]
        fields = {}
        for field in cluster.run("scontrol", "show", "job", job.number).split():
            name, _, value = field.partition("=")
            fields[name] = value
        resources_by_rule[rule] = {
            "gpu": fields.get("TresPerJob"),
            "cpus": fields["CPUs/Task"],
            "memory": fields["MinMemoryNode"],
        }
    return resources_by_rule


def test_all_stages_run_as_jobs_with_the_resources_of_the_profile(cluster, slurm_project, by_dvc):
    """Snakemake submits each stage to SLURM as a job, with the threads and memory of dvc.yaml.

    The first job of the stage filter fails, and is submitted again with twice its 8 GB of memory.
    The reference for the results is `dvc repro` on this machine. One test checks all of this, since
    all jobs together take minutes.
    """
    make_filter_stage_fail_once(slurm_project)

    output = slurm_project.run(*SNAKEMAKE, *SITE, timeout=MAX_SECONDS)

    assert len(re.findall(r"Error in rule filter\b", output)) == 1
    assert "recorded in DVC: 22 of 22 stages" in output
    stages_out_of_date = slurm_project.changed_stages()
    assert stages_out_of_date == set()
    results = slurm_project.read("reports/results.json")
    assert results == by_dvc.read("reports/results.json")
    resources = read_resources_by_rule(cluster)
    rules_with_gpu = {rule for rule in resources if resources[rule]["gpu"]}
    assert rules_with_gpu == {"train", "translate"}
    assert resources["train"] == {"gpu": "gres:gpu:1", "cpus": "8", "memory": "32000M"}
    assert resources["score"] == {"gpu": None, "cpus": "1", "memory": "4000M"}
    memory_of_second_job = "16000M"
    assert resources["filter"] == {"gpu": None, "cpus": "8", "memory": memory_of_second_job}
