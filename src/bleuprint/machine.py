"""The machine a training runs on, for the record beside what a clock measured."""

from pathlib import Path
from typing import Any

import torch

from bleuprint import tracking
from bleuprint.processes import Group


def machine_of(group: Group) -> dict[str, Any]:
    """Device, processes, threads of each, and the commit of the code."""
    gpu = group.device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(group.device) if gpu else _processor(),
        "processes": group.size,
        "threads": torch.get_num_threads(),
        "commit": tracking.commit(),
    }


def _processor() -> str:
    """The processor's name as Linux tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "CPU"
    names = [line for line in text.split("\n") if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else "CPU"
