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
    """Print the address of an experiment's charts in MLflow, and serve this page.

    To serve it, this process becomes `mlflow ui`, which runs until Ctrl-C. If the user logs to an
    MLflow server, the server shows the page, and only the address is printed.

    Args:
        experiment: The name of the experiment.
        port: The port on which MLflow's pages are served, such as 5000.

    Raises:
        UserError: The port is in use, or MLflow cannot be reached.
    """
    check_port(port)
    with store.name_store_in_errors():
        experiment_id = store.find_experiment_id(store.open_client(), experiment)
    if experiment_id is None:
        print_message(
            f"MLflow at {mask(store.store_uri())} has no trainings of {experiment} yet. Train "
            "them: make reproduce. Or download them: dvc pull",
            "note",
        )
    print(_page_address(experiment_id, port), flush=True)
    if not _is_server():
        message = "MLflow starts in about half a minute. Press Ctrl-C to stop it"
        print(message, file=sys.stderr, flush=True)
        _become_mlflow(port)


def check_port(port: int) -> None:
    """Raise UserError if another process already uses the port on which `mlflow ui` would listen.

    If the user logs to an MLflow server, nothing is started here, so the port does not matter.
    """
    if _is_server():
        return
    try:
        # A server that is opened and closed at once: this fails if the port is in use.
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        problem = os.strerror(error.errno or 0)
        raise UserError(
            f"port {port}: {problem}. Choose another port: make ui PORT={port + 1}"
        ) from None


def _is_server() -> bool:
    """Return whether the store is an MLflow server, not a database."""
    return store.store_uri().startswith("http")


def _page_address(experiment_id: str | None, port: int) -> str:
    """Return the address of the page with an experiment's charts, on this machine or on a server.

    Args:
        experiment_id: MLflow's id of the experiment. None if it does not exist yet: the address is
            then that of the list of all experiments.
        port: The port on which the pages are served on this machine. A server has its own.
    """
    base_address = f"http://{_HOST}:{port}"
    if _is_server():
        server = urlsplit(store.store_uri())
        # Without USER:PASSWORD@, which must not be printed. A browser asks for them.
        host = server.netloc.rpartition("@")[2]
        base_address = f"{server.scheme}://{host}{server.path.rstrip('/')}"
    if experiment_id is None:
        return f"{base_address}/#/experiments"
    return f"{base_address}/#/experiments/{experiment_id}/{_CHARTS}"


def _become_mlflow(port: int) -> None:
    """Replace this process by MLflow's web server, `mlflow ui`, which runs until Ctrl-C.

    Args:
        port: The port on which it serves its pages.
    """
    # In the environment, not in the arguments: every user of the machine can see the arguments of a
    # process, and the address may contain a password.
    os.environ["MLFLOW_BACKEND_STORE_URI"] = store.store_uri()
    # MLflow would start eight more processes that wait for jobs, which are not used here.
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    arguments = ["ui", "--host", _HOST, "--port", str(port), "--workers", "1"]
    arguments += ["--uvicorn-opts", "--log-level warning"]
    # A short Python program that runs `mlflow` with these arguments.
    os.execv(sys.executable, [sys.executable, "-c", _MLFLOW_PROGRAM, *arguments])
