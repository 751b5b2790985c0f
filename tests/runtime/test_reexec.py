"""A process restarts once, with the variables that it lacks, and keeps few compiled products."""

import os
import platform
import subprocess
import sys

import pytest
import torch

from bleuprint.runtime.reexec import VARIABLES

SCRIPT = """
import os, sys
from bleuprint.runtime.reexec import reexec
print("begins", os.getpid(), sys.argv[1:])
reexec()
print(os.environ["GOMP_SPINCOUNT"], os.environ["MALLOC_TRIM_THRESHOLD_"])
"""


def without_variables():
    return {name: text for name, text in os.environ.items() if name not in VARIABLES}


def test_what_is_not_set_is_set_by_one_restart_of_the_same_process():
    kept = without_variables()
    command = [sys.executable, "-c", SCRIPT, "an argument"]
    for given, policy in (({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7")):
        done = subprocess.run(command, env={**kept, **given}, capture_output=True, text=True)
        first, second, last = done.stdout.splitlines()
        assert first == second and first.endswith("['an argument']")
        assert last == f"{policy} {8 << 30}"
    everything = {**kept, **dict.fromkeys(VARIABLES, "")}
    everything |= {"MALLOC_MMAP_THRESHOLD_": "4194304", "MALLOC_TRIM_THRESHOLD_": "8388608"}
    done = subprocess.run(command, env=everything, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 2  # no restart


SHAPES = """
import ctypes, sys
from bleuprint.runtime.reexec import reexec
if sys.argv[1:] == ["restarts"]:
    reexec()
import torch
from bleuprint.model.linear import Linear

class Heap(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Heap
torch.set_num_threads(1)
layer = Linear(64, 128)
for rows in range(100, 500):
    if rows == 200:
        before = libc.mallinfo2().uordblks
    layer(torch.ones(rows, 64)).sum().backward()
print(libc.mallinfo2().uordblks - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries count otherwise")
@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="needs oneDNN")
def test_products_of_ever_new_shapes_do_not_take_ever_more_memory():
    grown = {}
    for argument in ("restarts", "as it is"):
        command = [sys.executable, "-c", SHAPES, argument]
        done = subprocess.run(command, env=without_variables(), capture_output=True, text=True)
        grown[argument] = int(done.stdout or done.stderr)
    assert grown["restarts"] < 2e6 < 20e6 < grown["as it is"], grown
