"""What is asked of a cluster, and refused before it is: no SLURM is needed here."""

import sys
from types import SimpleNamespace

import pytest
from snakemake.resources import Resources
from snakemake.settings.types import ResourceSettings

import micro
from bleuprint.pipeline import dvc_lock, graph, slurm
from bleuprint.pipeline.slurm import Node, Request, check_requests, check_status_command, spread
from bleuprint.runtime.errors import UserError

# What `sinfo -N -e -o '%N|%P|%c|%m|%G|%l'` prints of three nodes.
SINFO = """\
c1|cpu*|64|515000|(null)|4:00:00
g1|gpu|32|257000|gpu:a100:4(S:0-1)|2-00:00:00
g2|gpu|32|257000|gpu:a100:4(S:0-1),mps:400|2-00:00:00
c1|long|64|515000|(null)|infinite
"""
CPU = Node("c1", "cpu", True, 64, 515000, 0, 240)
GPUS = [Node(name, "gpu", False, 32, 257000, 4, 2880) for name in ("g1", "g2")]
NODES = [CPU, *GPUS, Node("c1", "long", False, 64, 515000, 0, None)]


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    return graph.stages(micro.make(tmp_path_factory.mktemp("cluster") / "project").root)


def request(**changes):
    usual = {"name": "train@small-own-1", "partition": "gpu", "cpus": 8, "memory": 32000}
    return Request(**{**usual, "minutes": 1440, "gpus": 1, "nodes": 1, **changes})


def test_slurms_nodes_are_read(tmp_path, monkeypatch):
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\ncat <<'END'\n{SINFO}END\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert slurm._nodes() == NODES


def test_jobs_that_a_killed_run_has_left_are_named(tmp_path, monkeypatch):
    lines = f"7|rule_train@a-b-1|{tmp_path}\n8|mine|{tmp_path}\n9|rule_train@a-b-1|/elsewhere\n"
    (tmp_path / "squeue").write_text(f"#!/bin/sh\ncat <<'END'\n{lines}END\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(UserError, match=r"go on: 7; wait for them \(squeue\).*scancel 7$"):
        slurm.check_no_earlier_jobs(tmp_path)
    slurm.check_no_earlier_jobs(tmp_path.parent)


@pytest.mark.parametrize(
    ("limit", "minutes"),
    [("infinite", None), ("n/a", None), ("30:00", 30), ("4:00:00", 240), ("2-12:30:00", 3630)],
)
def test_time_limits_as_slurm_writes_them(limit, minutes):
    assert slurm._minutes(limit) == minutes


def test_only_trainings_and_translations_ask_for_gpus(stages):
    asked = {stage.kind: slurm.resources(stage) for stage in stages}
    assert {kind for kind, given in asked.items() if given["gpu"]} == {"train", "translate", "vary"}
    assert asked["train"]["runtime"] == 24 * 60
    assert all(given["nodes"] == 1 for given in asked.values())


def test_a_job_that_is_tried_again_gets_twice_the_memory_unless_it_trains(stages):
    memory = {stage.kind: slurm.resources(stage)["mem_mb"] for stage in stages}
    assert [memory["filter"](None, attempt) for attempt in (1, 2, 3)] == [8000, 16000, 16000]
    assert [memory["train"](None, attempt) for attempt in (1, 2, 3)] == [32000] * 3


def test_what_is_said_of_a_stage_holds_for_each_of_its_jobs(stages):
    settings = ResourceSettings(
        overwrite_threads={"train": 16, "train@wide-own-1": 4, "shard_clean": 2},
        overwrite_resources={
            "train": Resources.from_mapping({"gpu": 8, "runtime": 60}),
            "train@tiny-own-1": Resources.from_mapping({"gpu": 2}),
        },
    )
    spread(settings, stages)
    threads = {"train@tiny-own-1": 16, "train@wide-own-1": 4, "shard_clean@own": 2}
    assert {name: settings.overwrite_threads.get(name) for name in threads} == threads
    assert "clean@own" not in settings.overwrite_threads
    given = settings.overwrite_resources
    assert {name: r.value for name, r in given["train@tiny-own-1"].items()} == {
        "gpu": 2,
        "runtime": 60,
    }
    assert given["train@wide-own-1"]["gpu"].value == 8
    assert set(given) == {"train", "train@tiny-own-1", "train@wide-own-1"}


@pytest.mark.parametrize("option", ["overwrite_threads", "overwrite_resources"])
def test_the_name_of_no_stage_is_refused(stages, option):
    settings = ResourceSettings(**{option: {"trian": Resources.from_mapping({"gpu": 2})}})
    with pytest.raises(UserError, match=r"there is no stage 'trian'; there are: .*train, "):
        spread(settings, stages)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"partition": "gup"}, "slurm_partition is 'gup'.*partitions are: cpu, gpu, long"),
        ({"cpus": 33}, "train@small-own-1 asks for a node with 33 CPUs.*gpu has none such"),
        ({"memory": 300_000}, "300000 MB.*nodes of 32 CPUs, 257000 MB, 4 GPUs.*give `train` less"),
        ({"gpus": 5}, "5 GPUs, and partition gpu has none such"),
        (
            {"gpus": 12, "nodes": 3},
            "asks for 3 nodes with 8 CPUs, 32000 MB, 4 GPUs.*gpu has 2 such",
        ),
        ({"partition": None}, "partition cpu has none such"),
        ({"partition": "cpu,long", "gpus": 0, "nodes": 2}, "partition cpu,long has 1 such"),
        ({"minutes": 2881}, "asks for 2881 minutes, and partition gpu gives 2880"),
        ({"partition": "cpu", "gpus": 0}, "asks for 1440 minutes, and partition cpu gives 240"),
    ],
)
def test_what_no_node_can_give_is_refused(changes, said):
    with pytest.raises(UserError, match=said):
        check_requests([request(), request(**changes)], NODES)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cpus": 32, "memory": 257_000, "gpus": 4, "minutes": 2880},
        {"gpus": 8, "nodes": 2},
        {"partition": "cpu,gpu"},
        {"partition": None, "gpus": 0, "minutes": 240},
        {"partition": "long", "gpus": 0, "minutes": 99_999},
    ],
)
def test_what_nodes_can_give_is_not(changes):
    check_requests([request(**changes)], NODES)


