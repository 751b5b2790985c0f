"""Log a running training to MLflow from a thread; a failure never stops the training.

The thread also imports MLflow (about three seconds). What cannot be logged is kept and tried again;
`bleuprint record` logs what is lost in the end.
"""

import getpass
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from bleuprint.runtime.code import commit
from bleuprint.runtime.errors import one_line
from bleuprint.runtime.streams import shown
from bleuprint.tracking import runs, store
from bleuprint.tracking.runs import FINISHED, Description, Point

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

# Seconds that a training waits for MLflow at its end: if it finished; and if it failed, since other
# processes may wait for its error.
_FINISHED_WAIT, _FAILED_WAIT = 60.0, 8.0
_PAUSE = 10.0  # seconds between attempts


class Tracker:
    """Logs one training; prints one line about what it could not log."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._unsent: list[Point] = []
        self._status = ""
        self._problem, self._done = "it did not answer in time", False
        self._connection: _Connection | None = None
        self._news, self._closed = threading.Event(), threading.Event()
        self._news.set()  # the run is started before the first metrics come
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        now = int(time.time() * 1000)
        self._unsent += [Point(name, value, now, update) for name, value in metrics.items()]
        self._news.set()

    def close(self, status: str) -> None:
        """End the run as FINISHED, FAILED or KILLED; waits, with a limit, until it is logged."""
        self._status = status
        self._closed.set()
        self._news.set()
        self._thread.join(_FINISHED_WAIT if status == FINISHED else _FAILED_WAIT)
        if not self._done:
            lost = f"{len(self._unsent)} metrics and the end of {self._description.cell}"
            why = f"({self._problem}): run bleuprint record after the training"
            _say(f"{lost} are not logged {why}")

    def _serve(self) -> None:
        reported = False
        while not self._done:
            self._news.wait()
            self._news.clear()
            closed = self._closed.is_set()
            try:
                self._send()
            except Exception as error:  # of any kind: the training continues
                self._connection, self._problem = None, store.reason(error)
                if not reported:
                    _say(f"{store.uri()}: {self._problem}: training continues, logging is retried")
                    reported = True
                if closed:
                    return
                self._closed.wait(_PAUSE)
                self._news.set()

    def _send(self) -> None:
        """Send all points, and the end if it has come."""
        status, points = self._status, self._unsent[:]
        self._connection = self._connection or _Connection(self._description)
        self._connection.send(points)
        del self._unsent[: len(points)]
        if status:
            self._connection.end(status)
            self._done = True


class _Connection:
    """A client and the run of this training, continued or new; a finished one keeps its end."""

    def __init__(self, description: Description) -> None:
        self._client = store.client()
        self._run = _start(self._client, description)
        names = [name for name in self._run.data.metrics if name.startswith(("train/", "valid/"))]
        self._logged = runs.logged_steps(self._client, self._run, names)

    def send(self, points: list[Point]) -> None:
        """Log metrics; a resumed training repeats some updates, which are not logged twice."""
        from mlflow.entities import Metric

        new = [p for p in points if p.update not in self._logged.get(p.name, ())]
        self._client.log_batch(self._run.info.run_id, metrics=[Metric(*point) for point in new])

    def end(self, status: str) -> None:
        if self._run.info.status != FINISHED:
            # not before its start, also if the clock was set back
            now = max(int(time.time() * 1000), self._run.info.start_time)
            self._client.set_terminated(self._run.info.run_id, status, now)


def _start(client: "MlflowClient", description: Description) -> "Run":
    experiment = store.experiment(client, description.experiment)
    if run := runs.find(client, experiment, description):
        if run.info.status != FINISHED:
            client.update_run(run.info.run_id, status="RUNNING")
        return run
    tags = runs.commit_tags(commit())
    with suppress(Exception):  # some machines have no name for their user
        tags["mlflow.user"] = getpass.getuser()
    return runs.create(client, experiment, description, tags)


def _say(message: str) -> None:
    print(shown(f"MLflow: {one_line(message)}"), file=sys.stderr, flush=True)
