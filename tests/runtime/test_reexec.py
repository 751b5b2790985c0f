"""A process restarts once, with the variables that it lacks."""

import os
import subprocess
import sys

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
