"""The GPUs of the processes that train together, and what is wrong with them in one line."""

import os
import re
import socket
import warnings
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import torch

from bleuprint.runtime import machine_errors
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted

ON_CPUS = "set CUDA_VISIBLE_DEVICES to nothing to train on CPUs"
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY = "0x10de", "0x03"  # a vendor, and the class of display controllers
# A GPU of which less is free is one that other processes use; a CUDA context takes 0.5 GB.
_FREE = 0.75


class Member(NamedTuple):
    """What each process publishes at the start: its host and its GPU, if it has one.

    Of that the UUID, the name, and the memory in bytes: all and what is free.
    """

    host: str
    gpu: str = ""
    name: str = ""
    total: int = 0
    free: int = 0


def gpu_count() -> int:
    """The GPUs that this process may use.

    Raises UserError if PyTorch cannot use the driver, or CUDA_VISIBLE_DEVICES names other GPUs.
    """
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    # CUDA stops at the first entry that is no device: "-1" or "none" hides all GPUs.
    found = takewhile(re.compile(r"\d+|(GPU|MIG)-.+").fullmatch, (names or "").split(","))
    named = len(list(found))
    if names is not None and not named:
        return 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if said and not count:  # an old driver, or one that fails
        why = str(said[0].message).removeprefix("CUDA initialization: ").partition(". ")[0]
        raise UserError(
            f"{socket.gethostname()}: {why}; this PyTorch is built for CUDA {torch.version.cuda}: "
            f"update the driver, or {ON_CPUS}"
        )
    if named > count:
        such = counted(count, "such GPU")
        raise UserError(f"CUDA_VISIBLE_DEVICES is {names!r}, but PyTorch finds {such}; {ON_CPUS}")
    return count


def lacks_driver() -> bool:
    """Whether PyTorch, built for GPUs, finds none where the PCI bus has one of NVIDIA."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") is not None or torch.version.cuda is None:
        return False
    kinds = [[(at / of).read_text() for of in ("vendor", "class")] for at in _PCI.glob("*")]
    found = any(v.startswith(_NVIDIA) and kind.startswith(_DISPLAY) for v, kind in kinds)
    return found and not gpu_count()


def occupy(device: torch.device, process: str) -> Member:
    """Make `device` that of this process; raises UserError, naming it, if it cannot be used."""
    host = socket.gethostname()
    if device.type != "cuda":
        return Member(host)
    try:
        of = torch.cuda.get_device_properties(device)
        torch.cuda.set_device(device)
        run_kernel(device)
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError as error:  # by which CUDA reports exclusive GPUs, and those that are full
        why = str(error).partition("\n")[0]
        if "no kernel image" in why:
            raise UserError(
                f"{process} on {host} cannot use {device}, {of.name}: this PyTorch "
                f"({torch.__version__}) has no kernels for its compute capability {of.major}."
                f"{of.minor}: install a build that has, or {ON_CPUS}"
            ) from None
        raise UserError(
            f"{process} on {host} cannot use {device}: {why}: end the processes that use it (see "
            f"nvidia-smi), name other GPUs in CUDA_VISIBLE_DEVICES, or {ON_CPUS}"
        ) from None
    return Member(host, str(of.uuid), of.name, total, free)


def run_kernel(device: torch.device) -> None:
    """Raises RuntimeError if this build of PyTorch has no kernels for the device."""
    torch.ones(1, device=device).add_(1)


def check_gpus(members: list[Member]) -> None:
    """Raise UserError, on every process, if one has no GPU while others do, or shares one.

    A sum over processes would hang otherwise, or fail with an obscure error of NCCL.
    """
    gpus, of = [member.gpu for member in members], f"of {len(members)}"
    for rank, (member, gpu) in enumerate(zip(members, gpus, strict=True)):
        if any(gpus) and not gpu:
            raise UserError(f"process {rank} {of}, on {member.host}, finds no GPU; others do")
        if gpu and (first := gpus.index(gpu)) < rank:
            raise UserError(
                f"processes {first} and {rank} {of} are given the same GPU of {member.host}: "
                f"start no more processes than there are GPUs; {ON_CPUS}"
            )


def find_slowdowns(members: list[Member]) -> Iterator[str]:
    """What slows a training down: no driver, GPUs that are unlike, or that others use."""
    if not any(member.gpu for member in members) and lacks_driver():
        yield "this machine has an NVIDIA GPU, but no driver answers: CPUs train"
    if len(names := dict.fromkeys(member.name for member in members)) > 1:
        yield f"different GPUs train together, at the pace of the slowest: {', '.join(names)}"
    for rank, (host, _, name, total, free) in enumerate(members):
        if free < _FREE * total:
            size = machine_errors.format_bytes
            yield (
                f"process {rank} of {len(members)} on {host}: other processes use its GPU, {name}: "
                f"{size(free)} of {size(total)} are free"
            )


def describe_device_memory(device: torch.device) -> str:
    """How much memory a device has and how much of it this process can have, for a message."""
    if device.type != "cuda":
        return machine_errors.describe_memory()
    free, total = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device)
    size, name = machine_errors.format_bytes, torch.cuda.get_device_name(device)
    return f"{name} has {size(total)}, {size(free)} of it for this process"
