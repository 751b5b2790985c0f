"""Ranks and devices of processes, from a valid or invalid environment."""

import os
import socket

import pytest
import torch

from bleuprint.runtime.distributed import group, launch, slurm
from bleuprint.runtime.distributed.group import Group, init_process_group
from bleuprint.runtime.distributed.launch import start_processes
from bleuprint.runtime.distributed.slurm import JobStepTask
from bleuprint.runtime.errors import UserError


def set_launcher_variables(monkeypatch, variables):
    """Set environment variables of launchers, and unset all others of them.

    A test fails if the code then starts processes: each would run all tests again.

    Args:
        monkeypatch: pytest's fixture.
        variables: The values of the variables to set, by name.
    """
    for name in ("launch_local_processes", "launch_slurm_step"):
        monkeypatch.setattr(launch, name, lambda *_: pytest.fail("starts processes"))
    prefixes = ("SLURM", "WORLD_SIZE", "BLEUPRINT_", "ENVIRONMENT", "CUDA_VISIBLE")
    for name in list(os.environ):
        if name.startswith(prefixes):
            monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


def simulate_gpu_count(monkeypatch, count):
    """Let PyTorch report this number of GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.mark.parametrize(
    "step_variables",
    [
        pytest.param({"SLURM_NTASKS": "4"}, id="srun"),
        pytest.param(
            {"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "ENVIRONMENT": "BATCH"},
            id="srun-in-batch-script",
        ),
    ],
)
def test_a_process_that_srun_started_with_others_knows_its_rank(monkeypatch, step_variables):
    """SLURM's launcher, srun, tells each process (task) its rank in environment variables."""
    rank_variables = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1"}
    set_launcher_variables(monkeypatch, {**rank_variables, **step_variables})

    task = slurm.job_step_task()

    assert task == JobStepTask(rank=3, size=4, local_rank=1)


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({}, id="outside-slurm"),
        pytest.param(
            # The script is one process, which may start four.
            {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "ENVIRONMENT": "BATCH"},
            id="batch-script",
        ),
        pytest.param(
            {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "1"},
            id="step-of-one-task-in-a-job-of-four",
        ),
        pytest.param({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, id="job-of-one-task"),
        pytest.param({"SLURM_NTASKS": "4"}, id="shell-opened-by-salloc"),
    ],
)
def test_a_process_that_runs_alone_has_no_slurm_rank(monkeypatch, variables):
    """If it took itself for one of four, it would wait for three processes that never start."""
    set_launcher_variables(monkeypatch, variables)

    assert slurm.job_step_task() is None


@pytest.mark.parametrize(
    ("nodes", "first_host"),
    [
        pytest.param("vm", "vm", id="single-host"),
        pytest.param("gpu1,gpu2", "gpu1", id="two-hosts"),
        pytest.param("node[03-05,7]", "node03", id="range"),
        pytest.param("node[7,03-05],other", "node7", id="number-before-range"),
        pytest.param("rack[1-2]node[09-10].x,other[1-2]", "rack1node09.x", id="two-ranges"),
        pytest.param("a-b.c-[1-3]", "a-b.c-1", id="dash-outside-brackets"),
        pytest.param("", "", id="empty-list"),
    ],
)
def test_the_first_host_is_read_from_slurms_list_of_nodes(nodes, first_host):
    """SLURM shortens `node03,node04` to `node[03-04]`."""
    assert slurm.first_host(nodes) == first_host


def test_processes_of_a_slurm_job_connect_at_the_first_node_of_the_job(monkeypatch):
    """SLURM writes n[1-4] for the nodes n1, n2, n3 and n4."""
    variables = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}
    set_launcher_variables(monkeypatch, variables)

    host, port = slurm.master_address()

    assert host == "n1"
    # Ports up to 1024 need root; Linux uses those from 32768 for outgoing connections.
    assert 1024 < port < 32768


def test_each_step_of_a_slurm_job_connects_at_its_own_first_node_and_port(monkeypatch):
    """A job step is one call of srun, which may use some nodes of the job only: here n3 and n4.

    With equal ports, the processes of two steps would connect to each other.
    """
    job = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_ID": "4711"}
    set_launcher_variables(monkeypatch, {**job, "SLURM_STEP_ID": "0"})
    _host, port_of_step_0 = slurm.master_address()
    step_1 = {"SLURM_STEP_ID": "1", "SLURM_STEP_NODELIST": "n[3-4]"}
    set_launcher_variables(monkeypatch, {**job, **step_1})

    host, port = slurm.master_address()

    assert host == "n3"
    # The ports of a job's steps are consecutive numbers.
    assert port == port_of_step_0 + 1


@pytest.mark.parametrize("process_count", ["0", "1.5"])
def test_the_number_of_processes_must_be_a_positive_whole_number(monkeypatch, process_count):
    """The user sets it in the environment variable BLEUPRINT_PROCESSES."""
    set_launcher_variables(monkeypatch, {"BLEUPRINT_PROCESSES": process_count})
    simulate_gpu_count(monkeypatch, 0)

    with pytest.raises(UserError) as error:
        start_processes()

    assert str(error.value).startswith(
        f"BLEUPRINT_PROCESSES is '{process_count}'. It must be a whole number from 1"
    )


