"""A process restarts once, with the environment variables that it lacks."""

import os
import subprocess
import sys

import pytest

from bleuprint.runtime.reexec import VARIABLES

# The first line is printed once more after a restart; the process id stays the same.
SCRIPT = """
import os, sys
from bleuprint.runtime.reexec import reexec
print("begins", os.getpid(), sys.argv[1:])
reexec()
print(os.environ["GOMP_SPINCOUNT"], os.environ["MALLOC_TRIM_THRESHOLD_"])
"""


def lines_printed(variables):
    """Run SCRIPT with an argument; return the lines that it prints.

    Args:
        variables: The variables that the user has set. Others that `reexec` sets are not set.
    """
    environment = {name: text for name, text in os.environ.items() if name not in VARIABLES}
    environment |= variables
    command = [sys.executable, "-c", SCRIPT, "an argument"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True
    ).stdout.splitlines()


@pytest.mark.parametrize(
    ("user_variables", "spin_count"),
    [
        pytest.param({}, "3000", id="no variable set"),
        pytest.param({"GOMP_SPINCOUNT": "7"}, "7", id="one variable set"),
    ],
)
def test_a_process_restarts_with_missing_variables_and_those_of_the_user(
    user_variables, spin_count
):
    """A restart keeps the process id and the arguments; glibc trims above 8 GiB of free memory."""
    first_start, second_start, variables = lines_printed(user_variables)

    assert first_start == second_start
    assert first_start.endswith("['an argument']")
    assert variables == f"{spin_count} {8 * 2**30}"


def test_a_process_with_all_variables_does_not_restart():
    user_variables = {
        "MALLOC_MMAP_THRESHOLD_": "4194304",
        "MALLOC_TRIM_THRESHOLD_": "8388608",
        "GLIBC_TUNABLES": "",
        "GOMP_SPINCOUNT": "",
    }
    assert user_variables.keys() == VARIABLES.keys()

    first_start, variables = lines_printed(user_variables)  # A restart would print a third line.

    assert first_start.endswith("['an argument']")
    assert variables == " 8388608"
