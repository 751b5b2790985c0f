"""MLflow's pages, at the address where an experiment's scores are."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.secrets import mask
from bleuprint.tracking import store

_HOST = "127.0.0.1"
# The charts of an experiment's runs, a bar for each score: its table begins without metrics.
_CHARTS = "runs?workflowType=machine_learning&compareRunsMode=CHART"


def show(experiment: str, port: int) -> None:
    """Start MLflow's server, print the address of an experiment's charts, wait until Ctrl-C.

    If the store is a server already, prints that address alone. Raises UserError if the port is
    taken or the server does not start.
    """
    remote = store.uri().startswith("http")
    base = store.uri().rstrip("/") if remote else f"http://{_HOST}:{port}"
    if not remote:
        _check(port)
    with store.failures_named():
        number = store.experiment(store.client(), experiment, make=False)
    if not number:
        none = f"MLflow at {mask(store.uri())} has no trainings of {experiment} yet"
        say(f"{none}: they come with make reproduce, or with bleuprint record", "note")
    address = mask(f"{base}/#/experiments{f'/{number}/{_CHARTS}' if number else ''}")
    if remote:
        print(address)
        return
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.default_int_handler)
    server, log = _started(port)
    try:
        print("MLflow starts, in half a minute ...", file=sys.stderr, flush=True)
        while not _answers(f"{base}/health"):
            if server.poll() is not None:
                said = log.read_text(encoding="utf-8", errors="replace").split("\n")
                raise UserError(f"MLflow has ended: {''.join(said[-2:])} ({log})")
            time.sleep(0.2)
        print(f"{address}\nCtrl-C ends it", flush=True)
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _check(port: int) -> None:
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UserError(f"port {port}: {why}; choose another: make ui PORT={port + 1}") from None


def _started(port: int) -> "tuple[subprocess.Popen[bytes], Path]":
    """The server in a process group of its own, and the file of its messages."""
    address, database = ["--host", _HOST, "--port", str(port)], ["--backend-store-uri", store.uri()]
    command = [sys.executable, "-m", "mlflow", "ui", *address, "--workers", "1", *database]
    # without the eight processes that wait for jobs
    variables = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (log := environment.work() / "mlflow-ui.log").open("wb") as file:
        started = subprocess.Popen(
            command, env=variables, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    return started, log


def _answers(address: str) -> bool:
    with suppress(OSError), urlopen(address, timeout=2):
        return True
    return False
