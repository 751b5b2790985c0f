"""The GPUs that this process may use."""

import torch

from bleuprint.runtime import machine_errors


def memory(device: torch.device) -> str:
    """How much memory a device has and how much of it is free, for a message."""
    if device.type != "cuda":
        return machine_errors.memory()
    free, total = torch.cuda.mem_get_info(device)
    size = machine_errors.size
    return f"{torch.cuda.get_device_name(device)} has {size(total)}, {size(free)} of it free"
