"""MLflow runs: the training that a run shows, and how runs are found and completed."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from bleuprint.config.paths import Cell
from bleuprint.config.system import System
from bleuprint.runtime.flatten import dotted

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FINGERPRINT, COMMIT, FINISHED = "fingerprint", "mlflow.source.git.commit", "FINISHED"


class Point(NamedTuple):
    """The arguments of MLflow's Metric; `time` in milliseconds."""

    name: str
    value: float
    time: int
    update: int


@dataclass(frozen=True)
class Description:
    """The training that a run shows: its experiment, cell, fingerprint and parameters."""

    experiment: str
    cell: Cell
    fingerprint: str
    params: Mapping[str, str]

    @classmethod
    def of(
        cls, experiment: str, cell: Cell, system: System, fingerprint: str, parameters: int
    ) -> Self:
        """`parameters`: how many the model has."""
        shown = {"model": system.model, "train": system.train, "parameters": parameters}
        return cls(experiment, cell, fingerprint, dotted(shown))

    @property
    def tags(self) -> dict[str, str]:
        """The tags by which the run is found: rows that differ in decoding share a fingerprint."""
        cell = {name: str(value) for name, value in self.cell._asdict().items()}
        return {**cell, FINGERPRINT: self.fingerprint}


def find(client: "MlflowClient", experiment: str, description: Description) -> "Run | None":
    """The newest run of a training in the experiment with this id."""
    query = " and ".join(f"tags.{name} = '{value}'" for name, value in description.tags.items())
    return next(iter(client.search_runs([experiment], query, max_results=1)), None)


def create(
    client: "MlflowClient",
    experiment: str,
    description: Description,
    tags: Mapping[str, str],
    seconds: float = 0.0,
) -> "Run":
    """A new run with parameters, begun `seconds` ago."""
    from mlflow.entities import Param

    start, name = round(1000 * (time.time() - seconds)), " ".join(map(str, description.cell))
    run = client.create_run(experiment, start, {**description.tags, **tags}, name)
    params = [Param(key, value) for key, value in description.params.items()]
    client.log_batch(run.info.run_id, params=params)
    return run


def commit_tags(commit: str | None) -> dict[str, str]:
    """The tags of the code's commit, in whose names `+` means uncommitted changes."""
    return {"commit": commit, COMMIT: commit.split()[0].rstrip("+")} if commit else {}


def complete(
    client: "MlflowClient",
    run: "Run",
    tags: Mapping[str, str],
    points: Sequence[Point],
    scores: Mapping[str, float],
) -> bool:
    """Add what the run lacks of these, replace what has changed; returns whether it did.

    `points`: metrics of curves, timed from the start of the run; `scores`: those of the whole run.
    """
    from mlflow.entities import Metric, RunTag

    held, steps = run.data, logged_steps(client, run, {point.name for point in points})
    start, now = run.info.start_time, int(time.time() * 1000)
    unlogged = [point for point in points if point.update not in steps.get(point.name, ())]
    new = [Metric(*point._replace(time=start + point.time)) for point in unlogged]
    new += [Metric(*score, now, 0) for score in sorted(scores.items() - held.metrics.items())]
    new_tags = [RunTag(*tag) for tag in sorted(tags.items() - held.tags.items())]
    client.log_batch(run.info.run_id, metrics=new, tags=new_tags)
    return bool(new or new_tags)


def logged_steps(client: "MlflowClient", run: "Run", names: Iterable[str]) -> dict[str, set[int]]:
    """The updates at which each metric that the run has was logged."""
    return {
        name: {point.step for point in client.get_metric_history(run.info.run_id, name)}
        for name in run.data.metrics.keys() & {*names}
    }
