"""`bleuprint ui`: the address of the scores, or one line that says why not."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from bleuprint.tracking import ui_server
from bleuprint.tracking.sync import sync

# MLflow takes long to start: a server that answers as quickly as it can stands for it.
_PROGRAM = """
import sys
from bleuprint.tracking import ui_server
port = int(sys.argv[1])
ui_server._view = lambda server: f"{server}/#/view"
ui_server._command = lambda port: [
    sys.executable, "-m", "http.server", str(port), "--bind=127.0.0.1"
]
ui_server.serve(port)
"""


def test_it_is_served_until_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "health").write_text("OK")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-c", _PROGRAM, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert started.stdout is not None
        said = next(line for line in started.stdout if line.startswith(b"scores"))
        assert said == f"scores: http://127.0.0.1:{port}/#/view\n".encode()
        with pytest.raises(UserError, match=rf"^--port {port}: Address already in use; .* PORT="):
            ui_server.serve(port)
        os.kill(started.pid, signal.SIGTERM)
        assert started.wait(30) == 128 + signal.SIGTERM
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))  # nothing of it is left


def test_the_address_is_of_the_view_with_scores(root: Path) -> None:  # noqa: ARG001, the folder
    server = "http://127.0.0.1:5000"
    assert ui_server._view(server) == f"{server}/#/experiments"
    list(sync(load()))
    view = "workflowType=machine_learning&viewStateShareKey=bleuprint"
    assert ui_server._view(server) == f"{server}/#/experiments/1/runs?{view}"


def test_with_a_server_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@nowhere.example")
    monkeypatch.setattr(ui_server, "_view", lambda server: f"{server}/#/experiments")
    with pytest.raises(UserError, match=r"is a server: open http://nowhere.example/#/experiments"):
        ui_server.serve(5000)
