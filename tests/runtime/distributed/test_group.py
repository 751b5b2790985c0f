"""Ranks and devices of processes, from a valid or invalid environment."""

import os
import socket

import pytest
import torch

from bleuprint.runtime.distributed import group, launch, slurm
from bleuprint.runtime.distributed.group import Group, init_process_group
from bleuprint.runtime.distributed.launch import start_processes
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize(
    ("variables", "task"),
    [
        ({}, None),
        (step_of := {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "4"}, (3, 4, 1)),
        ({**step_of, "SLURM_STEP_NUM_TASKS": "4", "ENVIRONMENT": "BATCH"}, (3, 4, 1)),
        # what a batch script sees, and a step of one task in a job of four
        ({**step_of, "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"}, None),
        ({**step_of, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None),
        ({"SLURM_NTASKS": "4"}, None),  # a shell that salloc opened
    ],
)
def test_a_task_is_one_of_several_that_srun_started(monkeypatch, variables, task):
    set_variables(monkeypatch, variables)
    assert slurm.job_step_task() == task


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("vm", "vm"),
        ("gpu1,gpu2", "gpu1"),
        ("node[03-05,7]", "node03"),
        ("node[7,03-05],other", "node7"),
        ("rack[1-2]node[09-10].x,other[1-2]", "rack1node09.x"),
        ("a-b.c-[1-3]", "a-b.c-1"),
        ("", ""),
    ],
)
def test_the_first_host_of_a_list(nodes, host):
    assert slurm.first_host(nodes) == host


def test_tasks_meet_at_the_first_host_of_their_step(monkeypatch):
    variables = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}
    set_variables(monkeypatch, variables)
    host, port = slurm.master_address()
    assert host == "n1"
    assert 1024 < port < 32768
    set_variables(monkeypatch, {**variables, "SLURM_STEP_NODELIST": "n[3-4]", "SLURM_STEP_ID": "1"})
    assert slurm.master_address() == ("n3", port + 1)


@pytest.mark.parametrize(
    ("variables", "gpus", "line"),
    [
        (
            {"BLEUPRINT_PROCESSES": "0"},
            0,
            "BLEUPRINT_PROCESSES is '0': it must be a whole number from 1",
        ),
        (
            {"BLEUPRINT_PROCESSES": "1.5"},
            0,
            "BLEUPRINT_PROCESSES is '1.5': it must be a whole number from 1",
        ),
        ({"BLEUPRINT_PROCESSES": "4"}, 2, "BLEUPRINT_PROCESSES is 4, .*PyTorch finds 2; set CUDA"),
        ({"WORLD_SIZE": "2"}, 0, "WORLD_SIZE is 2, but RANK is not set: .*torchrun"),
    ],
)
def test_what_cannot_be_started(monkeypatch, variables, gpus, line):
    set_variables(monkeypatch, variables)
    machine_with(monkeypatch, gpus)
    with pytest.raises(UserError, match=line):
        start_processes()
        init_process_group()


def test_one_process_is_not_started_again(monkeypatch):
    set_variables(monkeypatch, {"BLEUPRINT_PROCESSES": "1", "CUDA_VISIBLE_DEVICES": ""})
    start_processes()
    alone = init_process_group()
    assert alone == Group(0, 1, torch.device("cpu"))
    # a read of a tensor would wait for a GPU
    monkeypatch.setattr(torch, "tensor", lambda *_, **__: pytest.fail("makes a tensor"))
    assert alone.any(True) and not alone.any(False)
    assert alone.broadcast(7) == 7 and not alone.differs("text")
    alone.start_all_reduce(torch.ones(3)).wait()
    alone.barrier()
    alone.close()


@pytest.mark.parametrize(
    ("names", "found"), [("7", 0), ("0,9", 1), ("GPU-8932f937", 0), ("", None), ("-1,0", None)]
)
def test_gpus_that_are_not_there_or_hidden(monkeypatch, names, found):
    set_variables(monkeypatch, {"CUDA_VISIBLE_DEVICES": names})
    machine_with(monkeypatch, gpus=found or 0)
    if found is None:
        assert init_process_group().device == torch.device("cpu")
        return
    gpus = "1 such GPU" if found == 1 else f"{found} such GPUs"
    line = f"CUDA_VISIBLE_DEVICES is '{names}', but PyTorch finds {gpus}; set"
    with pytest.raises(UserError, match=line):
        init_process_group()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer "
            "[127.0.0.1]:1234. This is typically an indication of a remote failure. Check ...",
            "Connection closed by peer [127.0.0.1]:1234",
        ),
        (
            "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote "
            "process exited or there was a network error, NCCL version 2.27.5\nncclRemoteError: A "
            "call failed ...\nLast error:\nsocketProgress: Connection closed by remote peer h<1>",
            "NCCL error, remote process exited or there was a network error, NCCL version 2.27.5: "
            "socketProgress: Connection closed by remote peer h<1>",
        ),
    ],
)
def test_what_is_said_of_a_lost_peer(said, reason):
    lost = group._peer_lost(1, 4, "lost another process", RuntimeError(said))
    expected = f"process 1 of 4 on {socket.gethostname()} lost another process: {reason}"
    assert str(lost) == expected


def set_variables(monkeypatch, variables):
    """Set these variables of the launchers, unset the others; starts no process."""
    # it would be this test run, over and over
    for name in ("launch_local_processes", "launch_slurm_step"):
        monkeypatch.setattr(launch, name, lambda *_: pytest.fail("starts processes"))
    for name in list(os.environ):
        if name.startswith(("SLURM", "WORLD_SIZE", "BLEUPRINT_", "ENVIRONMENT", "CUDA_VISIBLE")):
            monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


def machine_with(monkeypatch, gpus):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