def test_without_a_default_partition_it_is_left_to_slurm():
    check_requests([request(partition=None, gpus=99)], GPUS)


def job(**given):
    usual = {"mem_mb": 4000, "runtime": 60, "gpu": 0, "nodes": 1}
    rule = SimpleNamespace(name="train@small-own-1")
    return SimpleNamespace(rule=rule, threads=8, resources={**usual, **given})


@pytest.mark.parametrize("given", [{"gpu": "a100:2"}, {"nodes": 0}, {"runtime": "long"}])
def test_a_resource_that_is_no_number_is_named(given):
    ((name, value),) = given.items()
    with pytest.raises(UserError, match=f"train@small-own-1 asks for {name}: {value!r}"):
        slurm._request(job(**given))


def test_a_partition_may_be_called_by_a_number():
    assert slurm._request(job(slurm_partition=1)).partition == "1"


def accounts(storage, age=300):
    return {"AccountingStorageType": f"accounting_storage/{storage}", "MinJobAge": f"{age} sec"}


@pytest.fixture
def sacct(tmp_path, monkeypatch):
    (tmp_path / "sacct").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("sacct")
@pytest.mark.parametrize(
    ("command", "interval", "configuration", "said"),
    [
        ("sacct", 40, accounts("none"), "put `slurm-status-command: squeue` into the profile"),
        (None, 40, accounts("none"), "Snakemake would wait for ever"),
        ("sacct", 40, {**accounts("none"), "AccountingStorageType": "(null)"}, "keeps no accounts"),
        ("squeue", 40, accounts("none", age=60), "forgets a job 60 s after its end"),
        ("squeue", 101, accounts("none"), "is 101, more than a third of this cluster's MinJobAge"),
    ],
)
def test_a_run_that_would_wait_for_ever_is_refused(command, interval, configuration, said):
    with pytest.raises(UserError, match=said):
        check_status_command(command, interval, configuration)


@pytest.mark.usefixtures("sacct")
@pytest.mark.parametrize(
    ("command", "configuration"),
    [
        ("squeue", accounts("none")),
        ("sacct", accounts("slurmdbd", age=2)),
        ("squeue", accounts("slurmdbd", age=2)),
    ],
)
def test_a_run_that_sees_its_jobs_end_is_not(command, configuration):
    check_status_command(command, 40, configuration)


def test_where_there_is_no_sacct_the_executor_asks_squeue(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    check_status_command("sacct", 200, accounts("none"))


def test_where_there_is_no_slurm_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="scontrol: not installed here"):
        slurm._configuration()


def test_dvc_stays_away_from_what_snakemake_writes(tmp_path):
    project = micro.make(tmp_path / "project")
    claim = (
        "from bleuprint.pipeline.dvc_lock import *; claim(['data/clean/own']);"
        "print('held', flush=True)"
    )
    holder = project.start(sys.executable, "-c", f"{claim}; input()")
    try:
        assert holder.stdout.readline() == "held\n"
        for command in (["dvc", "repro", "clean@own"], [sys.executable, "-c", claim]):
            output = project.run(*command, status=None)
            assert "is busy, it is being blocked by:" in output
            assert f"(PID {holder.pid}): snakemake" in output
        assert not (project.root / "data" / "clean").exists()
    finally:
        micro.kill(holder)
        holder.wait()
    # one that was killed holds nothing any more
    assert project.run(sys.executable, "-c", f"{claim}; release()").endswith("held\n")
    project.run("dvc", "repro", "clean@own")


def test_a_file_of_locks_that_was_cut_short_is_one_line(tmp_path, capsys):
    root = micro.make(tmp_path / "project").root
    locks = root / ".dvc" / "tmp" / "rwlock"
    locks.parent.mkdir(exist_ok=True)
    locks.write_text('{"data": [')
    with pytest.raises(UserError, match=r"rwlock.*corrupted"):
        dvc_lock.claim(["data/clean/own"], root)
    locks.unlink()
    dvc_lock.claim(["data/clean/own"], root)
    locks.write_text("")  # the disk was full
    dvc_lock.release()
    assert "rwlock" in capsys.readouterr().err
