"""GPUs that cannot be used, are slow or are unused: the one line that the user reads about each."""

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


@pytest.fixture(autouse=True)
def no_launcher_variables(monkeypatch):
    """Unset the variables by which the user or a launcher would choose GPUs and processes."""
    for name in ("CUDA_VISIBLE_DEVICES", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)


def simulate_cuda(monkeypatch, **answers):
    """Replace functions of torch.cuda by functions with a fixed answer.

    Args:
        monkeypatch: pytest's fixture.
        answers: For the name of each function, what it returns, or the exception that it raises.
    """
    for name, answer in answers.items():

        def function(*_, answer=answer):
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(torch.cuda, name, function)


def simulate_old_driver(monkeypatch):
    """Let PyTorch, built for CUDA 13.0, warn that the driver is too old and find no GPU."""
    warning = (
        "CUDA initialization: The NVIDIA driver on your system is too old (found version 12040). "
        "Please update your GPU driver by downloading and installing a new version from the URL: "
        "..."
    )

    def is_available():
        warnings.warn(warning, stacklevel=1)
        return False

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", is_available)


def test_an_old_driver_is_an_error_with_the_versions_and_a_remedy(monkeypatch, recwarn):
    """PyTorch itself would only warn, and the training would go on slowly, on the CPUs."""
    simulate_old_driver(monkeypatch)

    with pytest.raises(UserError) as error:
        init_process_group()

    assert str(error.value).startswith(
        f"{socket.gethostname()}: The NVIDIA driver on your system is too old (found version "
        "12040). This PyTorch is built for CUDA 13.0. Update the driver. To train on CPUs, set "
        "CUDA_VISIBLE_DEVICES to an empty value"
    )
    assert recwarn.list == []  # the error replaces PyTorch's warning


