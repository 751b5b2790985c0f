"""The GPUs that this process may use, by the environment variable CUDA_VISIBLE_DEVICES.

CUDA reads the variable itself. These functions follow its rules, so that bleuprint knows the same
GPUs before PyTorch is loaded. The rules are in the CUDA programming guide, under "CUDA environment
variables", and in PyTorch's `torch.cuda._parse_visible_devices`.
"""

import os
import re
from collections.abc import Sequence

from bleuprint.runtime.errors import UserError

VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
# The start of the UUID of a part of a GPU (Multi-Instance GPU), such as MIG-5f1c...
_MIG_PREFIX = "MIG-"
# The kinds of UUIDs: of a whole GPU, and of a part of one.
_UUID_PREFIXES = ("GPU-", _MIG_PREFIX)
# CUDA reads a number up to the first other character, as the C function strtoul does.
_NUMBER = re.compile(r"\+?(\d+)")


def visible_gpus() -> list[str]:
    """Return the UUIDs of the GPUs that this process may use, such as GPU-5f1c...

    These are the GPUs in CUDA_VISIBLE_DEVICES if it is set, as SLURM sets it for the GPUs of a job;
    otherwise all GPUs of the machine that NVIDIA's driver lists. A GPU that the variable names by
    its number, or by the first digits of its UUID, is returned by its whole UUID. So two processes
    that name the same GPU differently know it by the same name.

    Returns:
        The UUIDs. Without NVIDIA's driver, and for a GPU that the driver does not list, the name in
        CUDA_VISIBLE_DEVICES stays as it is.

    Raises:
        UserError: CUDA_VISIBLE_DEVICES names a GPU twice.
    """
    setting = os.environ.get(VISIBLE_GPUS)
    if setting is None:
        return _driver_uuids()
    names = named_gpus(setting)
    if not names:
        return []
    all_uuids = _driver_uuids()
    uuids = [_find_uuid(name, all_uuids) for name in names]
    if len(set(uuids)) < len(uuids):
        raise _named_twice(setting)
    return uuids


def named_gpus(setting: str) -> list[str]:
    """Return the GPUs that a value of CUDA_VISIBLE_DEVICES names: its entries, as CUDA reads them.

    All entries are numbers, or all are UUIDs of GPUs, or all are UUIDs of parts of GPUs. CUDA reads
    the list up to the first entry of another kind. So a value such as "", "-1", "none" or SLURM's
    "NoDevFiles" hides all GPUs, and "0,-1,1" names only GPU 0.

    Args:
        setting: The value, such as "0,1" or "GPU-5f1c,GPU-8a02".

    Returns:
        The numbers without the characters around them, or the UUIDs, which may be abbreviated.

    Raises:
        UserError: An entry occurs twice. CUDA then finds no GPU at all.
    """
    entries = [entry.strip() for entry in setting.split(",")]
    names = list[str]()
    for entry in entries:
        name = _gpu_name(entry)
        if name is None or _kind(name) != _kind(entries[0]):
            break
        if name in names:
            raise _named_twice(setting)
        names.append(name)
    return names


def are_parts_of_gpus() -> bool:
    """Return whether this process may use parts of GPUs (MIG), as CUDA_VISIBLE_DEVICES says.

    CUDA shows a process only one of them, even if the variable names several.
    """
    names = named_gpus(os.environ.get(VISIBLE_GPUS, ""))
    return any(name.startswith(_MIG_PREFIX) for name in names)


def _gpu_name(entry: str) -> str | None:
    """Return the GPU that an entry of CUDA_VISIBLE_DEVICES names; None if it does not name any.

    Args:
        entry: The entry, such as " 1" or "GPU-5f1c".

    Returns:
        The number or UUID, such as "1" or "GPU-5f1c".
    """
    if entry.startswith(_UUID_PREFIXES):
        return entry
    number = _NUMBER.match(entry)
    # `int` removes zeros at the start: CUDA takes 01 for 1.
    return str(int(number[1])) if number else None


def _kind(entry: str) -> str:
    """Return the kind of an entry of CUDA_VISIBLE_DEVICES: "GPU-", "MIG-", or "" for a number."""
    for prefix in _UUID_PREFIXES:
        if entry.startswith(prefix):
            return prefix
    return ""


def _find_uuid(name: str, all_uuids: Sequence[str]) -> str:
    """Return the UUID of a GPU.

    Args:
        name: The number of the GPU, or the first digits of its UUID.
        all_uuids: The UUIDs of all GPUs of this machine, in the order of their numbers.

    Returns:
        The whole UUID; `name` itself if it names no GPU of this machine, or more than one.
    """
    is_number = name.isdecimal()
    if is_number:
        number = int(name)
        return all_uuids[number] if number < len(all_uuids) else name
    candidates = [uuid for uuid in all_uuids if uuid.startswith(name)]
    return candidates[0] if len(candidates) == 1 else name


def _named_twice(setting: str) -> UserError:
    """Return the error that a value of CUDA_VISIBLE_DEVICES names a GPU twice."""
    return UserError(
        f"{VISIBLE_GPUS} is {setting!r} and names a GPU twice, so CUDA finds none. Name each once"
    )


def _driver_uuids() -> list[str]:
    """Return the UUIDs of all GPUs that NVIDIA's driver lists, in the order of their numbers.

    These are the numbers that `nvidia-smi` shows, in the order of the PCI bus. CUDA itself counts
    in this order with CUDA_DEVICE_ORDER=PCI_BUS_ID; by default its number 0 is the fastest GPU. On
    a machine with different GPUs, users name them by the numbers that nvidia-smi shows.

    Returns:
        The UUIDs; an empty list if the machine has no such driver, or if it does not answer.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        uuids = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuids.append(str(pynvml.nvmlDeviceGetUUID(handle)))
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()
    return uuids
