"""How busy the machine is during a training, sampled by MLflow's own monitor into its run."""

import dataclasses
import shutil
import threading
import time

import psutil
import pytest
import torch

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.runtime.distributed.group import Group
from bleuprint.tracking.runs import RunDescription
from bleuprint.tracking.tracker import Tracker
from bleuprint.tracking.training_log import TrainingLog
from bleuprint.training.fingerprints import Fingerprints
from mlservers import history, runs_in
from trainings import job_in, make_project, train_here

MEMORY_METRIC = "system/system_memory_usage_percentage"


@pytest.fixture
def uri(tmp_path, monkeypatch, mldatabase):
    """Return the address of an MLflow database; the machine is sampled often enough for a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    shutil.copy(mldatabase, tmp_path)
    address = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    return address


def wait_for_points(uri, experiment, metric, more_than=0):
    """Wait until the only run of an experiment has more points of a metric than this.

    Returns:
        The run, and the step and value of each point.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        client, runs = runs_in(uri, experiment)
        if runs:
            points = history(client, runs[0], metric)
            if len(points) > more_than:
                return runs[0], points
        time.sleep(0.1)
    raise AssertionError(f"no more than {more_than} points of {metric} within a minute")


def run_description(experiment):
    """Describe a run of the system tiny on the corpus toy."""
    return RunDescription(experiment, Run("tiny", "toy", 1), "f1", {})


@pytest.fixture
def logged_training(tmp_path, monkeypatch, uri):
    """Train until MLflow has samples of the machine.

    Returns:
        A client of the database, the training's run in MLflow, and the state of the training.
    """

    class WaitingLog(TrainingLog):
        """Waits at update 5 for two samples."""

        def updated(self, state, stats):
            """Log an update."""
            super().updated(state, stats)
            if state.update == 5:
                wait_for_points(uri, "busy", MEMORY_METRIC, more_than=1)

    job = job_in(make_project(tmp_path / "project", max_updates=9), monkeypatch)
    settings = dataclasses.replace(load_settings(), experiment="busy")
    one_process = Group(0, 1, torch.device("cpu"))
    log = WaitingLog(settings, job, Fingerprints.from_job(job), one_process, tmp_path)
    _, state, _ = train_here(job, tmp_path / "work", log)
    client, (run,) = runs_in(uri, "busy")
    return client, run, state


def test_a_training_and_samples_of_its_machine_are_in_one_run(logged_training):
    """MLflow samples CPU, memory, disk and network; the training logs its waiting times."""
    client, run, state = logged_training

    assert run.info.status == "FINISHED"
    # Samples have names such as system/cpu_utilization_percentage.
    sampled_parts = set()
    for metric in run.data.metrics:
        if metric.startswith("system/"):
            sampled_parts.add(metric.removeprefix("system/").split("_")[0])
    assert {"cpu", "system", "disk", "network"} <= sampled_parts
    disk_usage = run.data.metrics["system/disk_usage_percentage"]
    assert disk_usage == pytest.approx(psutil.disk_usage("/").percent, abs=2)
    # The training itself logs the share of the time in which it waited for data.
    waiting_points = history(client, run, "train/waiting")
    assert [update for update, _ in waiting_points] == [point["update"] for point in state.curve]
    for _, waiting_share in waiting_points:
        assert 0 <= waiting_share <= 1


def test_a_resumed_training_continues_the_samples(uri):
    """Samples are numbered from 0. The resumed training goes on with the next number.

    Numbers from 0 again would mix the samples of both processes in MLflow's chart.
    """
    killed = Tracker(run_description("resumed"))
    wait_for_points(uri, "resumed", MEMORY_METRIC)
    killed.close("KILLED")
    run, points_of_killed = wait_for_points(uri, "resumed", MEMORY_METRIC)
    assert run.info.status == "KILLED"
    assert [step for step, _ in points_of_killed] == list(range(len(points_of_killed)))

    resumed = Tracker(run_description("resumed"))
    wait_for_points(uri, "resumed", MEMORY_METRIC, more_than=len(points_of_killed))
    resumed.close("FINISHED")

    run, points = wait_for_points(uri, "resumed", MEMORY_METRIC)
    assert run.info.status == "FINISHED"
    assert [step for step, _ in points] == list(range(len(points)))


def test_a_training_that_was_finished_already_adds_no_samples(uri):
    """A second process finds the run finished, logs nothing and ends."""
    first = Tracker(run_description("finished"))
    wait_for_points(uri, "finished", MEMORY_METRIC)
    first.close("FINISHED")
    _, points_before = wait_for_points(uri, "finished", MEMORY_METRIC)

    second = Tracker(run_description("finished"))
    second.close("FINISHED")

    run, points = wait_for_points(uri, "finished", MEMORY_METRIC)
    steps_before = [step for step, _ in points_before]
    steps = [step for step, _ in points]
    assert steps == steps_before == list(range(len(points)))
    assert run.info.status == "FINISHED"


def test_an_environment_variable_of_mlflow_turns_the_samples_off(monkeypatch, uri):
    """MLflow samples the machine in a thread called SystemMetricsMonitor."""
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")

    tracker = Tracker(run_description("off"))
    tracker.log(1, {"train/loss": 2.0})
    wait_for_points(uri, "off", "train/loss")

    thread_names = [thread.name for thread in threading.enumerate()]
    tracker.close("FINISHED")
    assert "SystemMetricsMonitor" not in thread_names


def test_a_machine_that_cannot_be_sampled_is_reported_and_the_training_is_logged(
    monkeypatch, capsys, uri
):
    """In some containers, programs may not read how busy the network is."""

    def refuse_access():
        raise PermissionError(13, "Permission denied", "/proc/net/dev")

    monkeypatch.setattr(psutil, "net_io_counters", refuse_access)

    tracker = Tracker(run_description("unreadable"))
    tracker.log(1, {"train/loss": 2.0})
    tracker.close("FINISHED")

    client, (run,) = runs_in(uri, "unreadable")
    assert history(client, run, "train/loss") == [(1, 2.0)]
    assert run.info.status == "FINISHED"
    assert capsys.readouterr().err == (
        "MLflow: system metrics are not logged: /proc/net/dev: Permission denied\n"
    )
