"""MLflow shows the trainings: found again, never doubled, and never in a training's way."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from bleuprint.layout import Cell
from bleuprint.tracking import FINGERPRINT, Description, Outcome, Tracker, log_outcomes
from trainings import STAGES, environment, project

CELL = Cell("tiny", "toy", 1)


def description(fingerprint: str = "f1") -> Description:
    settings = {"train": {"updates": 9, "betas": (0.9, 0.98)}, "parameters": 12}
    return Description("trial", CELL, fingerprint, "d" * 64, settings)


def outcome(fingerprint: str, bleu: float, cell: Cell = CELL) -> Outcome:
    return Outcome(cell, fingerprint, {"test/x/bleu": bleu}, {"decode": "beam 2"})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's root without a database yet."""
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def runs_in(uri: str, experiment: str = "trial") -> tuple[MlflowClient, list[Any]]:
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    return client, list(client.search_runs([found.experiment_id])) if found else []


def log(tracker: Tracker, *updates: int) -> None:
    for update in updates:
        tracker.log(update, {"train/loss": 10.0 / update})


def test_a_resumed_training_continues_its_run_and_doubles_nothing(root: Path) -> None:
    first = Tracker(description())
    log(first, 1, 2, 3)
    first.close("KILLED")
    second = Tracker(description())
    log(second, 2, 3, 4)  # from the checkpoint of update 1
    second.close("FINISHED")
    client, runs = runs_in(f"sqlite:///{root / 'mlflow.db'}")
    (run,) = runs
    history = client.get_metric_history(run.info.run_id, "train/loss")
    assert sorted((metric.step, metric.value) for metric in history) == [
        (step, 10.0 / step) for step in (1, 2, 3, 4)
    ]
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "train.updates": "9",
        "train.betas": "(0.9, 0.98)",
        "parameters": "12",
    }
    tags = {name: run.data.tags[name] for name in ("system", "corpus", "seed", FINGERPRINT)}
    assert tags == {"system": "tiny", "corpus": "toy", "seed": "1", FINGERPRINT: "f1"}
    (data,) = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("toy", "d" * 36)


def test_scores_go_to_the_run_of_their_training_and_make_none(root: Path) -> None:
    for fingerprint in ("f1", "f2"):
        Tracker(description(fingerprint)).close("FINISHED")
    other = Cell("other", "toy", 1)
    outcomes = [outcome("f2", 30.0), outcome("unknown", 1.0), outcome("f1", 2.0, other)]
    log_outcomes("trial", outcomes)
    log_outcomes("trial", outcomes)
    client, runs = runs_in(f"sqlite:///{root / 'mlflow.db'}")
    found = {run.data.tags[FINGERPRINT]: run for run in runs}
    assert {name: run.data.metrics for name, run in found.items()} == {
        "f1": {},
        "f2": {"test/x/bleu": 30.0},
    }
    assert found["f2"].data.tags["decode"] == "beam 2"
    assert len(client.get_metric_history(found["f2"].info.run_id, "test/x/bleu")) == 1


def test_scores_without_any_training_make_no_experiment(root: Path) -> None:
    log_outcomes("never", [outcome("f1", 30.0)])
    client, _ = runs_in(f"sqlite:///{root / 'mlflow.db'}")
    assert client.get_experiment_by_name("never") is None


def test_several_processes_may_create_the_database_at_once(root: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from test_tracking import *;"
        "t = Tracker(description(sys.argv[1])); log(t, 1); t.close('FINISHED')"
    )
    command = [sys.executable, "-c", code]
    started = [
        subprocess.Popen([*command, str(number), str(Path(__file__).parent)], cwd=root)
        for number in range(3)
    ]
    assert [process.wait(timeout=180) for process in started] == [0, 0, 0]
    _, runs = runs_in(f"sqlite:///{root / 'mlflow.db'}")
    assert {run.data.tags[FINGERPRINT] for run in runs} == {"0", "1", "2"}


def test_a_store_that_cannot_be_used_is_told_and_no_more(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "no-such-store://" + root.name)
    tracker = Tracker(description())
    log(tracker, 1, 2)
    tracker.close("FINISHED")
    log_outcomes("trial", [outcome("f1", 1.0)])
    said = capsys.readouterr().err
    assert "MLflow: not logged from here on" in said
    assert "MLflow: scores not logged" in said


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A real tracking server on the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = f"sqlite:///{tmp_path / 'server.db'}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--backend-store-uri", store],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    uri = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{uri}/health", process)
        yield uri, process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server has stopped"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError("the server did not start within two minutes")


def test_a_server_of_the_users_gets_the_run_and_its_going_away_stops_nothing(
    server: tuple[str, "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    uri, process = server
    root = project(tmp_path / "project", updates=50)
    command = [sys.executable, str(STAGES / "train.py"), "micro", "toy", "1"]
    reached = {**environment(), "MLFLOW_TRACKING_URI": uri}
    subprocess.run(command, cwd=root, env=reached, check=True, timeout=120)
    client, runs = runs_in(uri, "toy")
    (run,) = runs
    steps = [m.step for m in client.get_metric_history(run.info.run_id, "train/loss")]
    assert sorted(steps) == list(range(1, 51))
    assert {"valid/loss", "valid/bleu", "train/tokens_per_second"} <= run.data.metrics.keys()
    assert run.info.status == "FINISHED"

    os.killpg(process.pid, signal.SIGKILL)
    again = project(tmp_path / "again", updates=60)
    lost = {**reached, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    said = subprocess.run(
        command, cwd=again, env=lost, check=True, timeout=120, capture_output=True, text=True
    )
    assert "MLflow: not logged from here on" in said.stderr
    assert (again / "results" / "micro" / "toy" / "1" / "training.json").exists()
