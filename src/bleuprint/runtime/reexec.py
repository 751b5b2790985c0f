"""A restart of the process with environment variables that speed up training and decoding on CPUs.

- glibc returns each block above its mmap threshold to the kernel when it is freed, so that every
  large activation is paged in again: raising the thresholds trains up to 1.4 times as fast, and
  large pages, where the kernel offers them by madvise, another 4 to 12 %.
- OpenMP threads that wait for each other spin, by default for a millisecond. If other processes
  run, this takes the cores from the threads that are waited for. Target tokens per second of a
  small model (d_model 128, two cores) when idle and beside one busy process a core, by spin count:
  10,000: 8,633 and 3,198; 3,000: 8,260 and 3,662; 1,000: 7,693 and 4,504.

The libraries read these variables when a process starts, so the process replaces itself by a new
start of the same command (execve), with the same process id.
"""

import os
import sys
from collections.abc import Collection, Mapping

from bleuprint.runtime.interrupts import block_interrupts
from bleuprint.runtime.launcher import end_with_launcher

VARIABLES = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "GOMP_SPINCOUNT": "3000",
}

# A variable with the id of the process that was restarted. Something may set a variable at each
# start of Python, such as sitecustomize; it must not restart the process for ever.
_RESTARTED = "BLEUPRINT_RESTARTED"


def reexec(forced: Mapping[str, str] | None = None, removed: Collection[str] = ()) -> None:
    """Restart this process with environment variables that speed up training and decoding on CPUs.

    Libraries read these variables (VARIABLES) only when a process starts, so the function must be
    called before torch is imported. A value that the user has set is kept. If the process already
    has all variables, the function returns without a restart.

    Args:
        forced: Variables that replace even what the user has set.
        removed: Names of variables whose values are dropped first; VARIABLES and `forced` may set
            them again.
    """
    end_with_launcher()
    new_environment = {name: text for name, text in os.environ.items() if name not in removed}
    for name, text in VARIABLES.items():
        new_environment.setdefault(name, text)
    new_environment.update(forced or {})
    # Restart only once: a hook may change the environment at each start of Python, which would lead
    # to endless restarts. A restarted process keeps its id, so it recognizes its own mark.
    process_id = str(os.getpid())
    is_restarted = os.environ.get(_RESTARTED) == process_id
    if new_environment == dict(os.environ) or is_restarted:
        return
    new_environment[_RESTARTED] = process_id
    if sys.stdout:  # It is None if the caller has closed standard output.
        sys.stdout.flush()
    # Ctrl-C while Python starts would print a traceback; the new program unblocks it.
    block_interrupts()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], new_environment)
