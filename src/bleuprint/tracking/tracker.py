"""Log a running training to MLflow from a thread; a failure never stops the training.

The thread also imports MLflow (about three seconds). What cannot be logged is kept and tried again;
`bleuprint sync` logs what is lost in the end, but for how busy the machine was, which MLflow's
own monitor logs.
"""

import getpass
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from bleuprint.runtime.code import code_commit
from bleuprint.runtime.errors import masked_line
from bleuprint.runtime.streams import printable
from bleuprint.tracking import runs, store
from bleuprint.tracking.runs import FINISHED, Point, RunDescription

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor
    from mlflow.tracking import MlflowClient

# Seconds that a training waits for MLflow at its end: if it finished; and if it failed, since other
# processes may wait for its error.
_FINISHED_WAIT, _FAILED_WAIT = 60.0, 8.0
# Seconds until the next metrics are sent, and after an attempt that failed.
_EVERY, _PAUSE = 1.0, 10.0


class Tracker:
    """Logs one training; prints one line about what it could not log."""

    def __init__(self, description: RunDescription) -> None:
        self._description = description
        self._unsent: list[Point] = []
        self._status, self._problem, self._done = "", "it did not answer in time", False
        self._connection: tuple[MlflowClient, MlflowRun, dict[str, set[int]]] | None = None
        self._monitor: SystemMetricsMonitor | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        now = int(time.time() * 1000)
        self._unsent += [Point(name, value, now, update) for name, value in metrics.items()]

    def close(self, status: str) -> None:
        """End the run as FINISHED, FAILED or KILLED; waits, with a limit, until it is logged."""
        self._status = status
        self._closed.set()
        self._thread.join(_FINISHED_WAIT if status == FINISHED else _FAILED_WAIT)
        if not self._done:
            lost = f"{len(self._unsent)} metrics and the end of {self._description.run}"
            why = f"({self._problem}): run bleuprint sync after the training"
            _say(f"{lost} are not logged {why}")

    def _serve(self) -> None:
        reported, pause = False, 0.0  # the run is started before the first metrics come
        while not self._done:
            closed = self._closed.wait(pause)
            pause = _EVERY
            try:
                self._send()
            except Exception as error:  # of any kind: the training continues
                self._connection, self._problem, pause = None, store.reason(error), _PAUSE
                if not reported:
                    _say(f"{store.uri()}: {self._problem}: training continues, logging is retried")
                    reported = True
                if closed:
                    return

    def _send(self) -> None:
        """Send all points, and the end if it has come; a finished run keeps its end.

        A resumed training repeats some updates, which are not logged twice.
        """
        from mlflow.entities import Metric

        status, points = self._status, self._unsent[:]
        if self._connection is None:
            self._connection = _connect(self._description)
            self._stop_monitor()  # it ends by itself when the store is away
            self._monitor = _monitor(self._connection[1])
        client, run, logged = self._connection
        new = [Metric(*point) for point in points if point.update not in logged.get(point.name, ())]
        if new:
            client.log_batch(run.info.run_id, metrics=new)
        del self._unsent[: len(points)]
        if status:
            self._stop_monitor()
            if run.info.status != FINISHED:
                client.set_terminated(run.info.run_id, status)
        self._done = bool(status)

    def _stop_monitor(self) -> None:
        if self._monitor:
            self._monitor.finish()
        self._monitor = None


def _connect(description: RunDescription) -> "tuple[MlflowClient, MlflowRun, dict[str, set[int]]]":
    """A client, the run of a training, continued or new, and the updates of its metrics."""
    client = store.client()
    experiment = store.experiment(client, description.experiment)
    run = runs.find(client, experiment, description.tags)
    if run is None:
        tags = runs.commit_tags(code_commit())
        with suppress(Exception):  # some machines have no name for their user
            tags["mlflow.user"] = getpass.getuser()
        run = runs.create(client, experiment, description, tags)
    elif run.info.status != FINISHED:
        client.update_run(run.info.run_id, status="RUNNING")
    runs.describe(client, run, description)
    names = [name for name in run.data.metrics if name.startswith(("train/", "valid/"))]
    return client, run, runs.logged_steps(client, run, names)


def _monitor(run: "MlflowRun") -> "SystemMetricsMonitor | None":
    """The started monitor of this machine, which logs to a run until the run ends; None if off."""
    from mlflow.environment_variables import MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    try:
        if not MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.get():
            return None
        run_id, uri = run.info.run_id, store.uri()
        monitor = SystemMetricsMonitor(run_id, resume_logging=True, tracking_uri=uri)
        monitor.start()
    except Exception as error:  # as of machines that psutil cannot read: all else is logged
        _say(f"no system metrics: {store.reason(error)}")
        return None
    return monitor


def _say(message: str) -> None:
    print(printable(f"MLflow: {masked_line(message)}"), file=sys.stderr, flush=True)
