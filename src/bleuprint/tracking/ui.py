"""Show MLflow's pages, at the address of the charts of an experiment.

`show_mlflow` is the command behind `make ui`.
"""

import os
import socket
import sys
from urllib.parse import urlsplit

from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.secrets import mask
from bleuprint.tracking import store

_HOST = "127.0.0.1"
# The page with the charts of an experiment's runs, which have a bar for each score. The page that
# MLflow shows by default is a table that begins without metrics.
_CHARTS = "runs?workflowType=machine_learning&compareRunsMode=CHART"

# A program that runs MLflow's command line. If the user presses Ctrl-C while MLflow is loaded, it
# ends without a traceback; MLflow's server later handles this signal itself.
_MLFLOW_PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
from mlflow.cli import cli
cli()
"""


def show_mlflow(experiment: str, port: int) -> None:
    """Print the address of an experiment's charts, and replace this process by `mlflow ui`.

    If the store is a server, which shows the pages itself, only the address is printed.

    Args:
        experiment: The name of the experiment.
        port: The port on which MLflow's pages are served.

    Raises:
        UserError: The port is in use, or MLflow cannot be reached.
    """
    check_port(port)
    with store.name_store_in_errors():
        experiment_id = store.find_experiment_id(store.open_client(), experiment)
    if experiment_id is None:
        print_message(
            f"MLflow at {mask(store.store_uri())} has no trainings of {experiment} yet: they come "
            "with make reproduce or dvc pull",
            "note",
        )
    print(_page_address(experiment_id, port), flush=True)
    if not _is_server():
        print("MLflow starts, in half a minute; Ctrl-C ends it", file=sys.stderr, flush=True)
        _become_mlflow(port)


def check_port(port: int) -> None:
    """Raise UserError if another process listens on the port on which MLflow would start."""
    if _is_server():
        return
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        problem = os.strerror(error.errno or 0)
        raise UserError(
            f"port {port}: {problem}; choose another: make ui PORT={port + 1}"
        ) from None


def _is_server() -> bool:
    """Return whether the store is an MLflow server, not a database."""
    return store.store_uri().startswith("http")


def _page_address(experiment_id: str | None, port: int) -> str:
    """Return the address of an experiment's charts, or of all experiments.

    Args:
        experiment_id: The id of the experiment; None if it does not exist yet.
        port: The port on which the pages are served, unless the store is a server.
    """
    base = f"http://{_HOST}:{port}"
    if _is_server():
        server = urlsplit(store.store_uri())
        # Without the user and the password: a browser asks for them.
        host = server.netloc.rpartition("@")[2]
        base = f"{server.scheme}://{host}{server.path.rstrip('/')}"
    if experiment_id is None:
        return f"{base}/#/experiments"
    return f"{base}/#/experiments/{experiment_id}/{_CHARTS}"


def _become_mlflow(port: int) -> None:
    """Replace this process by MLflow, which serves its pages until Ctrl-C."""
    # Passed in the environment: `ps` would show a password in the arguments to all users.
    os.environ["MLFLOW_BACKEND_STORE_URI"] = store.store_uri()
    # Without the eight processes that would wait for jobs.
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    arguments = ["ui", "--host", _HOST, "--port", str(port), "--workers", "1"]
    arguments += ["--uvicorn-opts", "--log-level warning"]
    os.execv(sys.executable, [sys.executable, "-c", _MLFLOW_PROGRAM, *arguments])
