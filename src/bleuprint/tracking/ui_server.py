"""MLflow's pages of this project: `bleuprint ui`, which `make ui` runs."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.secrets import MASK, mask
from bleuprint.tracking import store, ui_views

_HOST = "127.0.0.1"
# Without MLflow's processes that wait for jobs of language models, it starts sooner.
_QUIET = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONWARNINGS": "ignore"}


def serve(port: int) -> None:
    """Serve the pages until Ctrl-C, and print the address of the view with scores.

    Raises UserError if the port is used, or if MLflow's store is a server, whose address then is in
    the message, or fails.
    """
    if store.uri().startswith("http"):
        base = mask(store.uri()).replace(f"{MASK}@", "").rstrip("/")
        raise UserError(f"MLFLOW_TRACKING_URI is a server: open {_view(base)}")
    _check_free(port)
    view = _view(f"http://{_HOST}:{port}")
    # a group of its own, since what answers are its children
    server = subprocess.Popen(_command(port), env=_environment(), start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        _wait(server, port)
        print(f"scores: {view}\nCtrl-C ends it", flush=True)
        server.wait()
    except KeyboardInterrupt:
        print()  # after ^C
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _command(port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "mlflow", "server"),
        *("--host", _HOST, "--port", str(port), "--workers", "1"),
        *("--uvicorn-opts", "--log-level warning"),
    ]


def _environment() -> dict[str, str]:
    # not an argument: others see those of all processes
    return {**_QUIET, **os.environ, "MLFLOW_BACKEND_STORE_URI": store.uri()}


def _check_free(port: int) -> None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((_HOST, port))
    except OSError as error:
        other = port % 65535 + 1
        hint = f"choose another: make ui PORT={other}, or bleuprint ui --port {other}"
        raise UserError(f"--port {port}: {error.strerror}; {hint}") from error


def _view(server: str) -> str:
    """The address of the scores; of the list of experiments while nothing is logged."""
    with store.failures_named():
        # its client also moves a copied project's artifacts
        found = store.client().get_experiment_by_name(load().experiment)
    return f"{server}/{ui_views.address(found.experiment_id) if found else '#/experiments'}"


def _wait(server: "subprocess.Popen[bytes]", port: int) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{port}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise UserError(f"MLflow ended with status {server.returncode}")
