"""Arithmetic that gives the same bits on every x86-64 processor with AVX2.

Libraries choose instructions by the processor and divide sums among threads. Other orders of the
same sums round differently, and a training magnifies that until its scores differ by points.
`arithmetic: portable` of a system fixes both. The libraries read these variables when a process
starts, hence a restart without any other variable of theirs; `check_portable` then reads back what
they do. Nothing here imports torch before that.
"""

import os
import platform
from collections.abc import Sequence

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.arithmetic_state import (
    describe_deviation,
    library_variables,
    list_suspect_variables,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
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
    """Restart this process with the environment variables that its arithmetic needs.

    With the setting `arithmetic: portable`, a system must have the same results on all processors.
    The libraries for this, such as MKL, read environment variables once, when they are loaded. So a
    running process cannot change them, and this must be called before torch is imported.

    Args:
        names: The arguments of the stage: the names of a system and a corpus. If one is missing,
            the stage itself reports it later; here the arithmetic is then not portable.
    """
    if not _is_run_portable(names):
        reexec()
        return
    # Variables that the user has set for these libraries could change results. Those of VARIABLES,
    # such as GOMP_SPINCOUNT, stay: they change only the speed.
    removed = library_variables(os.environ) - VARIABLES.keys()
    reexec(forced=PORTABLE, removed=removed)


def _is_run_portable(names: Sequence[str]) -> bool:
    """Return whether the settings require portable arithmetic for a system on a corpus.

    They are read from reports/resolved.json, which contains all settings.

    Args:
        names: The arguments of the stage: the names of a system and a corpus.

    Returns:
        Whether they require it. False if a name, the file or its entry is missing or damaged, since
        the stage itself reports this later, with a better message.
    """
    if len(names) < 2:
        return False
    system, corpus, *_ = names
    try:
        resolved = read_json(RESOLVED)
        return bool(resolved["runs"][system][corpus]["arithmetic"] == "portable")
    except (OSError, UserError, LookupError, TypeError):
        return False


def is_portable() -> bool:
    """Return whether this process computes with portable arithmetic."""
    return os.environ.get("MKL_CBWR") == PORTABLE["MKL_CBWR"]


def check_portable(system: str, processes: int = 1) -> None:
    """Check that this process computes the same bits as other machines (`arithmetic: portable`).

    `restart` has set the variables for this; here the libraries are asked whether they obey.

    Args:
        system: The name of the system, for the message.
        processes: The number of processes that train together.

    Raises:
        UserError: Several processes train together; the processor has no AVX2 instructions; or a
            library does not compute as its environment variables tell it.
    """
    from torch.backends import cpu

    setting = f"systems.{system}.arithmetic portable"
    if processes > 1:
        raise UserError(f"{setting} needs one process, not {processes}. Set arithmetic: native")
    capability = cpu.get_cpu_capability()
    if capability != "AVX2":
        raise UserError(
            f"{setting} needs an x86-64 processor with AVX2, but torch uses {capability} on this "
            f"{platform.machine()}. Set arithmetic: native"
        )
    deviation = describe_deviation()
    if deviation is None:
        return
    # The cause is a variable that this program has not set itself, if there is one.
    variables = list_suspect_variables(known={**VARIABLES, **PORTABLE})
    if variables:
        advice = f"Unset the variable that causes it, one of {variables}"
    else:
        advice = "Remove its cause: a module that Python loads at its start, such as sitecustomize"
    raise UserError(f"{setting}: {deviation}. {advice}. Or set arithmetic: native")
