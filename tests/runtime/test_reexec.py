"""A process restarts once, with the variables that it lacks."""

import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
from bleuprint.runtime.reexec import reexec_for_speed
print("begins", os.getpid(), sys.argv[1:])
reexec_for_speed()
print(os.environ["GOMP_SPINCOUNT"], os.environ["MALLOC_TRIM_THRESHOLD_"])
"""


def test_what_is_not_set_is_set_by_one_restart_of_the_same_process() -> None:
    ours = ("GOMP_", "MALLOC_", "GLIBC_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-c", SCRIPT, "an argument"]
    for given, policy in (({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7")):
        done = subprocess.run(command, env={**kept, **given}, capture_output=True, text=True)
        first, second, last = done.stdout.splitlines()
        assert first == second and first.endswith("['an argument']")
        assert last == f"{policy} {8 << 30}"
    everything = {**kept, **dict.fromkeys(("GOMP_SPINCOUNT", "GLIBC_TUNABLES"), "")}
    everything |= {"MALLOC_MMAP_THRESHOLD_": "4194304", "MALLOC_TRIM_THRESHOLD_": "8388608"}
    done = subprocess.run(command, env=everything, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 2  # no restart


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep less")
def test_free_blocks_of_the_heap_return_to_the_kernel() -> None:
    script = """
import ctypes, psutil
from bleuprint.runtime.reexec import reexec_for_speed, trim_memory
reexec_for_speed()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(1 << 20) for _ in range(200)]
for block in blocks:
    ctypes.memset(block, 1, 1 << 20)
for block in blocks[:-1]:  # the last one keeps the heap's end where it is
    libc.free(block)
before = psutil.Process().memory_info().rss
trim_memory()
print(before - psutil.Process().memory_info().rss)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert int(done.stdout) > 150 << 20, done.stderr
