"""Environment variables that make training and decoding faster and smaller on CPUs.

- glibc returns each block above its mmap threshold to the kernel when it is freed, so that every
  large activation is paged in again: raising the thresholds trains up to 1.4 times as fast, and
  large pages, where the kernel offers them by madvise, another 4 to 12 %.
- OpenMP threads that wait for each other spin, by default for a millisecond. If other processes
  run, this takes the cores from the threads that are waited for. Target tokens per second of a
  small model (d_model 128, two cores) when idle and beside one busy process a core, by spin count:
  10,000: 8,633 and 3,198; 3,000: 8,260 and 3,662; 1,000: 7,693 and 4,504.

The libraries read these variables when a process starts, hence the restart.
"""

import os
import sys
from collections.abc import Mapping

VARIABLES = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "GOMP_SPINCOUNT": "3000",
}


def reexec(forced: Mapping[str, str] | None = None) -> None:
    """Restart this process with the variables that its environment does not set.

    Those of `forced` replace what it sets. Must be called before torch is imported.
    """
    missing = {name: text for name, text in VARIABLES.items() if name not in os.environ}
    missing |= {k: text for k, text in (forced or {}).items() if os.environ.get(k) != text}
    if missing:
        os.environ.update(missing)
        if sys.stdout:  # None if the caller has closed it
            sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
