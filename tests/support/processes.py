"""`subprocess.run` for commands of this project, in processes that have loaded it already.

Tests of what happens at the start of a process use `subprocess`.
"""

import os
import pty
import re
import subprocess
import sys
import termios
from contextlib import suppress

import psutil

import warm
from bleuprint.runtime import reexec

# A line by which runtime/progress.py shows that work goes on.
_PROGRESS = r"(?m)^(?!bleuprint: ).*(?:: \d+ s|, \S+ a second(?:, .*)?)\n"


def without_progress(output):
    """Remove lines of progress, which a slow machine shows, from a command's output.

    Args:
        output: The output, as text or bytes.
    """
    pattern = _PROGRESS if isinstance(output, str) else _PROGRESS.encode()
    return re.sub(pattern, output[:0], output)


def run(command, cwd, env=None, input=b""):
    """Run Python in a process that has loaded the package.

    Args:
        command: `sys.executable` with FILE, -m MODULE or -c CODE, and arguments.
        cwd: The working folder.
        env: The environment; this process's if omitted.
        input: The bytes of standard input.

    Returns:
        The finished process, without lines of progress on standard error.
    """
    variables = os.environ if env is None else env
    done = subprocess.run(
        in_loaded_python(command),
        cwd=cwd,
        env={"OMP_NUM_THREADS": "1", **reexec.VARIABLES, **variables},
        input=input,
        capture_output=True,
        timeout=240,
    )
    done.stderr = without_progress(done.stderr)
    return done


def run_text(command, cwd, env=None):
    """Run Python as `run` does, with output as text."""
    done = run(command, cwd, env)
    return subprocess.CompletedProcess(
        args=command,
        returncode=done.returncode,
        stdout=done.stdout.decode(),
        stderr=done.stderr.decode(),
    )


def cpu_seconds(process):
    """Return the processor time that a running process has used, in seconds."""
    return psutil.Process(process.pid).cpu_times().user


def on_terminal(command, cwd=None, env=None):
    """Run a command on a terminal of 24 lines of 200 characters, and return what it shows.

    What processes of the command write is included.
    """
    our_end, command_end = pty.openpty()
    termios.tcsetwinsize(command_end, (24, 200))
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=command_end,
        stdout=command_end,
        stderr=command_end,
        start_new_session=True,
    )
    with process:
        os.close(command_end)
        text = b""
        # Linux raises an error once all processes have closed the terminal.
        with suppress(OSError):
            while data := os.read(our_end, 1 << 16):
                text += data
    os.close(our_end)
    return text.decode()


def in_loaded_python(command):
    """Return a command of Python with the interpreter that has loaded the package."""
    assert command[0] == sys.executable
    return [f"{warm.folder('package')}/python", *command[1:]]
