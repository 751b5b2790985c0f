"""Arithmetic that gives the same bits on every x86-64 processor with AVX2.

Libraries choose instructions by the processor and divide sums among threads. Other orders of the
same sums round differently, and a training magnifies that until its scores differ by points.
`arithmetic: portable` of a system fixes both. The libraries read these variables when a process
starts, hence a restart without any other variable of theirs; `check_portable` then reads back what
they do. Nothing here imports torch before that.
"""

import os
import platform
from contextlib import suppress

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.arithmetic_state import (
    describe_deviation,
    library_variables,
    list_suspect_variables,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.runtime.reexec import VARIABLES, reexec

PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",  # torch's own kernels
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",  # the one branch that MKL takes on processors of all vendors
    "OMP_NUM_THREADS": "1",
    # Other tunables choose among the variants of exp, log and pow in glibc.
    "GLIBC_TUNABLES": VARIABLES["GLIBC_TUNABLES"],
    "CUDA_VISIBLE_DEVICES": "",
    "BLEUPRINT_PROCESSES": "1",
}


def restart(*names: str) -> None:
    """Restart this process with the environment of its run's arithmetic.

    `names`: a system and a corpus, or nothing. Must be called before torch is imported. What is
    missing or damaged in reports/resolved.json is left to the stage to report.
    """
    portable = False
    with suppress(OSError, UserError, LookupError, TypeError):
        resolved = read_json(RESOLVED)
        portable = resolved["runs"][names[0]][names[1]]["arithmetic"] == "portable"
    if not portable:
        reexec()
        return
    # GOMP_SPINCOUNT and others that decide speed alone are set again by the restart.
    reexec(forced=PORTABLE, removed=library_variables(os.environ) - VARIABLES.keys())


def is_portable() -> bool:
    """Whether this process computes with portable arithmetic."""
    return os.environ.get("MKL_CBWR") == PORTABLE["MKL_CBWR"]


def check_portable(system: str, processes: int = 1) -> None:
    """Raise UserError if this process does not compute as `arithmetic: portable` promises.

    Args:
        system: The name of the system, for the message.
        processes: The number of processes that train together.
    """
    from torch.backends import cpu

    setting = f"systems.{system}.arithmetic portable"
    if processes > 1:
        raise UserError(f"{setting}: is computed by one process, not by {processes}: set native")
    if (found := cpu.get_cpu_capability()) != "AVX2":
        raise UserError(
            f"{setting}: needs an x86-64 processor with AVX2, and torch uses {found} on this "
            f"{platform.machine()}: set native"
        )
    deviation = describe_deviation()
    if deviation is None:
        return
    variables = list_suspect_variables(known={**VARIABLES, **PORTABLE})
    if variables:
        advice = f"unset the variable that causes it, one of {variables}"
    else:
        advice = "a module that Python loads at its start, such as sitecustomize, causes it"
    raise UserError(f"{setting}: {deviation}: {advice}; or set native")
