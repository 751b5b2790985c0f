"""Resources of jobs, and what is refused before any is submitted, without a SLURM."""

import shutil
from types import SimpleNamespace

import pytest

from bleuprint.pipeline import slurm
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import UserError


@pytest.fixture(scope="module")
def rules(project, stages):
    return {rule.name: rule for rule in make_rules(stages.values(), root=project.root)}


def program(folder, name, lines):
    """A program that prints `lines` to both outputs."""
    (folder / name).write_text(f"#!/bin/sh\ntee /dev/stderr <<'END'\n{lines}END\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bin(tmp_path, monkeypatch):
    """A folder of programs that are found first."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def test_jobs_that_a_killed_run_has_left_are_named(bin, tmp_path):
    lines = f"7|rule_train_w_a_b_1|{tmp_path}\n8|mine|{tmp_path}\n9|rule_train_w_a_b_1|/elsewhere\n"
    program(bin, "squeue", lines)
    with pytest.raises(UserError, match=r"this project: 7\. Wait .*\(squeue .*scancel 7$"):
        slurm.check_no_earlier_jobs(tmp_path)
    slurm.check_no_earlier_jobs(tmp_path.parent)


TRAINING = {"system": "tiny", "corpus": "own", "seed": "1"}


def test_what_computes_with_a_model_asks_for_a_gpu(rules):
    asked = {name: slurm.job_resources(rule) for name, rule in rules.items()}
    gpus = {}
    for name, resources in asked.items():
        gpus[name] = resources["gpu"]({"key": "own", **TRAINING})
    assert {name for name, gpu in gpus.items() if gpu} == {"train", "translate"}
    assert asked["train"]["runtime"](TRAINING) == 24 * 60


def test_a_job_that_is_tried_again_gets_twice_the_memory_unless_it_trains(rules):
    memory = {name: slurm.job_resources(rule)["mem_mb"] for name, rule in rules.items()}
    asked = [memory["filter"]({"key": "own"}, attempt) for attempt in (1, 2, 3)]
    assert asked == [8000, 16000, 16000]
    assert [memory["train"](TRAINING, attempt) for attempt in (1, 2, 3)] == [32000] * 3


@pytest.mark.parametrize(
    ("command", "storage", "refused"),
    [
        ("sacct", "accounting_storage/none", True),
        (None, "(null)", True),
        ("squeue", "accounting_storage/none", False),
        ("sacct", "accounting_storage/slurmdbd", False),
    ],
)
def test_a_run_that_would_wait_for_ever_is_refused(bin, command, storage, refused):
    shown = f"AccountingStorageTRES = cpu\nAccountingStorageType   = {storage}\nX = none\n"
    for name, lines in (("scontrol", shown), ("squeue", ""), ("sacct", "")):
        program(bin, name, lines)
    settings = SimpleNamespace(status_command=command)
    workflow = SimpleNamespace(
        executor_plugin=SimpleNamespace(name="slurm"), executor_settings=settings
    )
    if refused:
        with pytest.raises(
            UserError, match=r"no accounts .* Add .*: slurm-status-command: squeue$"
        ):
            slurm.check_cluster(workflow)
    else:
        slurm.check_cluster(workflow)


def test_where_there_is_no_sacct_the_executor_asks_squeue(bin, monkeypatch):
    """Whatever the profile says: its default is sacct, if that is installed."""
    shown = "AccountingStorageType   = accounting_storage/none\n"
    for name, lines in (("scontrol", shown), ("squeue", "")):
        program(bin, name, lines)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sacct" else which(name))
    workflow = SimpleNamespace(
        executor_plugin=SimpleNamespace(name="slurm"),
        executor_settings=SimpleNamespace(status_command="sacct"),
    )
    slurm.check_cluster(workflow)


def test_where_there_is_no_slurm_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="squeue: not installed; is this a login node"):
        slurm.check_no_earlier_jobs(tmp_path)
