"""Resources of jobs, and what is refused before any is submitted, without a SLURM."""

import sys
from types import SimpleNamespace

import pytest
from snakemake.resources import Resources
from snakemake.settings.types import ResourceSettings

import micro
from bleuprint.pipeline import dvc_lock, graph, slurm
from bleuprint.pipeline.resolve import resolve
from bleuprint.pipeline.rules import rules as rules_of
from bleuprint.pipeline.slurm import (
    check_overrides,
    check_status_command,
    check_time_limits,
)
from bleuprint.runtime.errors import UserError

# What `sinfo -o '%P|%l'` prints; "quick" is the default partition.
LIMITS = "quick*|4:00:00\ngpu|2-00:30:00\ntiny|30:00\nlong|infinite\n"


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    root = micro.make(tmp_path_factory.mktemp("cluster") / "project").root
    resolve(root)
    return {rule.name: rule for rule in rules_of(graph.stages(root), root=root)}


def program(folder, name, lines, status=0):
    """A program that prints `lines` to both outputs."""
    (folder / name).write_text(f"#!/bin/sh\ntee /dev/stderr <<'END'\n{lines}END\nexit {status}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bin(tmp_path, monkeypatch):
    """A folder of programs that are found first; SLURM's sinfo is in it."""
    program(tmp_path, "sinfo", LIMITS)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def test_jobs_that_a_killed_run_has_left_are_named(bin, tmp_path):
    lines = f"7|rule_train_w_a_b_1|{tmp_path}\n8|mine|{tmp_path}\n9|rule_train_w_a_b_1|/elsewhere\n"
    program(bin, "squeue", lines)
    with pytest.raises(UserError, match=r"run here: 7; wait for them \(squeue\).*scancel 7$"):
        slurm.check_no_earlier_jobs(tmp_path)
    slurm.check_no_earlier_jobs(tmp_path.parent)


@pytest.mark.usefixtures("bin")
def test_time_limits_as_slurm_prints_them():
    assert slurm._time_limits() == {"quick": 240, "": 240, "gpu": 2910, "tiny": 30}


TRAINING = {"system": "tiny", "corpus": "own", "seed": "1"}


def wildcards(rule):
    return TRAINING if "system" in rule.wildcards else {"key": "own"} if rule.wildcards else {}


def test_what_computes_with_a_model_asks_for_a_gpu(rules):
    asked = {name: slurm.resources(rule) for name, rule in rules.items()}
    gpus = {name: given["gpu"](wildcards(rules[name])) for name, given in asked.items()}
    assert {name for name, gpu in gpus.items() if gpu} == {"train", "translate"}
    assert asked["train"]["runtime"] == 24 * 60
    assert all(given["nodes"] == 1 for given in asked.values())


def test_a_job_that_is_tried_again_gets_twice_the_memory_unless_it_trains(rules):
    memory = {name: slurm.resources(rule)["mem_mb"] for name, rule in rules.items()}
    own = wildcards(rules["filter"])
    assert [memory["filter"](own, attempt) for attempt in (1, 2, 3)] == [8000, 16000, 16000]
    assert [memory["train"](TRAINING, attempt) for attempt in (1, 2, 3)] == [32000] * 3


@pytest.mark.parametrize("option", ["overwrite_threads", "overwrite_resources"])
def test_the_name_of_no_stage_is_refused(rules, option):
    given = Resources.from_mapping({"gpu": 2})
    known = ResourceSettings(**{option: {"train": given, "shard_clean": given}})
    check_overrides(known, rules.values())
    settings = ResourceSettings(**{option: {"trian": given}})
    with pytest.raises(UserError, match=r"no stage 'trian'; there are: .*train, "):
        check_overrides(settings, rules.values())


def job(minutes, partition):
    rule = SimpleNamespace(name="train")
    resources = {"runtime": minutes, "slurm_partition": partition}
    return SimpleNamespace(rule=rule, resources=resources)


@pytest.mark.parametrize(
    ("partition", "minutes", "longest"),
    [(None, 241, 240), ("gpu", 2911, 2910), ("tiny,quick", 241, 240)],
)
@pytest.mark.usefixtures("bin")
def test_a_job_that_is_too_long_for_its_partition_is_refused(partition, minutes, longest):
    check_time_limits([job(longest, partition)])
    said = f"requests {minutes} minutes, and its partition allows {longest}"
    with pytest.raises(UserError, match=said):
        check_time_limits([job(minutes, partition)])
    check_time_limits([job(99_999, "long,tiny")])


@pytest.fixture
def sacct(tmp_path, monkeypatch):
    (tmp_path / "sacct").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("sacct")
@pytest.mark.parametrize("storage", ["accounting_storage/none", "(null)"])
@pytest.mark.parametrize("command", ["sacct", None])
def test_a_run_that_would_wait_for_ever_is_refused(command, storage):
    said = r"keeps no accounts .* wait forever .* put `slurm-status-command: squeue` into the prof"
    with pytest.raises(UserError, match=said):
        check_status_command(command, storage)


@pytest.mark.usefixtures("sacct")
@pytest.mark.parametrize(
    ("command", "storage"),
    [
        ("squeue", "accounting_storage/none"),
        ("sacct", "accounting_storage/slurmdbd"),
        ("squeue", "accounting_storage/slurmdbd"),
    ],
)
def test_a_run_that_sees_its_jobs_end_is_not(command, storage):
    check_status_command(command, storage)


def test_where_there_is_no_sacct_the_executor_queries_squeue(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    check_status_command("sacct", "accounting_storage/none")


def test_the_storage_of_accounts_as_slurm_prints_it(bin):
    lines = "AccountingStorageTRES = cpu\nAccountingStorageType   = accounting_storage/none\n"
    program(bin, "scontrol", lines)
    assert slurm._accounting_storage() == "accounting_storage/none"


def test_where_there_is_no_slurm_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="scontrol: not installed; is this a login node"):
        slurm._accounting_storage()


def test_dvc_stays_away_from_what_snakemake_writes(tmp_path):
    project = micro.make(tmp_path / "project")
    lock = (
        "from bleuprint.pipeline.dvc_lock import *; lock_outputs(['data/clean/own']);"
        "print('held', flush=True)"
    )
    holder = project.start(sys.executable, "-c", f"{lock}; input()")
    try:
        assert holder.stdout.readline() == "held\n"
        for command in (["dvc", "repro", "clean@own"], [sys.executable, "-c", lock]):
            output = project.run(*command, status=None)
            assert "is busy, it is being blocked by:" in output
            assert f"(PID {holder.pid}): snakemake" in output
        assert not (project.root / "data" / "clean").exists()
    finally:
        micro.kill(holder)
        holder.wait()
    # one that was killed holds nothing any more
    assert project.run(sys.executable, "-c", f"{lock}; release()").endswith("held\n")
    project.run("dvc", "repro", "clean@own")


def test_a_file_of_locks_that_was_cut_short_is_one_line(tmp_path, capsys):
    root = micro.make(tmp_path / "project").root
    locks = root / ".dvc" / "tmp" / "rwlock"
    locks.parent.mkdir(exist_ok=True)
    locks.write_text('{"data": [')
    with pytest.raises(UserError, match=r"rwlock.*corrupted"):
        dvc_lock.lock_outputs(["data/clean/own"], root)
    locks.unlink()
    dvc_lock.lock_outputs(["data/clean/own"], root)
    locks.write_text("")  # the disk was full
    dvc_lock.release()
    assert "rwlock" in capsys.readouterr().err
