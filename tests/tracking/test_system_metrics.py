"""How busy the machine is, sampled by MLflow's own monitor into the run of a training."""

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
from trainings import job_in, project, train_here

MEMORY = "system/system_memory_usage_percentage"


@pytest.fixture
def uri(tmp_path, monkeypatch, mldatabase):
    """The address of a database; the machine is sampled often enough for a test.

    By a server: test_a_server_that_goes_and_comes_back_gets_all.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    shutil.copy(mldatabase, tmp_path)
    found = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", found)
    return found


def wait_for(uri, experiment, metric, more_than=0):
    """Wait until a metric was logged more often than this; returns its run, and its points."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        client, runs = runs_in(uri, experiment)
        if runs and len(points := history(client, runs[0], metric)) > more_than:
            return runs[0], points
        time.sleep(0.1)
    raise AssertionError(f"no more than {more_than} of {metric} within a minute")


def test_a_training_and_its_machine_are_in_one_run(tmp_path, monkeypatch, uri):
    class Log(TrainingLog):
        def updated(self, state, stats):
            super().updated(state, stats)
            if state.update == 5:  # a training that lasts until there are samples
                wait_for(uri, "busy", MEMORY, more_than=1)

    job = job_in(project(tmp_path / "project", max_updates=9), monkeypatch)
    settings = dataclasses.replace(load_settings(), experiment="busy")
    alone = Group(0, 1, torch.device("cpu"))
    log = Log(settings, job, Fingerprints.from_job(job), alone, tmp_path)
    _, state, _ = train_here(job, tmp_path / "work", log)
    client, (run,) = runs_in(uri, "busy")
    assert run.info.status == "FINISHED"
    parts = {name.split("/")[1].split("_")[0] for name in run.data.metrics if "system/" in name}
    assert {"cpu", "system", "disk", "network"} <= parts
    assert run.data.metrics["system/disk_usage_percentage"] == pytest.approx(
        psutil.disk_usage("/").percent, abs=2
    )
    waiting = history(client, run, "train/waiting")
    assert [update for update, _ in waiting] == [point["update"] for point in state.curve]
    assert all(0 <= share <= 1 for _, share in waiting)


def description(trial):
    return RunDescription(trial, Run("tiny", "toy", 1), "f1", {})


def test_a_resumed_training_goes_on_with_the_samples(uri):
    """One that was finished already adds none."""
    steps = []
    for status, waits in (("KILLED", True), ("FINISHED", True), ("FINISHED", False)):
        tracker = Tracker(description("resumed"))
        if waits:
            wait_for(uri, "resumed", MEMORY, len(steps))
        tracker.close(status)
        before, (run, points) = steps, wait_for(uri, "resumed", MEMORY)
        steps = [step for step, _ in points]
        assert steps == list(range(len(steps))) and run.info.status == status
        assert waits or steps == before


def test_the_variable_of_mlflow_turns_it_off(monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    tracker = Tracker(description("off"))
    tracker.log(1, {"train/loss": 2.0})
    wait_for(uri, "off", "train/loss")
    assert "SystemMetricsMonitor" not in {thread.name for thread in threading.enumerate()}
    tracker.close("FINISHED")


def test_a_machine_that_cannot_be_read_is_said_and_all_else_is_logged(monkeypatch, capsys, uri):
    def denied():
        raise PermissionError(13, "Permission denied", "/proc/net/dev")

    monkeypatch.setattr(psutil, "net_io_counters", denied)
    tracker = Tracker(description("unreadable"))
    tracker.log(1, {"train/loss": 2.0})
    tracker.close("FINISHED")
    client, (run,) = runs_in(uri, "unreadable")
    assert (history(client, run, "train/loss"), run.info.status) == ([(1, 2.0)], "FINISHED")
    why = "/proc/net/dev: Permission denied"
    assert capsys.readouterr().err == f"MLflow: no system metrics: {why}\n"
