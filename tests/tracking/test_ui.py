"""`bleuprint ui` starts MLflow's server, if none runs, and prints an experiment's address there."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import psutil
import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.tracking import ui
from mlservers import write_project
from servers import free_port
from trainings import environment

CHARTS = "runs?workflowType=machine_learning&compareRunsMode=CHART"


def test_a_port_in_use_is_an_error_that_proposes_another_one():
    """Another program listens at the port at which MLflow's page was to be shown."""
    with socket.create_server(("127.0.0.1", 0)) as other_server:
        port = other_server.getsockname()[1]
        message = (
            f"^port {port}: Address already in use. Choose another port: make ui PORT={port + 1}$"
        )

        with pytest.raises(UserError, match=message):
            ui.show_mlflow("trial", port)


@pytest.fixture(scope="module")
def experiment_id(mlserver):
    """Return the id of the experiment `shown` on a running server."""
    from mlflow.tracking import MlflowClient  # Importing it takes two seconds.

    client = MlflowClient(mlserver.uri, registry_uri=mlserver.uri)
    return client.create_experiment("shown")


def test_only_the_address_is_printed_if_a_server_is_running(
    mlserver, experiment_id, monkeypatch, capsys
):
    """MLFLOW_TRACKING_URI names the server, so none is started at the given port.

    The address is that of the charts of experiment `shown`.
    """
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)

    ui.show_mlflow("shown", port=1)

    output = capsys.readouterr()
    assert output.out == f"{mlserver.uri}/#/experiments/{experiment_id}/{CHARTS}\n"
    assert output.err == ""


def test_the_printed_address_has_no_password(mlserver, experiment_id, monkeypatch, capsys):
    """The printed line may be seen by others; the browser asks for user name and password."""
    uri_with_password = mlserver.uri.replace("//", "//me:secret@")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri_with_password)

    ui.show_mlflow("shown", port=1)

    expected_address = f"{mlserver.uri}/#/experiments/{experiment_id}/{CHARTS}"
    assert capsys.readouterr().out == f"{expected_address}\n"


@pytest.mark.usefixtures("experiment_id")
def test_a_note_says_that_an_experiment_has_no_trainings_yet(mlserver, monkeypatch, capsys):
    """The server has an experiment `shown`, and none called `other`: its page lists all."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)

    ui.show_mlflow("other", port=1)

    output = capsys.readouterr()
    assert output.out == f"{mlserver.uri}/#/experiments\n"
    assert len(output.err.splitlines()) == 1
    assert " has no trainings of other yet. Train them: make reproduce. " in output.err


def fetch(address):
    """Return the content of a page; empty bytes if no server answers."""
    with suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()
    return b""


def wait_for_page(address, process):
    """Return the content of a page as soon as the server answers, which runs as this process."""
    deadline = time.monotonic() + 120
    page = fetch(address)
    while not page:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.2)
        page = fetch(address)
    return page


@pytest.mark.slow
def test_the_command_starts_a_server_that_ends_with_it(tmp_path, monkeypatch, mldatabase, request):
    """`bleuprint ui` prints the address of the charts; Ctrl-C (SIGINT) ends it and its server."""
    from mlflow.tracking import MlflowClient  # Importing it takes two seconds.

    monkeypatch.chdir(tmp_path)
    experiment = write_project(tmp_path, seeds=(1,)).experiment
    store_uri = f"sqlite:///{shutil.copyfile(mldatabase, tmp_path / 'other.db')}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    experiment_id = MlflowClient(store_uri).create_experiment(experiment)
    port = free_port()
    server_uri = f"http://127.0.0.1:{port}"

    process = subprocess.Popen(
        [sys.executable, "-m", "bleuprint", "ui", "--port", str(port)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    request.addfinalizer(lambda: process.send_signal(signal.SIGINT))  # If the test fails.

    address = process.stdout.readline()
    assert address == f"{server_uri}/#/experiments/{experiment_id}/{CHARTS}\n"
    assert b"MLflow" in wait_for_page(address, process)
    by_name = f"api/2.0/mlflow/experiments/get-by-name?experiment_name={experiment}"
    served_experiment = json.loads(fetch(f"{server_uri}/{by_name}"))["experiment"]
    assert served_experiment["experiment_id"] == experiment_id
    # All users of the machine see command lines, and the address may contain a password.
    command = psutil.Process(process.pid)
    for running_process in [command, *command.children(recursive=True)]:
        assert store_uri not in running_process.cmdline()

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    # The port is free again, so the server has ended.
    socket.create_server(("127.0.0.1", port)).close()
