"""Trainings in MLflow: a resumed one continues its run, and no failure of MLflow stops it."""

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
from trainings import STAGES, environment, make_project

RUN = Run("tiny", "toy", 1)
PARAMS = {"train.max_updates": "9", "train.betas": "0.9, 0.98", "parameters": "12"}


def run_description(experiment="trial"):
    """Describe a run in an experiment: system tiny, corpus toy, seed 1, fingerprint f1."""
    return RunDescription(experiment, RUN, "f1", PARAMS)


@pytest.fixture
def root(tmp_path, monkeypatch, mldatabase):
    """Return a project with an empty MLflow database; it is the working folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    shutil.copy(mldatabase, tmp_path)
    return tmp_path


def store_uri(root):
    """Return the address of a project's database."""
    return f"sqlite:///{root / 'mlflow.db'}"


def log_losses(tracker, *updates):
    """Log a training loss for each of these updates: 10 / update."""
    for update in updates:
        tracker.log(update, {"train/loss": 10.0 / update})


def losses(*updates):
    """Return the points that MLflow should have after `log_losses`."""
    return [(update, 10.0 / update) for update in updates]


def test_a_resumed_training_continues_its_run_without_repeated_points(root):
    """The second process resumes from the checkpoint of update 1, and repeats updates 2 and 3."""
    first = Tracker(run_description())
    log_losses(first, 1, 2, 3)
    first.close("KILLED")

    second = Tracker(run_description())
    log_losses(second, 2, 3, 4)
    second.close("FINISHED")

    client, (run,) = runs_in(store_uri(root), "trial")
    assert history(client, run, "train/loss") == losses(1, 2, 3, 4)
    assert run.info.status == "FINISHED"


def test_a_run_has_the_parameters_and_tags_of_its_training(root):
    run = Run("tiny", "toy", seed=1)
    params = {"train.max_updates": "9", "train.betas": "0.9, 0.98", "parameters": "12"}

    tracker = Tracker(RunDescription("trial", run, "f1", params))
    tracker.close("FINISHED")

    _, (logged_run,) = runs_in(store_uri(root), "trial")
    assert logged_run.data.params == params
    assert logged_run.data.tags["system"] == "tiny"
    assert logged_run.data.tags["corpus"] == "toy"
    assert logged_run.data.tags["seed"] == "1"
    assert logged_run.data.tags[FINGERPRINT] == "f1"


def lines_of_failing_tracker(capsys):
    """Log two metrics and the end of RUN, which must fail; return the lines that are printed."""
    tracker = Tracker(run_description())
    log_losses(tracker, 1, 2)
    tracker.close("FINISHED")
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("MLflow: ") for line in lines)
    assert lines[-1].startswith(f"MLflow: 2 metrics and the end of {RUN} are not logged (")
    assert lines[-1].endswith("After the training, run: bleuprint sync")
    return lines


@pytest.mark.usefixtures("root")
def test_a_store_of_an_unknown_kind_is_reported_and_does_not_stop_a_training(monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "no-such-store://host")

    lines_of_failing_tracker(capsys)


def test_a_database_that_cannot_be_opened_is_reported_and_does_not_stop_a_training(root, capsys):
    """A folder has the name of the database. Logging prints a message instead of raising."""
    (root / "mlflow.db").unlink()
    (root / "mlflow.db").mkdir()

    lines = lines_of_failing_tracker(capsys)

    assert "(unable to open database file)" in lines[-1]


@pytest.mark.usefixtures("root")
def test_a_server_that_never_answers_does_not_delay_a_training(monkeypatch, capsys):
    """The server accepts connections and stays silent. A thread logs, and waits for its answer.

    A training must not wait for the thread: not at any of 1,000 updates, and 0.5 s at its end.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        port = silent_server.getsockname()[1]
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
        # MLflow waits until this test closes the connection, however slow the machine is.
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "3600")
        monkeypatch.setattr(tracker_module, "_FAILED_WAIT_SECONDS", 0.5)

        tracker = Tracker(run_description())
        log_losses(tracker, *range(1, 1001))
        tracker.close("KILLED")

        # The thread still waits for the first answer, so none of these calls has waited for it.
        assert tracker._thread.is_alive()
    # The connection is closed, so the thread ends, and prints nothing into the next tests.
    tracker._thread.join(60)
    assert not tracker._thread.is_alive()
    assert f"1000 metrics and the end of {RUN} are not logged" in capsys.readouterr().err


def wait_for_losses(uri, experiment, expected_losses):
    """Wait up to two minutes until the only run of an experiment has these points.

    Returns:
        A client of the store, and the run.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        client, runs = runs_in(uri, experiment)
        if runs and history(client, runs[0], "train/loss") == expected_losses:
            return client, runs[0]
        time.sleep(0.2)
    raise AssertionError(f"{experiment} did not get {expected_losses} within two minutes")


