"""The machine a training runs on, and how fast its devices compute, for what a clock measured."""

import platform
import re
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bleuprint.model.linear import linear
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.git import commit

# Rates that the paper reckons its own and others' trainings by (Vaswani et al. 2017, section 6.1,
# footnote 5): sustained single-precision FLOP/s of one device.
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
    "H100 HBM3": (67.0, 494.5, 989.5),  # as the SXM module calls itself
    "H200": (67.0, 494.5, 989.5),
    "H200 NVL": (60.0, 417.5, 835.5),
    "RTX 3090": (35.6, 35.6, 71.0),
    "RTX 4090": (82.6, 82.6, 165.2),
}

# How torch multiplies float32 matrices, by precision.
_PRODUCTS = {"float32": "highest", "tf32": "high", "bfloat16": "high"}
# Measuring: sizes of the square matrices (smaller ones measure how threads wait for each other),
# and how many seconds a reading must last, or else the size grows, and all of them together.
_SMALLEST, _LARGEST = 1024, 4096
_READING, _ALL = 0.004, 0.08


def machine_of(group: Group) -> dict[str, Any]:
    """The hardware, the commit of the code, and the versions that computed."""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return {**hardware_of(group), "commit": commit(), "versions": versions}


def hardware_of(group: Group) -> dict[str, Any]:
    """What computes: processes, each with its device and threads.

    A GPU belongs to one process; on CPUs a device is a process with its threads. So there are as
    many devices as processes; all are taken to be like this one's.
    """
    gpu = group.device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(group.device) if gpu else _processor(),
        "processes": group.size,
        "threads": torch.get_num_threads(),
    }


def paper_flops(device_name: str) -> float | None:
    """The sustained FLOP/s that the paper gives a device, None for those it does not name."""
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


def measured_flops(device: torch.device, precision: str) -> float:
    """The best rate of a large square matrix product, in FLOP/s, on this device and its threads.

    It takes 0.1 to 0.2 s on two cores, as on a GPU. Other work on the device lowers it: where
    processes share a CPU the others must be idle, and what they reach together may then be less
    than the sum.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(_PRODUCTS[precision])
    try:
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        return _best_rate(device, dtype)
    finally:
        torch.set_float32_matmul_precision(before)


def flops_by_time(seconds: float, devices: int, sustained: float) -> float:
    """What a training cost as the paper reckons it: time x devices x sustained FLOP/s."""
    return seconds * devices * sustained


def utilization(flops: float, seconds: float, devices: int, peak: float) -> float:
    """Model FLOPs utilisation (MFU): counted operations as a share of what the devices can do."""
    return flops / (seconds * devices * peak)


def _best_rate(device: torch.device, dtype: torch.dtype) -> float:
    size, times, best, spent = _SMALLEST, 1, 0.0, 0.0
    factor = _factor(size, device, dtype)
    while spent < _ALL:
        seconds = _seconds(factor, times)
        spent += seconds
        best = max(best, times * 2 * size**3 / seconds)
        if seconds < _READING and size < _LARGEST:
            size *= 2
            factor = _factor(size, device, dtype)
        elif seconds < _READING:
            times *= 2
    return best


def _factor(size: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A matrix of random numbers, with zeros a GPU is faster; multiplied once, to load its code."""
    random = torch.Generator(device).manual_seed(1)
    factor = torch.rand(size, size, generator=random, device=device, dtype=dtype)
    _seconds(factor, 1)
    return factor


def _seconds(factor: Tensor, times: int) -> float:
    """How long the product of `factor` and itself transposed takes, so many times."""
    gpu = factor.device.type == "cuda"
    if gpu:
        torch.cuda.synchronize(factor.device)
    began = time.perf_counter()
    with torch.no_grad():
        for _ in range(times):
            linear(factor, factor, None)
    if gpu:
        torch.cuda.synchronize(factor.device)
    return time.perf_counter() - began


def _short(device_name: str) -> str:
    """A GPU's name without its maker's and the series'."""
    return re.sub(r"^(NVIDIA |Tesla |GeForce )*", "", device_name)


def _processor() -> str:
    """The processor's name as Linux tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "CPU"
    names = [line for line in text.split("\n") if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else "CPU"
