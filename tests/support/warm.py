"""Python processes that have loaded the libraries already, for commands that tests start.

Loading torch, pandas and others takes longer than most of these commands. Here one server for all
of pytest's workers has loaded them, and forks a process for each command. `folder()` is a folder
for PATH, whose `python stages/...`, `dvc`, `snakemake` and `bleuprint` request it and pass on
their arguments, environment, folder, streams, SIGINT and SIGTERM, and end as the command does; the
package itself is loaded by the new process, from its PYTHONPATH. `python` in `folder("package")`
runs any Python file or module in a process that has loaded the package of this checkout as well.
The new process is in none of its caller's groups.
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
    *("sentencepiece", "py3langid", "subword_nmt", "matplotlib.backends.backend_svg"),
    *("dvc.repo", "dvc.cli", "dvc.commands.repro", "dvc.commands.status", "dvc.schema"),
    *("snakemake.cli", "snakemake.api", "snakemake.workflow"),
)
PACKAGE = (
    *("bleuprint.cli.scores", "bleuprint.cli.translate"),
    *("bleuprint.pipeline.train_stage", "bleuprint.report.report"),
)
# Where the server of all workers is, in the environment of pytest's workers.
_PLACE = "WARM_PROCESSES"
# Of the interpreter alone: it starts in a hundredth of a second.
_CLIENT = """\
#!{python} -IS
import os, sys
real, name, given = {python!r}, os.path.basename(sys.argv[0]), sys.argv[1:]
stage = {all!r} or given[:2] == ["-m", "bleuprint"] or "".join(given[:1]).startswith("stages/")
if name == "python" and not stage:
    os.execv(real, [real, *given])
import array, json, signal, socket
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
command = given if name == "python" else [{scripts!r} + name, *given]
text = json.dumps([{shim!r}, command, os.getcwd(), dict(os.environ)]).encode()
streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
server.sendmsg([len(text).to_bytes(8, "big")], [streams])
server.sendall(text)
def forward(number, frame):
    try:
        server.send(bytes([number]))
    except OSError:
        pass
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, forward)
status = server.recv(2) or bytes([0, 255])
if status[0]:
    if status[0] != signal.SIGKILL:
        signal.signal(status[0], signal.SIG_DFL)
    os.kill(os.getpid(), status[0])
os._exit(status[1])
"""


@cache
def folder(loaded="libraries"):
    """A folder with `python`, and for "libraries" the commands; "package": see above."""
    place = Path(os.environ.get(_PLACE) or start())
    for _ in range(6000):
        if _address(place, loaded).exists():
            return str(place / loaded)
        time.sleep(0.05)
    raise AssertionError("the server did not start within five minutes")


def start():
    """Start the server, which ends with this process; its folder."""
    place = Path(tempfile.mkdtemp(prefix="warm-"))
    for loaded, names in (
        ("libraries", ("python", "dvc", "snakemake", "bleuprint")),
        ("package", ("python",)),
    ):
        (place / loaded).mkdir()
        for name in names:
            shim = place / loaded / name
            text = _CLIENT.format(
                python=sys.executable,
                shim=str(place / loaded / "python"),
                address=str(_address(place, loaded)),
                scripts=f"{Path(sys.executable).parent}{os.sep}",
                all=loaded == "package",
            )
            shim.write_text(text)
            shim.chmod(stat.S_IRWXU)
    from bleuprint.runtime import reexec  # not in the server: projects have their own

    # read as libraries are loaded: threads that wait leave the cores to other processes
    env = {**os.environ, **reexec.VARIABLES, "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, __file__, str(place)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, env=env, start_new_session=True)
    assert server.stdin
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    atexit.register(server.stdin.close)
    os.environ[_PLACE] = str(place)
    return str(place)


def _address(place, loaded):
    return place / f"{loaded}.socket"


def serve(place):
    """Fork a process for each request, until standard input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    loaded = "libraries"
    if os.fork() == 0:
        loaded = "package"
        for name in PACKAGE:
            importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no process stays a zombie
    address = _address(place, loaded)
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
            _supervise(request)
        request.close()


def _supervise(request):
    """Run a request in a child, pass on signals and report its end; kill it if the client ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, ancillary, _, _ = request.recvmsg(8, socket.CMSG_SPACE(12))
    streams = array.array("i", ancillary[0][2])
    length, text = int.from_bytes(size, "big"), b""
    while len(text) < length:
        text += request.recv(length - len(text))
    python, command, cwd, environment = json.loads(text)
    command = command[command[0] == "-u" :]  # torchrun's; lines are flushed as they end
    child = os.fork()
    if child == 0:
        request.close()
        _become(command, cwd, environment, streams, python)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    while ended not in select.select([ended, request], [], [])[0]:
        try:
            number = request.recv(1)
        except ConnectionResetError:
            number = b""
        if number:
            os.kill(child, number[0])  # still there: nobody has waited for it
            continue
        os.kill(child, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it has started
        break
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        request.sendall(bytes([0, code] if code >= 0 else [-code, 0]))
    os._exit(0)


def _become(command, cwd, environment, streams, python):
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
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    import torch

    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    sys.executable = python  # so that what it starts in turn is started so as well
    sys.orig_argv[:] = [python, *command]
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    sys.path[:0] = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    status = 1
    try:
        if command[0] == "-m":
            sys.argv = command[1:]
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        elif command[0] == "-c":
            sys.argv = ["-c", *command[2:]]
            exec(command[1], {"__name__": "__main__"})
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


def _flush_and_exit(status):
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
    serve(Path(sys.argv[1]))
