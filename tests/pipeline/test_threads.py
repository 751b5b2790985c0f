"""Snakemake's jobs of one kind share the cores of this machine."""

from types import SimpleNamespace
from typing import Any

import pytest

from bleuprint.pipeline import graph
from bleuprint.runtime import environment

TRAININGS = ["train@tiny-own-1", "train@wide-own-1", "train@deep-own-1", "translate@tiny-own-1"]


def workflow(cores: int | None, finished: int = 0) -> Any:
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=name)) for name in TRAININGS]
    dag = SimpleNamespace(needrun_jobs=lambda: jobs, finished=lambda job: job in jobs[:finished])
    return SimpleNamespace(resource_settings=SimpleNamespace(cores=cores), dag=dag)


def stage(name: str, gpu: int = 0) -> graph.Stage:
    return graph.Stage(name, "", (), (), (), {}, 8, memory_gb=1, hours=1, gpu=gpu, sharded=False)


@pytest.mark.parametrize(
    ("cores", "finished", "threads"),
    [(1, 0, 1), (2, 0, 1), (6, 0, 2), (7, 0, 2), (16, 0, 5), (16, 1, 8), (64, 0, 8), (2, 2, 2)],
)
def test_trainings_left_to_run_divide_the_cores(cores: int, finished: int, threads: int) -> None:
    share = graph.threads(stage("train@deep-own-1"), workflow(cores, finished))
    assert share(None) == threads
    assert graph.threads(stage("translate@tiny-own-1"), workflow(cores))(None) == min(8, cores)


def test_a_cluster_gives_each_job_its_own() -> None:
    assert graph.threads(stage("train@deep-own-1"), workflow(None))(None) == 8


def test_gpus_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "has_gpu", lambda: True)
    assert graph.threads(stage("train@deep-own-1", gpu=1), workflow(6))(None) == 8
    assert graph.threads(stage("train@deep-own-1"), workflow(6))(None) == 2
