"""Log a running training to MLflow from a thread, so that a failure never stops the training.

`Tracker` is used by training_log.py. Its thread also imports MLflow, which takes about three
seconds. Metrics that cannot be logged are kept and sent again. `bleuprint sync` later logs what is
lost in the end, except how busy the machine was, which MLflow's own monitor logs.
"""

import getpass
import sys
import threading
import time
from collections.abc import Sequence
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
        """Start a thread that creates or continues the MLflow run of a training.

        Args:
            description: The training, with the tags that identify its MLflow run.
        """
        self._description = description
        self._unsent_points: list[Point] = []
        # The status with which the training has ended; empty while it runs.
        self._end_status = ""
        # Why nothing is logged, for a message. If no attempt has failed, this is the reason.
        self._problem = "MLflow did not answer in time"
        # Set when the training ends. The thread then sends the rest.
        self._has_ended = threading.Event()
        # Whether MLflow has received the end of the training.
        self._is_end_logged = False
        self._connection: _Connection | None = None
        self._monitor: SystemMetricsMonitor | None = None
        self._thread = threading.Thread(target=self._send_until_end, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        """Add metrics to the list of points that the other thread sends to MLflow.

        This returns at once, so that the trainer does not wait for MLflow.

        Args:
            update: The number of updates that the training has made.
            metrics: The values by name, such as `train/loss`.
        """
        now_milliseconds = int(time.time() * 1000)
        for name, value in metrics.items():
            self._unsent_points.append(Point(name, value, now_milliseconds, update))

    def close(self, status: str) -> None:
        """End the MLflow run, and wait for a limited time until everything is logged.

        If MLflow does not answer in this time, a line says what is not logged.

        Args:
            status: How the training has ended: FINISHED, FAILED or KILLED.
        """
        self._end_status = status
        self._has_ended.set()
        wait_seconds = _FINISHED_WAIT_SECONDS if status == FINISHED else _FAILED_WAIT_SECONDS
        self._thread.join(wait_seconds)
        if not self._is_end_logged:
            _print_line(
                f"{len(self._unsent_points)} metrics and the end of {self._description.run} are "
                f"not logged ({self._problem}). After the training, run: bleuprint sync"
            )

    def _send_until_end(self) -> None:
        """Send points to MLflow every second until the end of the training is logged.

        The thread of this object runs this. If MLflow fails, the thread prints one line, keeps the
        points, and tries again after a longer pause, as long as the training runs.
        """
        has_printed_failure = False
        # The first attempt is without a pause, so that the MLflow run starts with the training.
        pause_seconds = 0.0
        while not self._is_end_logged:
            # The end of the training cuts the pause short.
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
                        f"{store.store_uri()}: {self._problem}. Training continues, and logging is "
                        "retried"
                    )
                    has_printed_failure = True
                if has_ended:
                    return

    def _send(self) -> None:
        """Send all waiting points to MLflow and, if the training has ended, its final status."""
        # Read before the points: once the status is set, the trainer adds no more points. So if it
        # is set here, the copy below contains all points.
        end_status = self._end_status
        # A copy, since the trainer's thread may append points meanwhile.
        points = self._unsent_points[:]
        if self._connection is None:
            self._connection = _connect(self._description)
            # If an earlier connection has failed, its monitor may still run.
            self._stop_monitor()
            self._monitor = _start_monitor(self._connection.run)
        _log_new_points(self._connection, points)
        # Removed only after they were logged, so that the points are kept if MLflow fails.
        del self._unsent_points[: len(points)]
        if end_status:
            self._stop_monitor()
            run = self._connection.run
            # If the run was finished by an earlier process, it keeps this status.
            if run.info.status != FINISHED:
                self._connection.client.set_terminated(run.info.run_id, end_status)
            self._is_end_logged = True

    def _stop_monitor(self) -> None:
        """Stop MLflow's monitor, which logs how busy the machine is, if it runs."""
        if self._monitor:
            self._monitor.finish()
        self._monitor = None


def _log_new_points(connection: _Connection, points: Sequence[Point]) -> None:
    """Log metrics to an MLflow run, except those that it has already.

    A training that is resumed from a checkpoint repeats the updates after the checkpoint. Their
    metrics would be logged twice.

    Args:
        connection: The run, with the updates at which it has each metric.
        points: The values of metrics, each at one update.
    """
    from mlflow.entities import Metric

    new_metrics = []
    for point in points:
        if point.update not in connection.logged_updates.get(point.name, set()):
            # The fields of a point are the arguments of Metric, in the same order.
            new_metrics.append(Metric(*point))
    if new_metrics:
        connection.client.log_batch(connection.run.info.run_id, metrics=new_metrics)


def _connect(description: RunDescription) -> _Connection:
    """Connect to MLflow, and create the run of a training, or continue the run that exists.

    Args:
        description: The training, with the tags by which its run is found.
    """
    client = store.open_client()
    experiment_id = store.experiment_id(client, description.experiment)
    run = runs.find_run(client, experiment_id, description.tags)
    if run is None:
        tags = runs.commit_tags(code_commit())
        # In a container, the user may have no name. Then the run has no such tag.
        with suppress(Exception):
            tags["mlflow.user"] = getpass.getuser()
        run = runs.create_run(client, experiment_id, description, tags)
    elif run.info.status != FINISHED:
        # The training was interrupted, and continues now.
        client.update_run(run.info.run_id, status="RUNNING")
    runs.describe_run(client, run, description)
    # The points that an interrupted training has logged must not be logged again.
    curve_names = [name for name in run.data.metrics if name.startswith(("train/", "valid/"))]
    return _Connection(client, run, runs.logged_updates(client, run, curve_names))


def _start_monitor(run: "MlflowRun") -> "SystemMetricsMonitor | None":
    """Start MLflow's monitor, a thread that logs how busy the CPUs and GPUs of this machine are.

    Args:
        run: The MLflow run to which the monitor logs.

    Returns:
        The monitor; None if the user has turned it off. If it cannot be started, this is printed,
        and the result is None, too.
    """
    from mlflow.environment_variables import MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    try:
        if not MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.get():
            return None
        monitor = SystemMetricsMonitor(
            run.info.run_id,
            resume_logging=True,  # The steps continue those of an interrupted training.
            tracking_uri=store.store_uri(),
        )
        monitor.start()
    except Exception as error:  # Whatever fails here, the training and its metrics are logged.
        _print_line(f"system metrics are not logged: {store.summarize_error(error)}")
        return None
    return monitor


def _print_line(message: str) -> None:
    """Print a message about MLflow as one line, without passwords."""
    print(printable(f"MLflow: {masked_line(message)}"), file=sys.stderr, flush=True)
