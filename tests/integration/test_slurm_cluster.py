"""The whole graph as jobs of a real SLURM, with the profile as it is shipped."""

import re

import pytest

from slurmprojects import SITE, SNAKEMAKE

pytestmark = pytest.mark.cluster

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
    docstring, end, code = stage.partition('\n"""\n')
    project.write("stages/filter.py", f"{docstring}{end}{FAILS_ONCE}\n{code}")
    output = project.run(*SNAKEMAKE, *SITE, timeout=600)
    assert "recorded in DVC: 22 of 22 stages" in output
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
