"""The energy that this machine has used, where it measures it."""

from contextlib import suppress
from pathlib import Path

import torch

# https://www.kernel.org/doc/html/latest/power/powercap/powercap.html
_POWERCAP = Path("/sys/class/powercap")


def joules(device: torch.device, powercap: Path = _POWERCAP) -> float | None:
    """The reading of an energy counter: of the GPU by NVML, or of all processors by RAPL.

    RAPL's counters start again at 0, within an hour at full load. None if there is no counter, or
    if this user may not read it.
    """
    if device.type == "cuda":
        with suppress(Exception):  # pynvml is not installed, or the GPU has no such counter
            import pynvml

            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
        return None
    with suppress(OSError):
        # a package each; their parts (intel-rapl:0:0) are in it
        packages = [path for path in powercap.glob("intel-rapl:*") if path.name.count(":") == 1]
        files = [path / "energy_uj" for path in packages]
        return sum(int(file.read_text()) for file in files) / 1e6 if files else None
    return None
