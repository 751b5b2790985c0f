"""MLflow: a view of the trainings, never the truth, and never a reason for one to stop.

Metrics go through a queue to a thread, which also imports MLflow (about three seconds): the
training waits for neither. A run is found again by the tag that holds its fingerprint.
"""

import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from bleuprint import environment
from bleuprint.layout import Cell, folder

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.tracking import MlflowClient

FINGERPRINT = "bleuprint.fingerprint"
# Seconds that a training which is done waits for MLflow; one that failed has no time to lose, since
# other processes may wait for its error.
_PATIENCE, _SHORT_PATIENCE = 60.0, 8.0


@dataclass(frozen=True)
class Description:
    """What a run is of: the names under which MLflow shows and finds it."""

    experiment: str
    cell: Cell
    fingerprint: str
    data: str
    settings: Mapping[str, Any]


class Tracker:
    """Logs one training to MLflow from a thread of its own; silent after a failure is told."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._queue: queue.Queue[tuple[int, dict[str, float], int] | str] = queue.Queue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def log(self, update: int, metrics: dict[str, float]) -> None:
        self._queue.put((update, metrics, int(time.time() * 1000)))

    def close(self, status: str) -> None:
        """End the run as FINISHED, FAILED or KILLED, and wait (not for ever) until it is told."""
        self._queue.put(status)
        self._thread.join(_PATIENCE if status == "FINISHED" else _SHORT_PATIENCE)

    def _serve(self) -> None:
        try:
            client = _client()
            run = _start(client, self._description)
            monitor = _monitor(run.info.run_id)
            logged = _last_steps(client, run)
            status = None
            while status is None:
                status = self._send(client, run.info.run_id, logged)
            monitor.finish()
            client.set_terminated(run.info.run_id, status)
        except Exception as error:  # whatever happens to the view, training goes on
            print(f"MLflow: not logged from here on: {error}", file=sys.stderr, flush=True)

    def _send(self, client: "MlflowClient", run_id: str, logged: dict[str, int]) -> str | None:
        """Send all that has queued up in one go; the status if the run is over."""
        from mlflow.entities import Metric

        status, batch = None, []
        entries = [self._queue.get()]
        while not self._queue.empty():
            entries.append(self._queue.get())
        for entry in entries:
            if isinstance(entry, str):
                status = entry
            else:
                update, metrics, when = entry
                new = {name: v for name, v in metrics.items() if update > logged.get(name, -1)}
                batch += [Metric(name, value, when, update) for name, value in new.items()]
        for start in range(0, len(batch), 1000):  # MLflow takes at most 1000 at a time
            client.log_batch(run_id, metrics=batch[start : start + 1000])
        return status


@dataclass(frozen=True)
class Outcome:
    """What came of a training after it ended: test scores, and the settings they were made with."""

    cell: Cell
    fingerprint: str
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


def log_outcomes(experiment: str, outcomes: Iterable[Outcome]) -> None:
    """Add test scores to the runs that exist; none is made."""
    try:
        client = _client()
        found = client.get_experiment_by_name(experiment)
        for outcome in outcomes:
            run = found and _find(client, found.experiment_id, outcome.cell, outcome.fingerprint)
            if not run:
                continue
            for name, value in outcome.metrics.items():
                if run.data.metrics.get(name) != value:
                    client.log_metric(run.info.run_id, name, value)
            for name, text in outcome.tags.items():
                client.set_tag(run.info.run_id, name, text)
    except Exception as error:  # as above
        print(f"MLflow: scores not logged: {error}", file=sys.stderr, flush=True)


def commit() -> str | None:
    """The commit the code is at, with a + if the code differs from it; None outside git."""
    try:
        git = ["git", "-C", str(Path(__file__).parents[2])]
        code = ("src", "stages", "dvc.yaml")  # results are in git too, and change as they come
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        compare = [*git, "diff", "--quiet", "HEAD", "--", *code]
        dirty = subprocess.run(compare, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if dirty else "")


def _client() -> "MlflowClient":
    """A client of the user's server, or of mlflow.db at the project's root."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow.tracking import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if uri:
        return MlflowClient(uri)
    # Processes that create the database at the same time crash in its migrations.
    environment.work().mkdir(parents=True, exist_ok=True)
    with FileLock(environment.work() / "mlflow.lock"):
        client = MlflowClient(f"sqlite:///{environment.root() / 'mlflow.db'}")
        client.search_experiments(max_results=1)
        return client


def _start(client: "MlflowClient", description: Description) -> "MlflowRun":
    """The run of this fingerprint, continued, or a new one."""
    identity = _experiment(client, description.experiment)
    run = _find(client, identity, description.cell, description.fingerprint)
    if run:
        client.update_run(run.info.run_id, status="RUNNING")
        return run
    return _create(client, identity, description)


def _experiment(client: "MlflowClient", name: str) -> str:
    """The id of the experiment called `name`, made if need be."""
    from mlflow.exceptions import MlflowException

    if found := client.get_experiment_by_name(name):
        return str(found.experiment_id)
    location = None
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        location = (environment.root() / "mlartifacts" / name).as_uri()
    try:
        return str(client.create_experiment(name, artifact_location=location))
    except MlflowException:  # another process was first
        if found := client.get_experiment_by_name(name):
            return str(found.experiment_id)
        raise


def _create(client: "MlflowClient", experiment: str, description: Description) -> "MlflowRun":
    from mlflow.entities import Dataset, DatasetInput, InputTag, Param

    tags = {
        **_tags(description.cell),
        "commit": commit() or "unknown",
        FINGERPRINT: description.fingerprint,
    }
    name = " ".join(map(str, description.cell))
    run = client.create_run(experiment, run_name=name, tags=tags)
    parameters = [Param(key, str(value)) for key, value in _flat(description.settings)]
    client.log_batch(run.info.run_id, params=parameters)
    source = f'{{"path": "{folder(description.cell.corpus, "binary")}"}}'
    dataset = Dataset(description.cell.corpus, description.data[:36], "local", source)
    inputs = [DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])]
    client.log_inputs(run.info.run_id, inputs)
    return run


def _find(
    client: "MlflowClient", experiment: str, cell: Cell, fingerprint: str
) -> "MlflowRun | None":
    """The run of a training; rows that differ in decoding alone have one fingerprint."""
    tags = {**_tags(cell), FINGERPRINT: fingerprint}
    wanted = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
    runs = client.search_runs([experiment], wanted, max_results=1)
    return runs[0] if runs else None


def _tags(cell: Cell) -> dict[str, str]:
    return {"system": cell.system, "corpus": cell.corpus, "seed": str(cell.seed)}


def _last_steps(client: "MlflowClient", run: "MlflowRun") -> dict[str, int]:
    """The last update logged of each metric: a resumed training repeats some."""
    return {
        name: max(metric.step for metric in client.get_metric_history(run.info.run_id, name))
        for name in run.data.metrics
        if name.startswith(("train/", "valid/"))
    }


def _monitor(run_id: str) -> Any:
    import mlflow
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    uri = os.environ.get("MLFLOW_TRACKING_URI")
    mlflow.set_tracking_uri(uri or f"sqlite:///{environment.root() / 'mlflow.db'}")
    monitor: Any = SystemMetricsMonitor
    monitor = monitor(run_id, resume_logging=True)
    monitor.start()
    return monitor


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