def test_more_processes_than_gpus_are_an_error(monkeypatch):
    """The user asks for four processes, and each needs its own GPU, but the machine has two."""
    set_launcher_variables(monkeypatch, {"BLEUPRINT_PROCESSES": "4"})
    simulate_gpu_count(monkeypatch, 2)

    with pytest.raises(UserError, match=r"BLEUPRINT_PROCESSES is 4, .*PyTorch finds 2\. Lower"):
        start_processes()


def test_a_process_without_rank_in_a_group_of_two_is_an_error(monkeypatch):
    """A launcher sets WORLD_SIZE (the number of processes) and RANK; here RANK is missing."""
    set_launcher_variables(monkeypatch, {"WORLD_SIZE": "2"})
    simulate_gpu_count(monkeypatch, 0)
    start_processes()  # returns at once: WORLD_SIZE means that the processes are started already

    with pytest.raises(UserError, match=r"WORLD_SIZE is 2, but RANK is not set\. .*torchrun"):
        init_process_group()


def test_a_command_with_one_process_trains_in_that_process_alone(monkeypatch):
    """The launcher would only start a copy of the command, which takes seconds."""
    set_launcher_variables(monkeypatch, {"BLEUPRINT_PROCESSES": "1", "CUDA_VISIBLE_DEVICES": ""})

    start_processes()  # returns at once; a launched copy of this command would fail the test
    process_group = init_process_group()

    assert process_group == Group(rank=0, size=1, device=torch.device("cpu"))


def test_a_process_alone_communicates_without_tensors(monkeypatch):
    """The process is its own group. Reading a tensor would make it wait for its GPU."""
    alone = Group(rank=0, size=1, device=torch.device("cpu"))
    gradient = torch.ones(3)
    monkeypatch.setattr(torch, "tensor", lambda *_, **__: pytest.fail("creates a tensor"))

    assert alone.any(True) is True
    assert alone.any(False) is False
    assert alone.broadcast(7) == 7
    assert alone.differs("text") is False
    alone.start_all_reduce(gradient).wait()
    alone.barrier()
    alone.close()


@pytest.mark.parametrize(
    ("visible_devices", "gpu_count", "such_gpus"),
    [
        pytest.param("7", 0, "0 such GPUs", id="number-too-high"),
        pytest.param("0,9", 1, "1 such GPU", id="second-number-too-high"),
        pytest.param("GPU-8932f937", 0, "0 such GPUs", id="unknown-uuid"),
    ],
)
def test_naming_a_gpu_that_pytorch_does_not_find_is_an_error(
    monkeypatch, visible_devices, gpu_count, such_gpus
):
    """CUDA_VISIBLE_DEVICES names the GPUs to use, and PyTorch finds `gpu_count` of them."""
    set_launcher_variables(monkeypatch, {"CUDA_VISIBLE_DEVICES": visible_devices})
    simulate_gpu_count(monkeypatch, gpu_count)

    with pytest.raises(UserError) as error:
        init_process_group()

    assert str(error.value).startswith(
        f"CUDA_VISIBLE_DEVICES is '{visible_devices}', but PyTorch finds {such_gpus}. To train"
    )


@pytest.mark.parametrize("visible_devices", ["", "-1,0", "none", "NoDevFiles"])
def test_a_list_that_hides_all_gpus_selects_the_cpu(monkeypatch, visible_devices):
    """CUDA reads CUDA_VISIBLE_DEVICES up to the first invalid number: -1 at its start hides all."""
    set_launcher_variables(monkeypatch, {"CUDA_VISIBLE_DEVICES": visible_devices})
    simulate_gpu_count(monkeypatch, 0)

    assert init_process_group().device == torch.device("cpu")


def peer_lost_message(library_message):
    """Return the message of process 1 of 4 whose library for communication raised an error."""
    error = RuntimeError(library_message)
    return str(group._peer_lost(rank=1, size=4, event="lost another process", error=error))


def test_an_error_of_gloo_is_shortened_to_its_reason():
    """The library gloo communicates between CPUs. Its source position and advice are removed."""
    gloo_message = (
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer "
        "[127.0.0.1]:1234. This is typically an indication of a remote failure. Check ..."
    )

    message = peer_lost_message(gloo_message)

    assert message == (
        f"process 1 of 4 on {socket.gethostname()} lost another process: "
        "Connection closed by peer [127.0.0.1]:1234"
    )


def test_an_error_of_nccl_is_shortened_to_its_first_line_and_last_error():
    """The library NCCL communicates between GPUs. Its source position and advice are removed."""
    nccl_message = (
        "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote "
        "process exited or there was a network error, NCCL version 2.27.5\n"
        "ncclRemoteError: A call failed ...\n"
        "Last error:\n"
        "socketProgress: Connection closed by remote peer h<1>"
    )

    message = peer_lost_message(nccl_message)

    assert message == (
        f"process 1 of 4 on {socket.gethostname()} lost another process: "
        "NCCL error, remote process exited or there was a network error, NCCL version 2.27.5: "
        "socketProgress: Connection closed by remote peer h<1>"
    )