def test_an_old_driver_is_ignored_if_the_user_hides_all_gpus(monkeypatch, recwarn):
    """An empty CUDA_VISIBLE_DEVICES means: train on the CPUs."""
    simulate_old_driver(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    group = init_process_group()

    assert group.device == torch.device("cpu")
    assert recwarn.list == []


def simulate_pci_devices(monkeypatch, folder, devices):
    """Let Linux list PCI devices, while PyTorch finds no GPU.

    Args:
        monkeypatch: pytest's fixture.
        folder: An empty folder, which takes the place of /sys/bus/pci/devices.
        devices: For each device, the texts of its files `vendor` and `class`.
    """
    for number, (vendor, device_class) in enumerate(devices):
        device_folder = folder / str(number)
        device_folder.mkdir()
        (device_folder / "vendor").write_text(f"{vendor}\n")
        (device_folder / "class").write_text(f"{device_class}\n")
    monkeypatch.setattr(gpus, "_PCI", folder)
    simulate_cuda(monkeypatch, is_available=False)


# The vendor and the class of PCI devices.
INTEL_DISPLAY = ("0x8086", "0x030000")
NVIDIA_GPU = ("0x10de", "0x030200")
NVIDIA_SOUND = ("0x10de", "0x040300")
OTHER_VENDOR_DISPLAY = ("0x1af4", "0x030000")


@pytest.mark.parametrize(
    ("devices", "note"),
    [
        pytest.param(
            [INTEL_DISPLAY, NVIDIA_GPU],
            "bleuprint: note: training on CPUs: this machine has an NVIDIA GPU, but no driver "
            "answers\n",
            id="an NVIDIA GPU",
        ),
        pytest.param(
            [NVIDIA_SOUND, OTHER_VENDOR_DISPLAY],
            "",
            id="an NVIDIA sound device and a display of another vendor",
        ),
    ],
)
def test_an_nvidia_display_device_without_a_driver_is_noted_and_the_training_uses_cpus(
    monkeypatch, tmp_path, capfd, devices, note
):
    """Without the note, the user would wonder why the training is slow."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")  # PyTorch supports GPUs
    simulate_pci_devices(monkeypatch, tmp_path, devices)

    group = init_process_group()

    assert group == Group(rank=0, size=1, device=torch.device("cpu"))
    assert capfd.readouterr().err == note


@pytest.mark.parametrize(
    ("cuda_version", "visible_devices"),
    [
        pytest.param("13.0", "", id="user-hides-gpus"),
        pytest.param(None, None, id="pytorch-for-cpus-only"),
    ],
)
def test_a_gpu_that_is_unused_on_purpose_gets_no_note_about_its_driver(
    monkeypatch, tmp_path, capfd, cuda_version, visible_devices
):
    """The user has set CUDA_VISIBLE_DEVICES="", or has installed a PyTorch without CUDA."""
    monkeypatch.setattr(torch.version, "cuda", cuda_version)
    if visible_devices is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible_devices)
    nvidia_gpu = ("0x10de", "0x030000")  # vendor, device class
    simulate_pci_devices(monkeypatch, tmp_path, [nvidia_gpu])

    group = init_process_group()

    assert group == Group(rank=0, size=1, device=torch.device("cpu"))
    assert capfd.readouterr().err == ""


def test_a_busy_gpu_is_an_error_of_one_line(monkeypatch):
    """Another process has the GPU for itself. CUDA's message of several lines is shortened."""
    cuda_message = (
        "CUDA error: all CUDA-capable devices are busy or unavailable\nCUDA kernel errors might ..."
    )
    simulate_cuda(
        monkeypatch,
        is_available=True,
        device_count=1,
        get_device_properties=None,
        set_device=torch.AcceleratorError(cuda_message),
    )

    with pytest.raises(UserError) as error:
        init_process_group()

    message = str(error.value)
    assert message.startswith(
        f"process 0 of 1 on {socket.gethostname()} cannot use cuda:0: CUDA error: all CUDA-capable "
        "devices are busy or unavailable. End the"
    )
    assert "\n" not in message


def test_an_error_names_a_gpu_for_which_pytorch_has_no_kernels(monkeypatch):
    """A build of PyTorch supports some types of GPUs only: here not compute capability 7.0."""
    gpu = SimpleNamespace(uuid="a", name="Tesla V100", major=7, minor=0)
    simulate_cuda(
        monkeypatch,
        is_available=True,
        device_count=1,
        set_device=None,
        get_device_properties=gpu,
    )

    def raise_cuda_error(_):
        raise torch.AcceleratorError("CUDA error: no kernel image is available for execution")

    monkeypatch.setattr(gpus, "run_kernel", raise_cuda_error)

    with pytest.raises(UserError, match=r"cuda:0, Tesla V100: this PyTorch .* capability 7\.0\. "):
        init_process_group()


def simulate_h200(monkeypatch, free_bytes, total_bytes):
    """Simulate one working GPU, an NVIDIA H200, with some free memory."""
    monkeypatch.setattr(gpus, "run_kernel", lambda _: None)
    simulate_cuda(
        monkeypatch,
        is_available=True,
        device_count=1,
        set_device=None,
        get_device_properties=SimpleNamespace(uuid="a", name="NVIDIA H200"),
        mem_get_info=(free_bytes, total_bytes),
    )


def test_a_gpu_that_other_processes_use_is_noted(monkeypatch, capfd):
    """Other processes have filled all but 3 of its 140 GB, so they probably slow this one down."""
    simulate_h200(monkeypatch, free_bytes=3 * 10**9, total_bytes=140 * 10**9)

    group = init_process_group()

    assert group.device == torch.device("cuda", 0)
    assert group.gpus == ("NVIDIA H200",)
    note = capfd.readouterr().err
    assert f"process 0 of 1 on {socket.gethostname()}: other processes use its GPU, " in note
    assert "NVIDIA H200: 3.0 GB of 140.0 GB are free\n" in note


def test_a_gpu_with_nearly_all_memory_free_gets_no_note(monkeypatch, capfd):
    """1 of 140 GB is in use, as by the process itself."""
    simulate_h200(monkeypatch, free_bytes=139 * 10**9, total_bytes=140 * 10**9)

    group = init_process_group()

    assert group.device == torch.device("cuda", 0)
    assert group.gpus == ("NVIDIA H200",)
    assert capfd.readouterr().err == ""


def members_with_gpus(*gpu_names):
    """Return processes of one host, each with its own GPU of the given name and free memory."""
    members = []
    for rank, gpu_name in enumerate(gpu_names):
        member = Member(
            host="a",
            gpu_uuid=f"gpu{rank}",
            gpu_name=gpu_name,
            total_bytes=10**11,
            free_bytes=10**11,
        )
        members.append(member)
    return members


def test_different_gpus_in_one_training_are_noted_with_each_name_once():
    """The faster GPU waits for the slower one at each update."""
    members = members_with_gpus("Tesla P100A", "Tesla P100B", "Tesla P100A")

    notes = list(find_slowdowns(members))

    assert notes == ["the GPUs differ, and the slowest sets the pace: Tesla P100A, Tesla P100B"]


def test_equal_gpus_in_one_training_get_no_note():
    members = members_with_gpus("Tesla P100A", "Tesla P100A")

    notes = list(find_slowdowns(members))

    assert notes == []


def test_the_device_of_a_training_on_different_gpus_has_all_their_names():
    """The machine is described beside the duration of the training."""
    gpu_names = ("Tesla P100-PCIE-16GB", "Tesla P100-SXM2-16GB")
    group = Group(rank=0, size=3, device=torch.device("cuda", 0), gpus=gpu_names)

    description = describe_machine(group)

    assert description["device"] == "Tesla P100-PCIE-16GB + Tesla P100-SXM2-16GB"


def test_different_gpus_in_one_training_have_no_flops():
    """The cost of a training is computed from the speed of one GPU type, such as the P100."""
    one_gpu = "Tesla P100-PCIE-16GB"
    different_gpus = "Tesla P100-PCIE-16GB + Tesla P100-SXM2-16GB"

    assert paper_flops(one_gpu) > 0  # the paper gives the speed of a P100
    assert paper_flops(different_gpus) is None
    assert peak_flops(different_gpus, "float32") is None


@pytest.mark.parametrize(
    ("gpu_uuids", "message"),
    [
        pytest.param(
            ["a", "b", "a"],
            "processes 0 and 2 of 3 have the same GPU of host2",
            id="shared-gpu",
        ),
        pytest.param(
            ["a", "", "c"],
            "process 1 of 3, on host1, finds no GPU, but another",
            id="second-without",
        ),
        pytest.param(
            ["", "b", "c"],
            "process 0 of 3, on host0, finds no GPU, but another",
            id="first-without",
        ),
    ],
)
def test_a_shared_or_missing_gpu_is_an_error(gpu_uuids, message):
    """Process 0 runs on host0, process 1 on host1 and so on; an empty UUID means no GPU.

    Without this check, NCCL, which sums gradients over GPUs, would hang.
    """
    members = []
    for rank, gpu_uuid in enumerate(gpu_uuids):
        members.append(Member(f"host{rank}", gpu_uuid))

    with pytest.raises(UserError, match=message):
        check_gpus(members)


@pytest.mark.parametrize(
    "gpu_uuids",
    [
        pytest.param(["a", "b", "c"], id="own-gpu-each"),
        pytest.param(["", "", ""], id="all-on-cpus"),
    ],
)
def test_processes_may_have_one_gpu_each_or_all_use_cpus(gpu_uuids):
    """`check_gpus` raises an error for any other distribution of GPUs."""
    members = []
    for rank, gpu_uuid in enumerate(gpu_uuids):
        members.append(Member(f"host{rank}", gpu_uuid))

    check_gpus(members)
