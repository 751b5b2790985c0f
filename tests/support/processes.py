"""`subprocess.run` for commands of this project, in processes that have loaded torch already.

Loading torch takes two seconds, as long as most of these commands, and their other modules take one
more. Here one server for each worker of pytest loads it all, and forks a process for each command.
Tests of what happens at the start of a process or at signals use `subprocess`.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bleuprint.runtime import reexec

_LOADED = (
    *("torch", "scipy.stats", "bleuprint.cli.scores", "bleuprint.cli.translate"),
    *("bleuprint.pipeline.train_stage", "bleuprint.report.report"),
)
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(list(_LOADED))
_STREAMS = ("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)


def run(
    command: Sequence[str], cwd: Path, env: dict[str, str] | None = None, input: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run `sys.executable FILE ARGUMENTS` or `sys.executable -m MODULE ARGUMENTS`."""
    assert command[0] == sys.executable
    env = {**reexec.VARIABLES, **(os.environ if env is None else env)}
    with tempfile.TemporaryDirectory() as name:
        streams = [Path(name, stream) for stream, _ in _STREAMS]
        for stream in streams:
            stream.write_bytes(input if stream.name == "stdin" else b"")
        process = _SERVER.Process(target=_execute, args=(command[1:], str(cwd), env, name))
        process.start()
        process.join(240)
        if process.exitcode is None:
            process.kill()
        status, (_, out, err) = process.exitcode, (stream.read_bytes() for stream in streams)
    assert status is not None, f"did not end within 240 s: {err.decode()}"
    return subprocess.CompletedProcess(command, status, out, err)


def run_text(
    command: Sequence[str], cwd: Path, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    done = run(command, cwd, env)
    output = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(command, done.returncode, *output)


def _execute(arguments: Sequence[str], cwd: str, env: dict[str, str], streams: str) -> None:
    """In the new process: become what `python ARGUMENTS` is."""
    import torch

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, (name, flags) in enumerate(_STREAMS):
        os.dup2(os.open(Path(streams, name), flags), number)
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(number, mode, encoding="utf-8", buffering=1, closefd=False))  # noqa: SIM115
    torch.set_num_threads(int(env.get("OMP_NUM_THREADS", "1")))
    sys.path[:0] = [folder for folder in env.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")
