"""`bleuprint ui` prints the address where an experiment's scores are."""

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


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"^port {port}: Address already in use; choose another: make ui PORT={port + 1}$"
        with pytest.raises(UserError, match=said):
            ui.show_mlflow("trial", port)


def test_of_a_server_that_runs_the_address_alone_is_printed(mlserver, monkeypatch, capsys):
    from mlflow.tracking import MlflowClient  # which takes two seconds

    number = MlflowClient(mlserver.uri, registry_uri=mlserver.uri).create_experiment("shown")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
    ui.show_mlflow("shown", 1)
    assert capsys.readouterr() == (f"{mlserver.uri}/#/experiments/{number}/{CHARTS}\n", "")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri.replace("//", "//me:secret@"))
    ui.show_mlflow("shown", 1)  # a browser asks for them
    assert capsys.readouterr().out == f"{mlserver.uri}/#/experiments/{number}/{CHARTS}\n"
    ui.show_mlflow("other", 1)
    out, err = capsys.readouterr()
    assert out == f"{mlserver.uri}/#/experiments\n" and len(err.splitlines()) == 1
    assert " has no trainings of other yet. Train them: make reproduce. " in err


def served(address):
    with suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()
    return b""


@pytest.mark.slow
def test_it_starts_and_ends_a_server(tmp_path, monkeypatch, mldatabase, request):
    from mlflow.tracking import MlflowClient  # which takes two seconds

    monkeypatch.chdir(tmp_path)
    experiment = write_project(tmp_path, seeds=(1,)).experiment
    port, store = free_port(), f"sqlite:///{shutil.copyfile(mldatabase, tmp_path / 'other.db')}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    number = MlflowClient(store).create_experiment(experiment)
    command = [sys.executable, "-m", "bleuprint", "ui", "--port", str(port)]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    request.addfinalizer(lambda: process.send_signal(signal.SIGINT))  # if the test fails
    assert process.stdout
    address = process.stdout.readline()
    assert address == f"http://127.0.0.1:{port}/#/experiments/{number}/{CHARTS}\n"
    deadline = time.monotonic() + 120
    while not (page := served(address)):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.2)
    assert b"MLflow" in page
    by_name = f"api/2.0/mlflow/experiments/get-by-name?experiment_name={experiment}"
    found = json.loads(served(f"http://127.0.0.1:{port}/{by_name}"))["experiment"]
    assert found["experiment_id"] == number
    for each in [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]:
        assert store not in each.cmdline()  # all users see it, and it may hold a password
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    with socket.create_server(("127.0.0.1", port)):
        pass  # its server has ended, too
