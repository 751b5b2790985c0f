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

import warm
from bleuprint.runtime import reexec

# The lines by which `progress.working` and `progress.Progress` show that work goes on.
_PROGRESS = r"(?m)^(?!bleuprint: ).*(?:: \d+ s|, \S+ a second(?:, .*)?)\n"


def without_progress(output):
    """What a command prints, as text or bytes, without the progress that a slow machine shows."""
    pattern = _PROGRESS if isinstance(output, str) else _PROGRESS.encode()
    return re.sub(pattern, output[:0], output)


def run(command, cwd, env=None, input=b""):
    """Run `sys.executable` with FILE, -m MODULE or -c CODE, and arguments.

    Lines of progress are left out of what it returns.
    """
    env = {"OMP_NUM_THREADS": "1", **reexec.VARIABLES, **(os.environ if env is None else env)}
    done = subprocess.run(
        loaded(command), cwd=cwd, env=env, input=input, capture_output=True, timeout=240
    )
    done.stderr = without_progress(done.stderr)
    return done


def run_text(command, cwd, env=None):
    done = run(command, cwd, env)
    output = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(command, done.returncode, *output)


def on_terminal(command, cwd=None, env=None):
    """What a command and those that it starts write to a terminal of 24 lines, 200 wide."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 200))
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    with subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **streams):
        os.close(theirs)
        text = b""
        with suppress(OSError):  # of Linux, once all have closed it
            while data := os.read(ours, 1 << 16):
                text += data
    os.close(ours)
    return text.decode()


def loaded(command):
    """The command with the interpreter that has loaded the package."""
    assert command[0] == sys.executable
    return [f"{warm.folder('package')}/python", *command[1:]]
