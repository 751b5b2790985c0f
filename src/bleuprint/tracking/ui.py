"""MLflow's pages, at the address where an experiment's scores are."""

import os
import socket
import sys
from urllib.parse import urlsplit

from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.secrets import mask
from bleuprint.tracking import store

_HOST = "127.0.0.1"
# The charts of an experiment's runs, a bar for each score: its table begins without metrics.
_CHARTS = "runs?workflowType=machine_learning&compareRunsMode=CHART"

# Ctrl-C while it is loaded ends it without a traceback; its server handles the signal itself.
_MLFLOW = """
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
from mlflow.cli import cli
cli()
"""


def show_mlflow(experiment: str, port: int) -> None:
    """Print the address of an experiment's charts, and become `mlflow ui`.

    If the store is a server already, prints the address alone, without the user and password that
    a browser asks for. Raises UserError if the port is taken.
    """
    remote = store.uri().startswith("http")
    check_port(port)
    with store.failures_named():
        number = store.experiment(store.client(), experiment, make=False)
    if not number:
        none = f"MLflow at {mask(store.uri())} has no trainings of {experiment} yet"
        print_message(f"{none}: they come with make reproduce or dvc pull", "note")
    server = urlsplit(store.uri())
    host = server.netloc.rpartition("@")[2]
    base = (
        f"{server.scheme}://{host}{server.path.rstrip('/')}" if remote else f"http://{_HOST}:{port}"
    )
    print(f"{base}/#/experiments{f'/{number}/{_CHARTS}' if number else ''}", flush=True)
    if not remote:
        print("MLflow starts, in half a minute; Ctrl-C ends it", file=sys.stderr, flush=True)
        address = ["--host", _HOST, "--port", str(port)]
        options = ["--workers", "1", "--uvicorn-opts", "--log-level warning"]
        os.environ |= {
            "MLFLOW_BACKEND_STORE_URI": store.uri(),  # `ps` would show a password to all users
            # without the eight processes that wait for jobs
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        os.execv(sys.executable, [sys.executable, "-c", _MLFLOW, "ui", *address, *options])


def check_port(port: int) -> None:
    """Raise UserError if another process listens at the port where MLflow would start."""
    if store.uri().startswith("http"):
        return
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UserError(f"port {port}: {why}; choose another: make ui PORT={port + 1}") from None
