"""Log a running training to MLflow from a thread, so that a failure never stops the training.

`Tracker` is used by training_log.py. Its thread also imports MLflow, which takes about three
seconds. Metrics that cannot be logged are kept and sent again. `bleuprint sync` later logs what is
lost in the end, except how busy the machine was, which MLflow's own monitor logs.
"""

import getpass
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
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

# How long a training waits for MLflow at its end. After an error, other processes may wait for the
# error of this one, so that it waits less.
_FINISHED_WAIT_SECONDS = 60.0
_FAILED_WAIT_SECONDS = 8.0
# The time between two batches of metrics, and until the next attempt after a failure.
_SEND_INTERVAL_SECONDS = 1.0
_RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class _Connection:
    """The MLflow run of the training, while MLflow can be reached.

    Attributes:
        client: MLflow's client.
        run: The run.
        logged_updates: The updates at which each metric was already logged when the connection was
            made, by the metric's name. A resumed training repeats some updates.
    """

    client: "MlflowClient"
    run: "MlflowRun"
    logged_updates: dict[str, set[int]]


class Tracker:
    """Logs one training to MLflow, and prints one line about what could not be logged.

    The trainer's thread adds points to a list, and a thread of this class sends them.
    """

    def __init__(self, description: RunDescription) -> None:
        """Start the thread, which creates or continues the MLflow run of the training.

        Args:
            description: The training.
        """
        self._description = description
        self._unsent_points: list[Point] = []
        # The status with which the training has ended; empty while it runs.
        self._end_status = ""
        # Why the last attempt failed, or why nothing is known of it.
        self._problem = "it did not answer in time"
        # Whether the end of the training was logged.
        self._is_end_logged = False
        self._connection: _Connection | None = None
        self._monitor: SystemMetricsMonitor | None = None
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._send_until_end, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        """Log metrics of an update. They are sent later, so that the trainer does not wait.

        Args:
            update: The number of updates of the training.
            metrics: The values by name.
        """
        now_milliseconds = int(time.time() * 1000)
        for name, value in metrics.items():
            self._unsent_points.append(Point(name, value, now_milliseconds, update))

    def close(self, status: str) -> None:
        """End the MLflow run, and wait until it is logged, but not for ever.

        Args:
            status: FINISHED, FAILED or KILLED.
        """
        self._end_status = status
        self._has_ended.set()
        wait_seconds = _FINISHED_WAIT_SECONDS if status == FINISHED else _FAILED_WAIT_SECONDS
        self._thread.join(wait_seconds)
        if not self._is_end_logged:
            _print_line(
                f"{len(self._unsent_points)} metrics and the end of {self._description.run} are "
                f"not logged ({self._problem}): run bleuprint sync after the training"
            )

    def _send_until_end(self) -> None:
        """Send points at regular intervals until the end is logged; runs in the thread.

        The first failure is printed. After the end of the training, a failure is not tried again.
        """
        has_printed_failure = False
        # At first without a pause, so that the run starts before the first metrics come.
        pause_seconds = 0.0
        while not self._is_end_logged:
            has_ended = self._has_ended.wait(pause_seconds)
            pause_seconds = _SEND_INTERVAL_SECONDS
            try:
                self._send()
            except Exception as error:  # The training continues, whatever fails.
                self._connection = None
                self._problem = store.summarize_error(error)
                pause_seconds = _RETRY_SECONDS
                if not has_printed_failure:
                    _print_line(
                        f"{store.store_uri()}: {self._problem}: training continues, logging is "
                        "retried"
                    )
                    has_printed_failure = True
                if has_ended:
                    return

    def _send(self) -> None:
        """Send all points, and the end of the training if it has ended.

        A run that is already finished keeps its status. Points that are already logged are not
        logged twice: a resumed training repeats some updates.
        """
        from mlflow.entities import Metric

        # The status is read first: all points of a training were added before its end.
        end_status = self._end_status
        # The trainer's thread may append points meanwhile.
        points = self._unsent_points[:]
        if self._connection is None:
            self._connection = _connect(self._description)
            # The monitor of the connection before ends by itself while MLflow cannot be reached.
            self._stop_monitor()
            self._monitor = _start_monitor(self._connection.run)
        connection = self._connection
        run_id = connection.run.info.run_id
        new_metrics = []
        for point in points:
            if point.update not in connection.logged_updates.get(point.name, set()):
                new_metrics.append(Metric(*point))
        if new_metrics:
            connection.client.log_batch(run_id, metrics=new_metrics)
        del self._unsent_points[: len(points)]
        if end_status:
            self._stop_monitor()
            if connection.run.info.status != FINISHED:
                connection.client.set_terminated(run_id, end_status)
            self._is_end_logged = True

    def _stop_monitor(self) -> None:
        """Stop the monitor of the machine, if one runs."""
        if self._monitor:
            self._monitor.finish()
        self._monitor = None


def _connect(description: RunDescription) -> _Connection:
    """Connect to MLflow, and create the run of a training or continue it."""
    client = store.open_client()
    experiment_id = store.experiment_id(client, description.experiment)
    run = runs.find_run(client, experiment_id, description.tags)
    if run is None:
        tags = runs.commit_tags(code_commit())
        # Some machines have no name for their user.
        with suppress(Exception):
            tags["mlflow.user"] = getpass.getuser()
        run = runs.create_run(client, experiment_id, description, tags)
    elif run.info.status != FINISHED:
        client.update_run(run.info.run_id, status="RUNNING")
    runs.describe_run(client, run, description)
    curve_names = [name for name in run.data.metrics if name.startswith(("train/", "valid/"))]
    return _Connection(client, run, runs.logged_updates(client, run, curve_names))


def _start_monitor(run: "MlflowRun") -> "SystemMetricsMonitor | None":
    """Start MLflow's monitor of this machine, which logs to a run how busy the machine is.

    Returns:
        The monitor; None if the user has turned it off, or if it cannot read this machine.
    """
    from mlflow.environment_variables import MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    try:
        if not MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.get():
            return None
        monitor = SystemMetricsMonitor(
            run.info.run_id, resume_logging=True, tracking_uri=store.store_uri()
        )
        monitor.start()
    except Exception as error:  # Everything else is still logged, whatever fails here.
        _print_line(f"no system metrics: {store.summarize_error(error)}")
        return None
    return monitor


def _print_line(message: str) -> None:
    """Print a message about MLflow as one line, without passwords."""
    print(printable(f"MLflow: {masked_line(message)}"), file=sys.stderr, flush=True)
