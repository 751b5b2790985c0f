"""Log a running training to MLflow from a thread; a failure never stops the training.

Metrics go through a queue to a thread, which also imports MLflow (about three seconds). What cannot
be logged is kept and tried again; `bleuprint mlflow-sync` logs what is lost in the end.
"""

import getpass
import queue
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.git import commit
from bleuprint.tracking import runs, store
from bleuprint.tracking.runs import Description

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

# Seconds that a finished training waits for MLflow, and one that failed: other processes may wait
# for its error. A server that is down is tried again for the third number of seconds.
_FINISHED_WAIT, _FAILED_WAIT, _RETRY = 60.0, 8.0, 10.0
# Seconds between attempts, from the first to the last.
_PAUSES = 2.0, 30.0


@dataclass(frozen=True)
class _Entry:
    update: int
    metrics: dict[str, float]
    time: int  # milliseconds


@dataclass(frozen=True)
class _End:
    status: str
    deadline: float


class Tracker:
    """Logs one training; prints one line about what it could not log."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._queue: queue.Queue[_Entry | _End] = queue.Queue()
        self._unsent: list[_Entry] = []
        self._end: _End | None = None
        self._problem, self._done = "it did not answer in time", False
        self._connection: _Connection | None = None
        self._monitors: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        self._queue.put(_Entry(update, metrics, int(time.time() * 1000)))

    def close(self, status: str) -> None:
        """End the run as FINISHED, FAILED or KILLED; waits, with a limit, until it is logged."""
        wait = _FINISHED_WAIT if status == "FINISHED" else _FAILED_WAIT
        retry = min(_RETRY, wait) if store.is_server() else 0
        self._queue.put(_End(status, time.monotonic() + retry))
        self._thread.join(wait)
        if not self._done:
            left = [*self._unsent, *self._queue.queue]
            count = sum(len(entry.metrics) for entry in left if isinstance(entry, _Entry))
            lost = f"{count} metrics of {self._description.cell} and its end"
            _say(f"{lost} are not logged ({self._problem}): run bleuprint mlflow-sync in the end")

    def _serve(self) -> None:
        pause, reported = 0.0, False
        while not self._done:
            self._collect(pause if self._unsent or not self._connection else None)
            try:
                self._send()
                pause = _PAUSES[0]
            except Exception as error:  # whatever it is, the training continues
                self._connection, self._problem = None, store.reason(error)
                if not reported:
                    _say(f"{store.uri()}: {self._problem}: training continues, logging is retried")
                    reported = True
                pause = _PAUSES[0] if self._end else min(max(2 * pause, _PAUSES[0]), _PAUSES[1])
                if self._end and time.monotonic() + pause > self._end.deadline:
                    return

    def _collect(self, pause: float | None) -> None:
        """Take entries for `pause` seconds or until the end; without a pause wait for one entry,
        and take all that are queued.
        """
        until = None if pause is None else time.monotonic() + pause
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                entry = self._queue.get(timeout=left)
            except queue.Empty:
                return
            if isinstance(entry, _End):
                self._end = entry
                return
            self._unsent.append(entry)
            if until is None and self._queue.empty():
                return

    def _send(self) -> None:
        """Send all entries, and the end if it has come."""
        self._connection = self._connection or _Connection(self._description, self._monitors)
        self._connection.send(self._unsent)
        self._unsent = []
        if self._end:
            self._connection.end(self._end.status)
            self._done = True


class _Connection:
    """A client and a run, continued or new. `monitors` of system metrics outlive a connection."""

    def __init__(self, description: Description, monitors: dict[str, Any]) -> None:
        self._client, self._monitors = store.client(), monitors
        self._run = _start(self._client, description)
        names = [name for name in self._run.data.metrics if name.startswith(("train/", "valid/"))]
        self._logged = runs.logged_steps(self._client, self._run, names)
        if (run_id := self._run.info.run_id) not in monitors:
            monitors[run_id] = _monitor(run_id)

    def send(self, entries: list[_Entry]) -> None:
        """Log metrics; a resumed training repeats some updates, which are not logged twice."""
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, entry.time, entry.update)
            for entry in entries
            for name, value in entry.metrics.items()
            if entry.update not in self._logged.get(name, ())
        ]
        runs.log_metrics(self._client, self._run, metrics)

    def end(self, status: str) -> None:
        self._monitors.pop(self._run.info.run_id).finish()
        self._client.set_terminated(self._run.info.run_id, status)


def _start(client: "MlflowClient", description: Description) -> "Run":
    """The run of this fingerprint, continued, or a new one."""
    experiment = store.experiment(client, description.experiment).experiment_id
    if run := runs.find(client, experiment, description.tags()):
        client.update_run(run.info.run_id, status="RUNNING")
        return run
    corpus = None
    with suppress(OSError, UserError):  # its settings name the files' sources
        corpus = load().corpora.get(description.cell.corpus)
    group = description.group()
    content = runs.initial_content(description, group, commit(), corpus)
    with suppress(Exception):  # some machines have no name for their user
        content = replace(content, tags={**content.tags, "mlflow.user": getpass.getuser()})
    run = runs.create(client, experiment, content)
    runs.nest(client, experiment, description, group)
    return run


def _monitor(run_id: str) -> Any:
    import mlflow
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    mlflow.set_tracking_uri(store.uri())
    monitor: Any = SystemMetricsMonitor
    monitor = monitor(run_id, resume_logging=True)
    monitor.start()
    return monitor


def _say(message: str) -> None:
    print(f"MLflow: {message}", file=sys.stderr, flush=True)
