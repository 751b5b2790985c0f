"""The GPUs of the processes that train together, and one line about each that cannot be used."""

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

from bleuprint.runtime import machine_errors
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.gpu_locks import hold_gpus
from bleuprint.runtime.visible_gpus import VISIBLE_GPUS, named_gpus
from bleuprint.runtime.wording import counted

ON_CPUS = "To train on CPUs, set CUDA_VISIBLE_DEVICES to an empty value"
# The folder in which Linux describes the devices on the PCI bus.
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA_VENDOR_ID = "0x10de"
# The first digits of the class of display controllers.
_DISPLAY_CLASS = "0x03"
# If less of its memory is free, other processes use a GPU; our own CUDA context takes 0.5 GB.
_FREE_SHARE = 0.75


class Member(NamedTuple):
    """One of the processes that train together: its machine, and its GPU if it has one.

    Each process tells the others at the start. Without a GPU, the fields after `host` are empty.

    Attributes:
        host: The name of the machine.
        gpu_uuid: The UUID of the GPU, by which two processes with the same GPU are recognized.
        gpu_name: The name of the GPU, such as NVIDIA H200.
        total_bytes: The memory of the GPU.
        free_bytes: The part of this memory that no process uses.
    """

    host: str
    gpu_uuid: str = ""
    gpu_name: str = ""
    total_bytes: int = 0
    free_bytes: int = 0


@contextmanager
def hold_gpus_for_torch(max_gpus: int | None = None) -> Iterator[list[str]]:
    """Hold GPUs for PyTorch for the time of a `with` block; see `gpu_locks.hold_gpus`.

    A PyTorch for CPUs only needs none, even if the machine has some.

    Args:
        max_gpus: The highest number of GPUs to take; None for all that are free.

    Yields:
        The names of the GPUs; an empty list if this process computes on the CPU.
    """
    if torch.version.cuda is None:
        yield []
        return
    with hold_gpus(max_gpus) as names:
        yield names


def gpu_count() -> int:
    """Return the number of GPUs that this process may use.

    The environment variable CUDA_VISIBLE_DEVICES may name them. If it is not set, the process may
    use all GPUs of the machine.

    Raises:
        UserError: PyTorch cannot use the driver, or does not find a GPU that CUDA_VISIBLE_DEVICES
            names; or the variable names a GPU twice.
    """
    visible_devices = os.environ.get(VISIBLE_GPUS)
    named_count = len(named_gpus(visible_devices or ""))
    hides_all_gpus = visible_devices is not None and named_count == 0
    if hides_all_gpus:
        return 0
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if caught_warnings and count == 0:
        # With an old or broken driver, torch warns and finds no GPU.
        raise _unusable_driver(str(caught_warnings[0].message))
    if named_count > count:
        such_gpus = counted(count, "such GPU")
        raise UserError(
            f"CUDA_VISIBLE_DEVICES is {visible_devices!r}, but PyTorch finds {such_gpus}. {ON_CPUS}"
        )
    return count


def _unusable_driver(warning: str) -> UserError:
    """Return the error that PyTorch cannot use the GPU driver of this machine.

    Args:
        warning: PyTorch's warning. Its first sentence is the reason; the rest is advice, which this
            error replaces.
    """
    reason = warning.removeprefix("CUDA initialization: ").partition(". ")[0]
    return UserError(
        f"{socket.gethostname()}: {reason}. This PyTorch is built for CUDA "
        f"{torch.version.cuda}. Update the driver. {ON_CPUS}"
    )


def lacks_driver() -> bool:
    """Return whether this machine has an NVIDIA GPU that PyTorch does not find.

    The driver is then missing. The function returns False if GPUs may be unused on purpose: because
    the user has set CUDA_VISIBLE_DEVICES, or has installed a PyTorch for CPUs only.
    """
    if os.environ.get(VISIBLE_GPUS) is not None or torch.version.cuda is None:
        return False
    has_nvidia_gpu = any(_is_nvidia_gpu(device_folder) for device_folder in _PCI.glob("*"))
    return has_nvidia_gpu and gpu_count() == 0


def _is_nvidia_gpu(device_folder: Path) -> bool:
    """Return whether a device on the PCI bus is an NVIDIA GPU.

    The vendor alone does not tell: a graphics card often has a second device for sound, with the
    same vendor and another device class.

    Args:
        device_folder: The folder in which Linux describes the device.
    """
    vendor_id = (device_folder / "vendor").read_text()
    device_class = (device_folder / "class").read_text()
    return vendor_id.startswith(_NVIDIA_VENDOR_ID) and device_class.startswith(_DISPLAY_CLASS)


