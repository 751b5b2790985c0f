"""MLflow: a view of the trainings, never the truth, and never a reason for one to stop.

Metrics go through a queue to a thread, which also imports MLflow (about three seconds): the
training waits for neither. What cannot be logged is kept and tried again; `bleuprint mlflow-sync`
logs what was lost.
"""

import getpass
import queue
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bleuprint.config.experiment import Corpus, load
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.git import commit
from bleuprint.tracking import runs, store
from bleuprint.tracking.runs import Description as Description

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

# Seconds that a training which is done waits for MLflow; one that failed has no time to lose, since
# other processes may wait for its error. A server that is away is tried again for _AGAIN of them.
_PATIENCE, _SHORT_PATIENCE, _AGAIN = 60.0, 8.0, 10.0
# Seconds between attempts at a server that is away, from the first to the last.
_PAUSES = 2.0, 30.0


@dataclass(frozen=True)
class _Measured:
    update: int
    metrics: dict[str, float]
    when: int


@dataclass(frozen=True)
class _End:
    status: str
    deadline: float


class Tracker:
    """Logs one training to MLflow from a thread of its own; tells what it could not log."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._queue: queue.Queue[_Measured | _End] = queue.Queue()
        self._unsent: list[_Measured] = []
        self._end: _End | None = None
        self._problem, self._done = "it did not answer in time", False
        self._line: _Line | None = None
        self._monitors: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        self._queue.put(_Measured(update, metrics, int(time.time() * 1000)))

    def close(self, status: str) -> None:
        """End the run as FINISHED, FAILED or KILLED, and wait (not for ever) until it is told."""
        patience = _PATIENCE if status == "FINISHED" else _SHORT_PATIENCE
        again = min(_AGAIN, patience) if store.remote() else 0
        self._queue.put(_End(status, time.monotonic() + again))
        self._thread.join(patience)
        if not self._done:
            left = [*self._unsent, *self._queue.queue]
            count = sum(len(one.metrics) for one in left if isinstance(one, _Measured))
            what = f"{count} metrics of {self._description.cell} and its end"
            _say(f"{what} are not logged ({self._problem}): run bleuprint mlflow-sync in the end")

    def _serve(self) -> None:
        pause, tried = 0.0, False
        while not self._done:
            self._take(pause if self._unsent or not self._line else None)
            try:
                self._send()
                pause = _PAUSES[0]
            except Exception as error:  # whatever happens to the view, training goes on
                self._line, self._problem = None, store.reason(error)
                if not tried:
                    where = store.uri()
                    _say(f"{where}: {self._problem}: training goes on, and this is tried again")
                pause, tried = min(max(2 * pause, _PAUSES[0]), _PAUSES[1]), True
                if self._end:
                    pause = _PAUSES[0]
                    if time.monotonic() + pause > self._end.deadline:
                        return

    def _take(self, pause: float | None) -> None:
        """Take all that has queued up, or wait for it; with a `pause` so long, or until the end."""
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
        """Send all that is unsent in one go, and the end if it has come."""
        self._line = self._line or _Line(self._description, self._monitors)
        self._line.send(self._unsent)
        self._unsent = []
        if self._end:
            self._line.end(self._end.status)
            self._done = True


class _Line:
    """The connection to one run, continued or new."""

    def __init__(self, description: Description, monitors: dict[str, Any]) -> None:
        """`monitors` holds one a run, however often its line breaks."""
        self._monitors = monitors
        self._client = store.client()
        self._run = _start(self._client, description)
        names = [name for name in self._run.data.metrics if name.startswith(("train/", "valid/"))]
        self._logged = runs.steps_of(self._client, self._run, names)
        identity = self._run.info.run_id
        if identity not in monitors:
            monitors[identity] = _monitor(identity)

    def send(self, entries: list[_Measured]) -> None:
        """A training that is resumed repeats some updates: what is logged is passed over."""
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, entry.when, entry.update)
            for entry in entries
            for name, value in entry.metrics.items()
            if entry.update not in self._logged.get(name, ())
        ]
        for start in range(0, len(metrics), 1000):  # MLflow takes at most 1000 at a time
            self._client.log_batch(self._run.info.run_id, metrics=metrics[start : start + 1000])

    def end(self, status: str) -> None:
        self._monitors.pop(self._run.info.run_id).finish()
        self._client.set_terminated(self._run.info.run_id, status)


def _start(client: "MlflowClient", description: Description) -> "Run":
    """The run of this fingerprint, continued, or a new one."""
    identity = store.experiment(client, description.experiment).experiment_id
    run = runs.find(client, identity, description.cell, description.fingerprint)
    if run:
        client.update_run(run.info.run_id, status="RUNNING")
        return run
    group = description.group()
    content = runs.beginning(description, group, commit(), _corpus(description))
    with suppress(Exception):  # some machines know no name of their user
        content = replace(content, tags={**content.tags, "mlflow.user": getpass.getuser()})
    run = runs.create(client, identity, content)
    runs.nest(client, identity, description, group)
    return run


def _corpus(description: Description) -> Corpus | None:
    """The corpus's settings, which know where its files come from."""
    try:
        return load().corpora.get(description.cell.corpus)
    except (OSError, UserError):
        return None


def _monitor(run_id: str) -> Any:
    import mlflow
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    mlflow.set_tracking_uri(store.uri())
    monitor: Any = SystemMetricsMonitor
    monitor = monitor(run_id, resume_logging=True)
    monitor.start()
    return monitor


def _say(what: str) -> None:
    print(f"MLflow: {what}", file=sys.stderr, flush=True)
