"""Trainings in MLflow: resumed ones continue their run, and failures never stop a training."""

import shutil
import socket
import subprocess
import sys
import time

import pytest

import processes
from bleuprint.config.paths import Run
from bleuprint.tracking import tracker as tracker_module
from bleuprint.tracking.runs import FINGERPRINT, RunDescription
from bleuprint.tracking.tracker import Tracker
from mlservers import SYNC, history, runs_in
from servers import free_port
from trainings import STAGES, environment, project

RUN = Run("tiny", "toy", 1)


def description(fingerprint="f1", run=RUN, trial="trial"):
    params = {"train.max_updates": "9", "train.betas": "0.9, 0.98", "parameters": "12"}
    return RunDescription(trial, run, fingerprint, params)


@pytest.fixture
def root(tmp_path, monkeypatch, mldatabase):
    """A project's root with a database."""
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    shutil.copy(mldatabase, tmp_path)
    return tmp_path


def store(root):
    return f"sqlite:///{root / 'mlflow.db'}"


def log(tracker, *updates):
    for update in updates:
        tracker.log(update, {"train/loss": 10.0 / update})


def losses(*updates):
    return [(update, 10.0 / update) for update in updates]


def test_a_resumed_training_continues_its_run_and_doubles_nothing(root):
    first = Tracker(description())
    log(first, 1, 2, 3)
    first.close("KILLED")
    second = Tracker(description())
    log(second, 2, 3, 4)  # from the checkpoint of update 1
    second.close("FINISHED")
    client, (run,) = runs_in(store(root), "trial")
    assert history(client, run, "train/loss") == losses(1, 2, 3, 4)
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "train.max_updates": "9",
        "train.betas": "0.9, 0.98",
        "parameters": "12",
    }
    tags = {name: run.data.tags[name] for name in ("system", "corpus", "seed", FINGERPRINT)}
    assert tags == {"system": "tiny", "corpus": "toy", "seed": "1", FINGERPRINT: "f1"}


@pytest.mark.parametrize("uri", ["no-such-store://host", ""], ids=["address", "folder"])
def test_a_store_that_cannot_be_used_is_reported_and_stops_nothing(root, monkeypatch, capsys, uri):
    if uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    else:
        (root / "mlflow.db").unlink()
        (root / "mlflow.db").mkdir()
    tracker = Tracker(description())
    log(tracker, 1, 2)
    tracker.close("FINISHED")
    said = capsys.readouterr().err.splitlines()
    assert all(line.startswith("MLflow: ") for line in said)
    assert said[-1].startswith(f"MLflow: 2 metrics and the end of {RUN} are not logged (")
    assert said[-1].endswith("run bleuprint sync after the training")
    assert uri or "(unable to open database file)" in said[-1]


@pytest.mark.usefixtures("root")
def test_a_server_that_hangs_holds_no_training(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
        # MLflow waits until this test closes the connection, however slow the machine is.
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "3600")
        monkeypatch.setattr(tracker_module, "_FAILED_WAIT_SECONDS", 0.5)
        tracker = Tracker(description())
        log(tracker, *range(1, 1001))
        tracker.close("KILLED")
        # neither has waited for an answer, which has not come yet
        assert tracker._thread.is_alive()
    tracker._thread.join(60)  # or it would speak, and log, in the tests that follow
    assert not tracker._thread.is_alive()
    assert f"1000 metrics and the end of {RUN} are not logged" in capsys.readouterr().err


@pytest.mark.usefixtures("root")
def test_a_server_that_goes_and_comes_back_gets_all(mlserver, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    tracker = Tracker(description(trial="comes back"))
    log(tracker, 1, 2)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        client, runs = runs_in(mlserver.uri, "comes back")
        if runs and history(client, runs[0], "train/loss") == losses(1, 2):
            break
        time.sleep(0.2)
    mlserver.kill()
    log(tracker, 3, 4)  # returns, though nothing can be logged
    mlserver.start()
    mlserver.wait()
    again = 1000 * time.time()
    log(tracker, 5)
    while time.monotonic() < deadline + 120:  # the machine, too, is watched again
        points = client.get_metric_history(runs[0].info.run_id, "system/disk_usage_percentage")
        if points and points[-1].timestamp > again:
            break
        time.sleep(0.2)
    tracker.close("FINISHED")
    assert points[-1].timestamp > again
    client, (run,) = runs_in(mlserver.uri, "comes back")
    assert history(client, run, "train/loss") == losses(1, 2, 3, 4, 5)
    assert run.info.status == "FINISHED"
    said = capsys.readouterr().err
    assert said.count("MLflow:") == 1 and "training continues" in said


def test_a_training_whose_server_is_away_is_logged_by_a_sync(mlserver, tmp_path):
    root = project(tmp_path / "project", max_updates=50)
    command = [sys.executable, str(STAGES / "train.py"), "micro", "toy", "1"]
    lost = {**environment(), "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{free_port()}"}
    said = processes.run_text(command, root, lost)
    said.check_returncode()
    assert "run bleuprint sync" in said.stderr
    assert (root / "results" / "micro" / "toy" / "1" / "training.json").exists()
    assert "Traceback" not in said.stderr and "Retry" not in said.stderr

    reached = {**environment(), "MLFLOW_TRACKING_URI": mlserver.uri}
    processes.run([sys.executable, "-c", SYNC], root, reached).check_returncode()
    client, (run,) = runs_in(mlserver.uri, "toy")
    assert [step for step, _ in history(client, run, "train/loss")] == list(range(1, 51))
    assert {"valid/loss", "valid/bleu"} <= run.data.metrics.keys()
    # a training that finds it finished, as after a kill in its last moment, doubles nothing
    processes.run(command, root, reached).check_returncode()
    client, (again,) = runs_in(mlserver.uri, "toy")
    assert again.info.run_id == run.info.run_id and again.info.status == "FINISHED"
    assert len(history(client, again, "train/loss")) == 50
    # and one whose run is gone describes it as the sync did
    client.delete_run(run.info.run_id)
    processes.run(command, root, reached).check_returncode()
    _, (live,) = runs_in(mlserver.uri, "toy")
    assert live.info.run_id != run.info.run_id
    assert (live.data.params, live.info.run_name) == (run.data.params, run.info.run_name)
    assert len(live.data.params) > 60


def test_a_training_that_is_met_again_keeps_its_end(root):
    """As one whose outputs were removed: it ends at once, finished or stopped."""
    first = Tracker(description())
    log(first, 1, 2)
    first.close("FINISHED")
    _, (before,) = runs_in(store(root), "trial")
    for status in ("FINISHED", "KILLED"):
        again = Tracker(description())
        log(again, 1, 2)
        again.close(status)
    _, (after,) = runs_in(store(root), "trial")
    assert after.info.to_proto() == before.info.to_proto()
    assert after.info.status == "FINISHED"


def test_a_password_in_the_servers_address_is_not_printed(capsys):
    tracker_module._print_line("http://me:secret@host:5000: down")
    assert capsys.readouterr().err == "MLflow: http://***@host:5000: down\n"


@pytest.mark.slow
def test_several_processes_may_create_the_database_at_once(tmp_path):
    """MLflow's own migrations crash if they meet."""
    code = (
        "from bleuprint.tracking import store; "
        "print(store.experiment_id(store.open_client(), 'trial'))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    ended = [(*process.communicate(timeout=180), process.returncode) for process in started]
    assert [status for _, _, status in ended] == [0, 0, 0], ended
    assert len({number for number, _, _ in ended}) == 1
