"""The launcher of processes on several nodes of a SLURM job, with a shell script as srun."""

import os
import signal
import sys

import pytest

from bleuprint.runtime.distributed import launch

# Each test starts a process: the stand-in for srun.
pytestmark = pytest.mark.processes


@pytest.fixture
def launch_with_srun(tmp_path, monkeypatch):
    """Return a function that launches a step by a stand-in for srun, and returns the exit status.

    Its argument is the code of the stand-in, a Bash script. `nodes` and `count` are the arguments
    of `launch_slurm_step`: the number of nodes, and of processes per node.
    """
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(launch, "POLL_SECONDS", 0.01)
    # The launcher sets handlers of signals, which must not remain in the process of the tests.
    old_handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        old_handlers[number] = signal.getsignal(number)

    def launch_step(srun_script, nodes=3, count=2):
        path = tmp_path / "srun"
        path.write_text(f"#!/bin/bash\n{srun_script}\n")
        path.chmod(0o755)
        with pytest.raises(SystemExit) as system_exit:
            launch.launch_slurm_step(nodes, count)
        return system_exit.value.code

    yield launch_step
    for number, handler in old_handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("srun_script", "expected_status"),
    [
        pytest.param("exit 0", 0, id="success"),
        pytest.param("exit 3", 3, id="error"),
        pytest.param("kill -KILL $$", 128 + 9, id="killed-by-signal-9"),
    ],
)
def test_the_launcher_of_a_slurm_step_exits_with_the_status_of_srun(
    launch_with_srun, srun_script, expected_status
):
    """`srun_script` takes the place of srun, the command of SLURM that runs a step."""
    assert launch_with_srun(srun_script) == expected_status


@pytest.mark.parametrize("signal_name", ["INT", "TERM"])
def test_the_launcher_of_a_slurm_step_passes_signals_to_srun_as_sigusr1(
    launch_with_srun, signal_name
):
    """At SIGTERM, srun would kill its processes; it passes SIGUSR1 on, and they save their state.

    The script in the place of srun signals the launcher, its parent, and waits for SIGUSR1.
    """
    srun_script = f"""
        trap 'exit 75' USR1
        kill -{signal_name} $PPID
        while :; do sleep 0.01; done
    """

    assert launch_with_srun(srun_script) == 75


def test_srun_starts_two_processes_on_each_of_three_nodes(launch_with_srun, tmp_path):
    """The script in the place of srun writes its arguments to a file, one per line."""
    srun_script = f"printf '%s\\n' \"$@\" > {tmp_path}/arguments"

    status = launch_with_srun(srun_script, nodes=3, count=2)

    assert status == 0
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert "--nodes=3" in arguments
    assert "--ntasks=6" in arguments
    assert "--ntasks-per-node=2" in arguments
    # After srun's options, the arguments are the command line of this Python process.
    start_of_command = arguments.index(sys.executable)
    assert arguments[start_of_command:] == [sys.executable, *sys.orig_argv[1:]]
