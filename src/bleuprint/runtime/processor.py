"""The processor of this machine: every choice that depends on it asks `THIS`.

Tests replace `THIS`, so that each choice is tested for the processors of both vendors on any
machine. This module does not import torch: the checks of params.yaml need it, too.
"""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Processor:
    """The properties of a processor that decide how bleuprint computes.

    Attributes:
        architecture: The instruction set, as `uname -m` prints it, in lower case.
        vendor: The maker as Linux names it, such as GenuineIntel; empty if Linux does not say.
        flags: The extensions of the instruction set that Linux lists, such as avx512_bf16.
        cores: The number of cores that this process may use.
    """

    architecture: str
    vendor: str
    flags: frozenset[str]
    cores: int

    @property
    def is_x86(self) -> bool:
        """Return whether this is a 64-bit x86 processor."""
        return self.architecture in ("x86_64", "amd64")

    @property
    def is_intel(self) -> bool:
        """Return whether this is an Intel processor, for which Intel tunes its library MKL."""
        return self.vendor == "GenuineIntel"

    @property
    def has_bfloat16(self) -> bool:
        """Return whether it multiplies bfloat16 itself; emulation is slower than float32."""
        return not self.flags.isdisjoint(("avx512_bf16", "amx_bf16", "amx_tile"))


def read_processor(cpuinfo: Path = _CPUINFO) -> Processor:
    """Return the properties of this machine's processor.

    Args:
        cpuinfo: The file in which Linux describes it, /proc/cpuinfo. Without the file, the vendor
            and the flags are empty.
    """
    description = ""
    if cpuinfo.exists():
        # The file has a paragraph for each core. All cores are alike, so the first one is read.
        description = cpuinfo.read_text(encoding="utf-8").partition("\n\n")[0]
    flags = _field(description, "flags").split()
    return Processor(
        architecture=platform.machine().lower(),
        vendor=_field(description, "vendor_id"),
        flags=frozenset(flags),
        cores=len(os.sched_getaffinity(0)),
    )


def _field(description: str, name: str) -> str:
    """Return the value of a field of /proc/cpuinfo; an empty string if the field is missing."""
    match = re.search(rf"(?m)^{name}[ \t]*:(.*)$", description)
    return match[1].strip() if match else ""


THIS = read_processor()
