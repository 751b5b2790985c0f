"""GPUs that cannot be used, or not as they should be: one line each, as CUDA and PyTorch say it."""

import socket
import warnings
from types import SimpleNamespace

import pytest
import torch

from bleuprint.runtime.distributed import gpus
from bleuprint.runtime.distributed.gpus import Member, check_gpus, find_slowdowns
from bleuprint.runtime.distributed.group import Group, init_process_group
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.hardware import describe_machine, paper_flops, peak_flops

HERE = socket.gethostname()
OLD = (
    "CUDA initialization: The NVIDIA driver on your system is too old (found version 12040). "
    "Please update your GPU driver by downloading and installing a new version from the URL: ..."
)
BUSY = "CUDA error: all CUDA-capable devices are busy or unavailable\nCUDA kernel errors might ..."


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)


def machine(monkeypatch, **answers):
    """What torch.cuda's functions answer: a value, or an error that they raise."""
    for name, answer in answers.items():

        def function(*_, answer=answer):
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(torch.cuda, name, function)


def test_a_driver_that_is_too_old(monkeypatch, recwarn):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(warnings.warn(OLD, stacklevel=1)))
    line = (
        rf"^{HERE}: The NVIDIA driver on your system is too old \(found version 12040\); this "
        "PyTorch is built for CUDA 13.0: update the driver, or set CUDA_VISIBLE_DEVICES to nothing"
    )
    with pytest.raises(UserError, match=line):
        init_process_group()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert init_process_group().device == torch.device("cpu")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("cuda", "pci", "hidden", "said"),
    [
        ("13.0", [("0x8086", "0x030000"), ("0x10de", "0x030200")], None, True),
        ("13.0", [("0x10de", "0x030000")], "", False),
        (None, [("0x10de", "0x030000")], None, False),
        # its audio device, and a graphics chip of another vendor
        ("13.0", [("0x10de", "0x040300"), ("0x1af4", "0x030000")], None, False),
    ],
)
def test_no_driver_for_a_gpu_that_is_there(monkeypatch, tmp_path, capfd, cuda, pci, hidden, said):
    for number, (vendor, kind) in enumerate(pci):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "vendor").write_text(f"{vendor}\n")
        (tmp_path / str(number) / "class").write_text(f"{kind}\n")
    monkeypatch.setattr(gpus, "_PCI", tmp_path)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    machine(monkeypatch, is_available=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert init_process_group() == Group(0, 1, torch.device("cpu"))
    note = "bleuprint: note: this machine has an NVIDIA GPU, but no driver answers: CPUs train\n"
    assert capfd.readouterr().err == (note if said else "")


def test_a_gpu_that_another_process_has_for_itself(monkeypatch):
    machine(monkeypatch, is_available=True, device_count=1, get_device_properties=None)
    machine(monkeypatch, set_device=torch.AcceleratorError(BUSY))
    line = (
        rf"^process 0 of 1 on {HERE} cannot use cuda:0: CUDA error: all .* or unavailable: end the"
    )
    with pytest.raises(UserError, match=line) as refused:
        init_process_group()
    assert "\n" not in str(refused.value)


def test_a_gpu_that_this_build_has_no_kernels_for(monkeypatch):
    of = SimpleNamespace(uuid="a", name="Tesla V100", major=7, minor=0)
    machine(monkeypatch, is_available=True, device_count=1, set_device=None)
    machine(monkeypatch, get_device_properties=of)

    def fail(_):
        raise torch.AcceleratorError("CUDA error: no kernel image is available for execution")

    monkeypatch.setattr(gpus, "run_kernel", fail)
    with pytest.raises(UserError, match=r"cuda:0, Tesla V100: this PyTorch .* capability 7\.0: "):
        init_process_group()


def test_a_gpu_that_others_use_is_noted(monkeypatch, capfd):
    monkeypatch.setattr(gpus, "run_kernel", lambda _: None)
    machine(monkeypatch, is_available=True, device_count=1, set_device=None)
    machine(monkeypatch, get_device_properties=SimpleNamespace(uuid="a", name="NVIDIA H200"))
    for free, said in ((139, ""), (3, f"process 0 of 1 on {HERE}: other processes use its GPU, ")):
        machine(monkeypatch, mem_get_info=(free * 10**9, 140 * 10**9))
        group = init_process_group()
        assert (group.device, group.gpus) == (torch.device("cuda", 0), ("NVIDIA H200",))
        err = capfd.readouterr().err
        assert said in err and bool(said) == ("NVIDIA H200: 3.0 GB of 140.0 GB are free\n" in err)


def test_gpus_that_differ_are_noted_and_no_cost_is_counted():
    memory = (10**11, 10**11)
    members = [Member("a", f"gpu{n}", f"Tesla P100{kind}", *memory) for n, kind in enumerate("ABA")]
    assert [*find_slowdowns(members)] == [
        "different GPUs train together, at the pace of the slowest: Tesla P100A, Tesla P100B"
    ]
    assert [*find_slowdowns(members[::2])] == []
    names = "Tesla P100-PCIE-16GB", "Tesla P100-SXM2-16GB"
    device = describe_machine(Group(0, 3, torch.device("cuda", 0), gpus=names))["device"]
    assert device == " + ".join(names)
    assert paper_flops(device) is peak_flops(device, "float32") is None
    assert paper_flops(names[0])


@pytest.mark.parametrize(
    ("uuids", "line"),
    [
        (["a", "b", "a"], r"processes 0 and 2 of 3 are given the same GPU of host2"),
        (["a", "", "c"], r"process 1 of 3, on host1, finds no GPU; others do"),
        (["", "b", "c"], r"process 0 of 3, on host0, finds no GPU; others do"),
        (["a", "b", "c"], None),
        (["", "", ""], None),
    ],
)
def test_each_process_has_a_gpu_of_its_own_or_none_has(uuids, line):
    members = [Member(f"host{rank}", uuid) for rank, uuid in enumerate(uuids)]
    if line is None:
        check_gpus(members)
        return
    with pytest.raises(UserError, match=line):
        check_gpus(members)
