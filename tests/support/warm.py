"""Python processes that have loaded the libraries already, for stages that DVC and Snakemake start.

Loading torch, pandas and others takes longer than the stages of a small project. Here a server for
each worker of pytest has loaded them, and forks a process for each `python stages/...`: `folder()`
is a folder for PATH, whose `python` asks the server and passes on its own arguments, environment,
folder and streams. The package itself is loaded by the new process, from its PYTHONPATH. Tests of
signals start processes without it: the new process is in none of its caller's groups.
"""

import array
import atexit
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

LIBRARIES = (
    *("torch", "numpy", "pandas", "scipy.stats", "safetensors.torch", "sacrebleu", "sacremoses"),
    *("matplotlib.figure", "jinja2", "ruamel.yaml", "filelock", "psutil", "tqdm", "requests"),
    *("dvc.repo", "dvc.cli", "dvc.commands.repro", "dvc.commands.status", "dvc.schema"),
    *("snakemake.cli", "snakemake.api", "snakemake.workflow"),
)
# Of the interpreter alone: it starts in a hundredth of a second.
_CLIENT = """\
#!{python} -IS
import os, sys
real, name, given = {python!r}, os.path.basename(sys.argv[0]), sys.argv[1:]
stage = given[:2] == ["-m", "bleuprint"] or "".join(given[:1]).startswith("stages/")
if name == "python" and not stage:
    os.execv(real, [real, *given])
import array, json, socket
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
command = given if name == "python" else [{scripts!r} + name, *given]
text = json.dumps([command, os.getcwd(), dict(os.environ)]).encode()
streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
server.sendmsg([len(text).to_bytes(8, "big")], [streams])
server.sendall(text)
status = server.recv(1)
os._exit(status[0] if status else 255)
"""


@cache
def folder() -> str:
    """A folder with `python` and the commands below; the server ends with this process."""
    place = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    address, scripts = str(place / "server"), f"{Path(sys.executable).parent}{os.sep}"
    command = [sys.executable, __file__, address, str(place / "python")]
    from bleuprint.runtime import reexec  # not in the server: projects have their own

    # read as libraries are loaded: threads that wait leave the cores to other processes
    env = {**os.environ, **reexec.VARIABLES, "OMP_WAIT_POLICY": "passive"}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, env=env, start_new_session=True)
    atexit.register(server.kill)
    for name in ("python", "dvc", "snakemake", "bleuprint"):
        text = _CLIENT.format(python=sys.executable, address=address, scripts=scripts)
        (place / name).write_text(text)
        (place / name).chmod(stat.S_IRWXU)
    for _ in range(1200):
        if Path(address).exists():
            return str(place)
        assert server.poll() is None, "the server has ended"
        time.sleep(0.05)
    raise AssertionError("the server did not start within a minute")


def serve(address: str, python: str) -> None:
    """Fork a process for each request, until standard input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no process stays a zombie
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{address}.new")
    listener.listen(64)
    Path(f"{address}.new").rename(address)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        request, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _supervise(request, python)
        request.close()


def _supervise(request: socket.socket, python: str) -> None:
    """Run a request in a child, and report its status; kill it if the client is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, ancillary, _, _ = request.recvmsg(8, socket.CMSG_SPACE(12))
    streams = array.array("i", ancillary[0][2])
    length, text = int.from_bytes(size, "big"), b""
    while len(text) < length:
        text += request.recv(length - len(text))
    command, cwd, environment = json.loads(text)
    child = os.fork()
    if child == 0:
        request.close()
        _become(command, cwd, environment, streams, python)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, request], [], [])
    if ended not in ready:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        request.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _become(
    command: list[str],
    cwd: str,
    environment: dict[str, str],
    streams: "array.array[int]",
    python: str,
) -> None:
    """In the new process: become what `python COMMAND` is."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, given in enumerate(streams):
        os.dup2(given, number)
        os.close(given)
        mode = "r" if number == 0 else "w"
        stream = open(number, mode, encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(name, signal.default_int_handler if name == signal.SIGINT else signal.SIG_DFL)
    import torch

    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    sys.executable = python  # so that Snakemake's stages are started so as well
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    sys.path[:0] = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    status = 1
    try:
        if command[0] == "-m":
            sys.argv = command[1:]
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = command
            sys.path.insert(0, str(Path(command[0]).parent))
            runpy.run_path(command[0], run_name="__main__")
        status = 0
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        status = code if isinstance(code, int) else 0 if code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        _flush_and_exit(status)


def _flush_and_exit(status: int) -> None:
    import threading

    with suppress(Exception):
        threading._shutdown()
    with suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status & 255)


if __name__ == "__main__":
    serve(*sys.argv[1:])
