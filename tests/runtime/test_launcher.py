"""The tie between a process and its launcher, and which processes are alive."""

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from bleuprint.runtime import launcher


def test_a_running_process_is_alive():
    assert launcher._is_alive(os.getpid())


def test_a_process_that_has_ended_is_not_alive():
    """Linux lists it as a zombie until its parent has asked for its exit status."""
    child = subprocess.Popen([sys.executable, "-c", ""])

    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # Waits, but keeps the zombie.
    assert not launcher._is_alive(child.pid)

    child.wait()  # Asks for the exit status: the zombie disappears.
    assert not launcher._is_alive(child.pid)


@pytest.mark.parametrize(
    ("variables", "is_tied"),
    [
        ({}, False),
        ({"BLEUPRINT_LAUNCHED": str(os.getpid())}, True),
        ({"TORCHELASTIC_RUN_ID": "none"}, True),
    ],
    ids=["no launcher", "our launcher", "torchrun"],
)
def test_linux_kills_a_training_process_when_its_launcher_dies(monkeypatch, variables, is_tied):
    """The process asks for it by the system call prctl, here of a stand-in for the C library.

    The option 1 is PR_SET_PDEATHSIG: the signal that Linux sends when the parent process dies.
    """
    calls = []

    class CLibrary:
        """Stands in for the C library, and records the calls of prctl."""

        def __init__(self, name):
            assert name is None

        def prctl(self, option, number):
            calls.append((option, number))

    for name in ("BLEUPRINT_LAUNCHED", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ctypes, "CDLL", CLibrary)

    launcher.end_with_launcher()

    expected_calls = [(1, signal.SIGKILL)] if is_tied else []
    assert calls == expected_calls
