"""The hardware of a training, and the published FLOP/s of devices."""

import platform
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from bleuprint.runtime.code import commit
from bleuprint.runtime.distributed.group import Group

# The sustained single-precision FLOP/s of one device by which Vaswani et al. (2017, section 6.1,
# footnote 5) compute the cost of their own and others' trainings.
_PAPER = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}

# Dense peaks in TFLOP/s by NVIDIA's data sheets and, for GeForce, architecture white papers (GA102,
# Ada): float32, tf32, bfloat16 (accumulated in float32); None where the chip has no such units.
# Where a sheet gives tensor cores "with sparsity" only, this is half of it.
_PEAKS: dict[str, tuple[float, float | None, float | None]] = {
    "P100-PCIE": (9.3, None, None),
    "P100-SXM2": (10.6, None, None),
    "V100-PCIE": (14.0, None, None),
    "V100-SXM2": (15.7, None, None),
    "V100S-PCIE": (16.4, None, None),
    "T4": (8.1, None, None),
    "A100-PCIE": (19.5, 156.0, 312.0),
    "A100 PCIe": (19.5, 156.0, 312.0),
    "A100-SXM4": (19.5, 156.0, 312.0),
    "A10": (31.2, 62.5, 125.0),
    "A40": (37.4, 74.8, 149.7),
    "L4": (30.3, 60.0, 121.0),
    "L40": (90.5, 90.5, 181.05),
    "L40S": (91.6, 183.0, 362.05),
    "H100 PCIe": (51.0, 378.0, 756.5),
    "H100 NVL": (60.0, 417.5, 835.5),
    "H100 HBM3": (67.0, 494.5, 989.5),  # the name that the SXM module reports
    "H200": (67.0, 494.5, 989.5),
    "H200 NVL": (60.0, 417.5, 835.5),
    "RTX 3090": (35.6, 35.6, 71.0),
    "RTX 4090": (82.6, 82.6, 165.2),
}


def machine_of(group: Group) -> dict[str, Any]:
    """The device, the processes, the threads of each, the commit of the code, and versions.

    A device is a GPU, or a process with its threads on a CPU: there are as many devices as
    processes, and all are assumed to be like this one's.
    """
    gpu = group.device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(group.device) if gpu else _processor(),
        "processes": group.size,
        "threads": torch.get_num_threads(),
        "commit": commit(),
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
    }


def peak_memory(device: torch.device) -> int:
    """The peak memory of this process in bytes: on the GPU, or resident on the CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # ru_maxrss is in kilobytes on Linux, in bytes on macOS
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def paper_flops(device_name: str) -> float | None:
    """The sustained FLOP/s that the paper assumes for a device; None for other devices."""
    name = re.match("|".join(_PAPER), _short(device_name))
    return _PAPER[name[0]] if name else None


def peak_flops(device_name: str, precision: str) -> float | None:
    """The dense peak in FLOP/s of a known device, by its data sheet; otherwise None.

    A part of a GPU (MIG) is another device. Chips without tf32 compute in float32 instead.
    """
    peaks = _PEAKS.get(re.sub(r"[- ]\d+GB\b", "", _short(device_name)))
    if peaks is None:
        return None
    float32, tf32, bfloat16 = peaks
    peak = {"float32": float32, "tf32": tf32 or float32, "bfloat16": bfloat16}[precision]
    return None if peak is None else peak * 1e12


def utilization(flops: float, seconds: float, devices: int, peak: float) -> float:
    """Model FLOPs utilization (MFU): counted operations as a share of the devices' peak."""
    return flops / (seconds * devices * peak)


def _short(device_name: str) -> str:
    """A GPU's name without its maker's and the series'."""
    return re.sub(r"^(NVIDIA |Tesla |GeForce )*", "", device_name)


def _processor() -> str:
    """The processor's name as in /proc/cpuinfo."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n"):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "CPU"
