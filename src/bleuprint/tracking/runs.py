"""MLflow runs: what they hold, and how they are found, created and completed.

A run is found by the fingerprint of its training. Runs that differ only in their seed have the same
group tag, by which MLflow can show their means.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from bleuprint.config.paths import Cell
from bleuprint.config.system import System
from bleuprint.runtime import fingerprint
from bleuprint.runtime.flatten import dotted

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run
    from mlflow.tracking import MlflowClient

FINGERPRINT, GROUP = "bleuprint.fingerprint", "bleuprint.group"
NOTE, COMMIT = "mlflow.note.content", "mlflow.source.git.commit"
# MLflow's limits: characters of a parameter, metrics in one request
_VALUE, _METRICS = 6000, 1000


@dataclass(frozen=True)
class Description:
    """The training that a run shows; `data` and `code` are fingerprints."""

    experiment: str
    cell: Cell
    fingerprint: str
    data: str
    settings: Mapping[str, Any]
    code: str

    @classmethod
    def of(cls, experiment: str, cell: Cell, system: System, facts: Mapping[str, Any]) -> Self:
        """`facts`: fingerprint, data, code and parameters, as in training.json."""
        settings = {
            "model": asdict(system.model),
            "train": asdict(system.train),
            "parameters": facts["parameters"],
        }
        return cls(experiment, cell, facts["fingerprint"], facts["data"], settings, facts["code"])

    @property
    def group(self) -> str:
        """System, corpus and the fingerprint shared by trainings that differ only in their seed."""
        mark = fingerprint.of_settings(self.settings, self.data, self.code)
        return f"{self.cell.system} {self.cell.corpus} {mark[:8]}"

    @property
    def tags(self) -> dict[str, str]:
        """The tags by which the run is found. Rows that differ only in decoding share a
        fingerprint, hence the cell.
        """
        cell = {name: str(value) for name, value in self.cell._asdict().items()}
        return {**cell, FINGERPRINT: self.fingerprint}


@dataclass(frozen=True)
class Content:
    """What a run holds.

    `points`: metrics of curves, with timestamps in milliseconds from the start of the run;
    `summary`: metrics of the whole run, which may be replaced.
    """

    name: str
    tags: Mapping[str, str]
    note: str
    params: Mapping[str, str] = field(default_factory=dict)
    points: Sequence["Metric"] = ()
    summary: Mapping[str, float] = field(default_factory=dict)


def initial_content(description: Description, commit: str | None) -> Content:
    """The content of a run when its training starts."""
    cell = description.cell
    return Content(
        name=" ".join(map(str, cell)),
        tags={
            **description.tags,
            "commit": commit or "unknown",
            GROUP: description.group,
            "mlflow.source.name": "stages/train.py",
            "mlflow.source.type": "LOCAL",
            **({COMMIT: commit.split()[0].rstrip("+")} if commit else {}),
        },
        note=_note(cell, commit),
        params=parameters(description.settings),
    )


def parameters(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings by dotted key, cut to MLflow's maximum length."""
    return {name: text[:_VALUE] for name, text in dotted(settings).items()}


def find(client: "MlflowClient", experiment: str, tags: Mapping[str, str]) -> "Run | None":
    """The newest run with these tags."""
    query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
    return next(iter(client.search_runs([experiment], query, max_results=1)), None)


def create(
    client: "MlflowClient", experiment: str, content: Content, seconds: float | None = None
) -> "Run":
    """A new run; with `seconds`, a finished one that ends now and lasted that long."""
    now = int(time.time() * 1000)
    tags = {**content.tags, NOTE: content.note}
    start = now if seconds is None else now - round(seconds * 1000)
    run = client.create_run(experiment, start_time=start, run_name=content.name, tags=tags)
    complete(client, run, content)
    if seconds is not None:
        client.set_terminated(run.info.run_id, "FINISHED", end_time=now)
    return run


def complete(client: "MlflowClient", run: "Run", content: Content) -> bool:
    """Add what the run lacks of `content`, replace what has changed; returns whether it did.

    Parameters cannot be changed, and a note may have been edited by the user: both are kept.
    """
    from mlflow.entities import Metric, Param, RunTag

    held, start, now = run.data, run.info.start_time, int(time.time() * 1000)
    tags = [
        RunTag(key, text)
        for key, text in {NOTE: held.tags.get(NOTE, content.note), **content.tags}.items()
        if held.tags.get(key) != text
    ]
    params = [Param(k, text) for k, text in content.params.items() if k not in held.params]
    steps = logged_steps(client, run, {point.key for point in content.points})
    metrics = [
        Metric(point.key, point.value, start + point.timestamp, point.step)
        for point in content.points
        if point.step not in steps[point.key]
    ]
    metrics += [
        Metric(name, value, now, 0)
        for name, value in content.summary.items()
        if held.metrics.get(name) != value
    ]
    log_metrics(client, run, metrics)
    if params or tags:
        client.log_batch(run.info.run_id, params=params, tags=tags)
    return bool(metrics or params or tags)


def log_metrics(client: "MlflowClient", run: "Run", metrics: Sequence["Metric"]) -> None:
    """Log metrics in as few requests as MLflow allows."""
    for start in range(0, len(metrics), _METRICS):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + _METRICS])


def logged_steps(client: "MlflowClient", run: "Run", names: Iterable[str]) -> dict[str, set[int]]:
    """The updates at which each metric has been logged."""
    return {
        name: {point.step for point in client.get_metric_history(run.info.run_id, name)}
        if name in run.data.metrics
        else set()
        for name in names
    }


def _note(cell: Cell, commit: str | None) -> str:
    """Markdown: the cell, and the command that repeats it."""
    at = f"at commit `{commit.rstrip('+')}`" if commit else "with this code"
    changed = ", whose code had uncommitted changes," if commit and "+" in commit else ""
    return (
        f"System **{cell.system}** on corpus **{cell.corpus}** with seed {cell.seed}.\n\n"
        f"To repeat it {at}{changed} with the same `params.yaml`:\n\n"
        f"```\ndvc repro score@{'-'.join(map(str, cell))}\n```"
    )