def claim_device(device: torch.device, process: str) -> Member:
    """Take a GPU for this process, and test that PyTorch can compute on it.

    Args:
        device: The GPU; for a CPU, nothing is done.
        process: The name of this process for messages, such as `process 0 of 2`.

    Returns:
        The machine of this process, and its GPU.

    Raises:
        UserError: The GPU cannot be used; the message names it.
    """
    host = socket.gethostname()
    if device.type != "cuda":
        return Member(host)
    try:
        properties = torch.cuda.get_device_properties(device)
        torch.cuda.set_device(device)
        run_kernel(device)
        free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    except RuntimeError as error:
        raise _explain_unusable_gpu(error, device, f"{process} on {host}") from None
    return Member(
        host=host,
        gpu_uuid=str(properties.uuid),
        gpu_name=properties.name,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
    )


def _explain_unusable_gpu(error: RuntimeError, device: torch.device, process: str) -> UserError:
    """Return the error that a process cannot use a GPU, with the reason and what the user can do.

    Args:
        error: The error of CUDA. The cause may be a PyTorch without kernels for this type of GPU,
            another process that has the GPU for itself, or full GPU memory.
        device: The GPU.
        process: The name of the process and its machine, for the message.
    """
    reason = str(error).partition("\n")[0]
    if "no kernel image" in reason:
        properties = torch.cuda.get_device_properties(device)
        return UserError(
            f"{process} cannot use {device}, {properties.name}: this PyTorch "
            f"({torch.__version__}) lacks kernels for compute capability "
            f"{properties.major}.{properties.minor}. Install a build that has them. {ON_CPUS}"
        )
    return UserError(
        f"{process} cannot use {device}: {reason}. End the processes that use it "
        f"(nvidia-smi lists them), or name other GPUs in CUDA_VISIBLE_DEVICES. {ON_CPUS}"
    )


def run_kernel(device: torch.device) -> None:
    """Add two numbers on a device, as a test; RuntimeError if PyTorch was not built for it."""
    torch.ones(1, device=device).add_(1)


def check_gpus(members: list[Member]) -> None:
    """Check that each process has its own GPU, or that no process has a GPU.

    Otherwise the first sum over the processes would hang, or fail with an obscure error of NCCL,
    the library by which GPUs communicate.

    Args:
        members: All processes, by rank. Each process makes the same check, so that all of them end.

    Raises:
        UserError: A process has no GPU while others do, or two processes share a GPU.
    """
    some_process_has_gpu = any(member.gpu_uuid for member in members)
    if not some_process_has_gpu:
        return
    # For the UUID of each GPU, the rank of the first process that has it.
    rank_of_gpu: dict[str, int] = {}
    for rank, member in enumerate(members):
        if not member.gpu_uuid:
            raise UserError(
                f"process {rank} of {len(members)}, on {member.host}, finds no GPU, but another "
                f"process does. Give each process a GPU. {ON_CPUS}"
            )
        first_rank = rank_of_gpu.setdefault(member.gpu_uuid, rank)
        if first_rank != rank:
            raise UserError(
                f"processes {first_rank} and {rank} of {len(members)} have the same GPU of "
                f"{member.host}. Start at most as many processes as there are GPUs. {ON_CPUS}"
            )


def find_slowdowns(members: list[Member]) -> Iterator[str]:
    """Yield a note for each reason why a training is slower than it could be.

    The reasons are a missing driver, GPUs of different types, and a GPU that other processes use.

    Args:
        members: All processes that train together, by rank.
    """
    some_process_has_gpu = any(member.gpu_uuid for member in members)
    if not some_process_has_gpu and lacks_driver():
        yield "training on CPUs: this machine has an NVIDIA GPU, but no driver answers"
    gpu_names = dict.fromkeys(member.gpu_name for member in members)
    if len(gpu_names) > 1:
        yield f"the GPUs differ, and the slowest sets the pace: {', '.join(gpu_names)}"
    for rank, member in enumerate(members):
        is_used_by_others = member.free_bytes < _FREE_SHARE * member.total_bytes
        if is_used_by_others:
            free = machine_errors.format_bytes(member.free_bytes)
            total = machine_errors.format_bytes(member.total_bytes)
            yield (
                f"process {rank} of {len(members)} on {member.host}: other processes use its GPU, "
                f"{member.gpu_name}: {free} of {total} are free"
            )


def describe_device_memory(device: torch.device) -> str:
    """Return a sentence: how much memory a device has, and how much of it this process can use.

    It is part of a message about a lack of memory. For a CPU, it is about the machine's memory.
    """
    if device.type != "cuda":
        return machine_errors.describe_memory()
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    # torch keeps (reserves) the memory of deleted tensors, and reuses it for new ones.
    available_bytes = free_bytes + torch.cuda.memory_reserved(device)
    name = torch.cuda.get_device_name(device)
    total = machine_errors.format_bytes(total_bytes)
    available = machine_errors.format_bytes(available_bytes)
    return f"{name} has {total} of memory, and this process can use {available}"
