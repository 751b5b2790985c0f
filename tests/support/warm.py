"""Python processes that have loaded libraries already, for commands that tests start.

Loading torch, pandas and others takes longer than most of these commands. A server, one for all
workers of pytest, loads them once, and forks a process for each command.

`folder()` returns a folder for PATH. Its programs `python`, `dvc`, `snakemake` and `bleuprint` are
clients: they send their arguments, environment, working folder and streams to the server, pass on
SIGINT and SIGTERM, and end as the command does. Only `python stages/...` and `python -m bleuprint`
go to the server; any other `python` starts as usual. The forked process loads the package itself,
from its PYTHONPATH.

The program `python` in `folder("package")` runs any Python file or module in a process that has
loaded the package of this checkout as well.

The forked process belongs to none of its caller's process groups.
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
    "torch",
    "numpy",
    "pandas",
    "scipy.stats",
    "safetensors.torch",
    "sacrebleu",
    "sacremoses",
    "matplotlib.figure",
    "jinja2",
    "ruamel.yaml",
    "filelock",
    "psutil",
    "tqdm",
    "requests",
    "sentencepiece",
    "py3langid",
    "subword_nmt",
    "matplotlib.backends.backend_svg",
    "dvc.repo",
    "dvc.cli",
    "dvc.commands.repro",
    "dvc.commands.status",
    "dvc.schema",
    "snakemake.cli",
    "snakemake.api",
    "snakemake.workflow",
)
# Modules that import most of the package.
PACKAGE = (
    "bleuprint.cli.scores",
    "bleuprint.cli.translate",
    "bleuprint.pipeline.train_stage",
    "bleuprint.report.report",
)
# The environment variable by which pytest's workers know the server's folder.
_FOLDER_VARIABLE = "WARM_PROCESSES"
# A client. It needs only the standard library, and so starts in a hundredth of a second. The
# server answers with a signal, or with 0 and the exit status.
_CLIENT = """\
#!{python} -IS
import os, sys
python = {python!r}
name = os.path.basename(sys.argv[0])
arguments = sys.argv[1:]
is_bleuprint = arguments[:2] == ["-m", "bleuprint"]
is_stage = "".join(arguments[:1]).startswith("stages/")
if name == "python" and not ({sends_all!r} or is_bleuprint or is_stage):
    os.execv(python, [python, *arguments])
import array, json, signal, socket
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
command = arguments if name == "python" else [{scripts!r} + name, *arguments]
request = json.dumps([{client_python!r}, command, os.getcwd(), dict(os.environ)]).encode()
streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
server.sendmsg([len(request).to_bytes(8, "big")], [streams])
server.sendall(request)
def forward(number, frame):
    try:
        server.send(bytes([number]))
    except OSError:
        pass
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, forward)
end_signal, exit_status = server.recv(2) or bytes([0, 255])
if end_signal:
    if end_signal != signal.SIGKILL:
        signal.signal(end_signal, signal.SIG_DFL)
    os.kill(os.getpid(), end_signal)
os._exit(exit_status)
"""


@cache
def folder(loaded="libraries"):
    """Return the folder of a kind of clients, once the server has started.

    Args:
        loaded: Which modules the server's processes have loaded: "libraries", or "package" for
            those of the package as well.
    """
    server_folder = Path(os.environ.get(_FOLDER_VARIABLE) or start())
    for _ in range(6000):
        if _address(server_folder, loaded).exists():
            return str(server_folder / loaded)
        time.sleep(0.05)
    raise AssertionError("the server did not start within five minutes")


def start():
    """Start the server, which ends with this process, and return its folder."""
    server_folder = Path(tempfile.mkdtemp(prefix="warm-"))
    for name in ("python", "dvc", "snakemake", "bleuprint"):
        _write_client(server_folder, "libraries", name)
    _write_client(server_folder, "package", "python")
    # Imported here, since the server runs this file, too: its processes load their own package.
    from bleuprint.runtime import reexec

    # Libraries read the variables when they are loaded. Threads that wait passively leave the cores
    # to other processes.
    env = {**os.environ, **reexec.VARIABLES, "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, __file__, str(server_folder)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, env=env, start_new_session=True)
    assert server.stdin
    atexit.register(shutil.rmtree, server_folder, ignore_errors=True)
    atexit.register(server.stdin.close)
    os.environ[_FOLDER_VARIABLE] = str(server_folder)
    return str(server_folder)


def _write_client(server_folder, loaded, name):
    """Write the client for a program, such as dvc, of one of the kinds of `folder`."""
    client = server_folder / loaded / name
    client.parent.mkdir(exist_ok=True)
    text = _CLIENT.format(
        python=sys.executable,
        client_python=str(server_folder / loaded / "python"),
        address=str(_address(server_folder, loaded)),
        scripts=f"{Path(sys.executable).parent}{os.sep}",
        sends_all=loaded == "package",
    )
    client.write_text(text)
    client.chmod(stat.S_IRWXU)


def _address(server_folder, loaded):
    """Return the path of the server's socket for a kind of clients."""
    return server_folder / f"{loaded}.socket"


def serve(server_folder):
    """Load modules, and fork a process for each request, until standard input ends.

    The server is two processes: one with the libraries, and its child with the package as well.
    """
    for name in LIBRARIES:
        importlib.import_module(name)
    loaded = "libraries"
    if os.fork() == 0:
        loaded = "package"
        for name in PACKAGE:
            importlib.import_module(name)
    # With this, processes that end do not stay as zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    address = _address(server_folder, loaded)
    listener = socket.socket(socket.AF_UNIX)
    # The socket gets its name when it listens, since `folder` waits for the name.
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
    length = int.from_bytes(size, "big")
    text = b""
    while len(text) < length:
        text += request.recv(length - len(text))
    python, command, cwd, environment = json.loads(text)
    if command[0] == "-u":
        # torchrun asks for output without a buffer; here each line is flushed when it ends.
        command = command[1:]
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
            # The child's id is still its own, since nobody has waited for its end.
            os.kill(child, number[0])
            continue
        os.kill(child, signal.SIGKILL)
        # The processes that it has started.
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        break
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        request.sendall(bytes([0, code] if code >= 0 else [-code, 0]))
    os._exit(0)


def _become(command, cwd, environment, streams, python):
    """Turn the forked process into what `python COMMAND` would be, and never return.

    Args:
        command: The arguments of Python.
        cwd: The working folder.
        environment: The environment.
        streams: The descriptors of standard input, output and error.
        python: The path that sys.executable gets: that of the client.
    """
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
        mode = "r" if number == 0 else "w"
        stream = open(number, mode, encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    import torch

    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    # With this, processes that it starts by sys.executable are requested from the server, too.
    sys.executable = python
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
        if code is None:
            status = 0
        elif isinstance(code, int):
            status = code
        else:
            status = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        _flush_and_exit(status)


def _flush_and_exit(status):
    """End the process as Python does: wait for threads, call exit functions, flush, and exit."""
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
