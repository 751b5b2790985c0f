"""Memory that is kept instead of being given back to the kernel at every free.

glibc returns each block above its mmap threshold at once, so that every large activation is
paged in again: raising the thresholds trains up to 1.4 times as fast on CPUs. Large pages, where
the kernel gives them to who asks, save most of what is left of that: 4 to 12 % more. Both are read
when a process starts, hence the restart; no user has to set anything.
"""

import os
import sys

_SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


def keep_memory() -> None:
    """Start this process again with the settings in place; to be called before anything else."""
    missing = {name: text for name, text in _SETTINGS.items() if name not in os.environ}
    if sys.platform == "linux" and missing:
        os.environ.update(missing)
        if sys.stdout:  # not if who calls has closed it
            sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