def wait_for_sample(client, run, after_milliseconds):
    """Wait up to four minutes until the machine was sampled after a time; return its last time."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        points = client.get_metric_history(run.info.run_id, "system/disk_usage_percentage")
        if points and points[-1].timestamp > after_milliseconds:
            return points[-1].timestamp
        time.sleep(0.2)
    raise AssertionError("the machine was not sampled within four minutes")


@pytest.mark.usefixtures("root")
def test_a_server_that_was_away_gets_what_was_logged_meanwhile(mlserver, monkeypatch, capsys):
    """The server is killed after update 2 and started again after update 4.

    A training logs on without it, prints one message, and sends all points when it is back.
    """
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    tracker = Tracker(run_description("comes back"))
    log_losses(tracker, 1, 2)
    client, run = wait_for_losses(mlserver.uri, "comes back", losses(1, 2))

    mlserver.kill()
    log_losses(tracker, 3, 4)  # This returns, although nothing can be logged.
    mlserver.start()
    mlserver.wait()
    return_milliseconds = 1000 * time.time()
    log_losses(tracker, 5)
    last_sample = wait_for_sample(client, run, after_milliseconds=return_milliseconds)
    tracker.close("FINISHED")

    # MLflow samples the load of the machine again, too.
    assert last_sample > return_milliseconds
    client, (run,) = runs_in(mlserver.uri, "comes back")
    assert history(client, run, "train/loss") == losses(1, 2, 3, 4, 5)
    assert run.info.status == "FINISHED"
    messages = capsys.readouterr().err
    assert messages.count("MLflow:") == 1
    assert "Training continues" in messages


TRAIN_COMMAND = [sys.executable, str(STAGES / "train.py"), "micro", "toy", "1"]


@pytest.fixture(scope="module")
def unlogged_project(tmp_path_factory):
    """Train 50 updates while no server can be reached; return the project and the messages."""
    folder = make_project(tmp_path_factory.mktemp("unlogged") / "project", max_updates=50)
    unreachable = environment() | {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{free_port()}"}
    process = processes.run_text(TRAIN_COMMAND, folder, unreachable)
    process.check_returncode()
    return folder, process.stderr


def test_a_training_without_a_server_ends_with_a_message_that_names_the_command_sync(
    unlogged_project,
):
    """The training finishes and its results are written, although MLflow's server is away."""
    folder, messages = unlogged_project

    assert (folder / "results" / "micro" / "toy" / "1" / "training.json").exists()
    assert "run: bleuprint sync" in messages
    assert "Traceback" not in messages
    assert "Retry" not in messages


def test_a_sync_logs_a_training_and_later_trainings_find_its_run(unlogged_project, mlserver):
    """A training of 50 updates ran without a server; then `bleuprint sync` logs it.

    The training is started twice more: with its run in MLflow, and after the run was deleted.
    """
    folder, _ = unlogged_project
    reachable = environment() | {"MLFLOW_TRACKING_URI": mlserver.uri}

    processes.run([sys.executable, "-c", SYNC], folder, reachable).check_returncode()

    client, (synced_run,) = runs_in(mlserver.uri, "toy")
    steps = [step for step, _ in history(client, synced_run, "train/loss")]
    assert steps == list(range(1, 51))
    assert "valid/loss" in synced_run.data.metrics
    assert "valid/bleu" in synced_run.data.metrics

    # A training that finds itself finished, as after a kill in its last moment, repeats no points.
    processes.run(TRAIN_COMMAND, folder, reachable).check_returncode()

    client, (same_run,) = runs_in(mlserver.uri, "toy")
    assert same_run.info.run_id == synced_run.info.run_id
    assert same_run.info.status == "FINISHED"
    assert len(history(client, same_run, "train/loss")) == 50

    # A training whose run was deleted creates one with the same description as the sync.
    client.delete_run(synced_run.info.run_id)
    processes.run(TRAIN_COMMAND, folder, reachable).check_returncode()

    _, (new_run,) = runs_in(mlserver.uri, "toy")
    assert new_run.info.run_id != synced_run.info.run_id
    assert new_run.data.params == synced_run.data.params
    assert new_run.info.run_name == synced_run.info.run_name
    assert len(new_run.data.params) > 60


@pytest.mark.parametrize("status", ["FINISHED", "KILLED"])
def test_a_finished_training_that_is_started_again_does_not_change_its_run(root, status):
    """Its outputs have been removed, but not its checkpoints, so it is started and ends at once.

    It logs updates 1 and 2 again and ends, finished or killed.
    """
    first = Tracker(run_description())
    log_losses(first, 1, 2)
    first.close("FINISHED")
    _, (run_before,) = runs_in(store_uri(root), "trial")

    second = Tracker(run_description())
    log_losses(second, 1, 2)
    second.close(status)

    _, (run_after,) = runs_in(store_uri(root), "trial")
    assert run_after.info.to_proto() == run_before.info.to_proto()
    assert run_after.info.status == "FINISHED"


def test_a_password_in_the_address_of_the_server_is_not_printed(capsys):
    tracker_module._print_line("http://me:secret@host:5000: down")

    assert capsys.readouterr().err == "MLflow: http://***@host:5000: down\n"


@pytest.mark.slow
def test_several_processes_may_create_the_database_at_once(tmp_path):
    """MLflow's own code fails if two processes make its tables at the same time.

    Here three processes open a new database, and create the same experiment in it.
    """
    program = (
        "from bleuprint.tracking import store; "
        "print(store.experiment_id(store.open_client(), 'trial'))"
    )
    running = []
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)

    experiment_ids = set()
    for process in running:
        output, messages = process.communicate(timeout=180)
        assert process.returncode == 0, messages
        experiment_ids.add(output)
    assert len(experiment_ids) == 1
