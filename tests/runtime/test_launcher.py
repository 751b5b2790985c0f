"""The tie between a process and its launcher, and which processes are alive."""

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from bleuprint.runtime import launcher


def test_a_zombie_and_a_process_that_is_gone_are_not_alive():
    assert launcher._is_alive(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", ""])
    # it has ended, and nobody has asked how: a zombie
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not launcher._is_alive(child.pid)
    child.wait()
    assert not launcher._is_alive(child.pid)


@pytest.mark.parametrize(
    ("variables", "is_tied"),
    [
        ({}, False),
        ({"BLEUPRINT_LAUNCHED": str(os.getpid())}, True),
        ({"TORCHELASTIC_RUN_ID": "none"}, True),
    ],
    ids=["alone", "by ours", "by torchrun"],
)
def test_a_process_is_tied_to_the_launcher_that_started_it(monkeypatch, variables, is_tied):
    calls = []

    class Library:
        """In place of the C library."""

        def __init__(self, name):
            assert name is None

        def prctl(self, option, number):
            calls.append((option, number))

    for name in ("BLEUPRINT_LAUNCHED", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ctypes, "CDLL", Library)
    launcher.end_with_launcher()
    # PR_SET_PDEATHSIG of Linux is 1
    assert calls == ([(1, signal.SIGKILL)] if is_tied else [])
