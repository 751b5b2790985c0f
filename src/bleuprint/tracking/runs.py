"""MLflow runs: the training that a run shows, and how runs are found and completed."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from bleuprint.config.cells import settings_sha256
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
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
    """The training that a run shows: its experiment, cell, fingerprint and parameters.

    `settings`: the fingerprint of all settings of the cell, those of search included, since MLflow
    changes no parameter.
    """

    experiment: str
    cell: Cell
    fingerprint: str
    params: Mapping[str, str]
    settings: str = ""

    @classmethod
    def of(cls, settings: Settings, cell: Cell, fingerprint: str, parameters: int) -> Self:
        """`parameters`: how many the model has."""
        of_all, params = settings_sha256(settings, cell), _params(settings, cell, parameters)
        return cls(settings.experiment, cell, fingerprint, params, of_all)

    @property
    def training(self) -> dict[str, str]:
        """The tags of all runs of this training, whatever search made their translations."""
        cell = {name: str(value) for name, value in self.cell._asdict().items()}
        return {**cell, FINGERPRINT: self.fingerprint}

    @property
    def tags(self) -> dict[str, str]:
        """The tags by which the run is found."""
        return {**self.training, "settings": self.settings}

    @property
    def name(self) -> str:
        return " ".join(map(str, self.cell))


def _params(settings: Settings, cell: Cell, parameters: int) -> dict[str, str]:
    """What params.yaml says of a cell: of its corpus all but where the files are."""
    corpus, of_text = settings.corpus(cell.corpus), ("pairs", "pairs_seed", "tag", "repeat")
    taken: dict[str, dict[str, Any]] = {}
    for name, text in corpus.files.train.items():
        taken[name] = {key: getattr(text, key) for key in of_text}
        if text.made:
            made = settings.made_text(name)
            how = made.how or "beam search"
            taken[name]["made_by"] = {"system": made.system, "corpus": made.corpus, "how": how}
    directions = {
        name: "zero-shot" if each.zero_shot else "trained"
        for name, each in (corpus.directions or {}).items()
    }
    system = vars(settings.system_on(cell.system, cell.corpus))
    params = dotted({**cell._asdict(), "parameters": parameters, **system})
    files = {"files": {"train": taken}, "directions": directions or None}
    of_corpus = dotted({**corpus.deciding(), **files})
    return params | {f"corpus.{key}": value for key, value in of_corpus.items()}


def find(client: "MlflowClient", experiment: str, tags: Mapping[str, str]) -> "Run | None":
    """The newest run with these tags in the experiment with this id."""
    query = " and ".join(f"tags.{name} = '{value}'" for name, value in tags.items())
    return next(iter(client.search_runs([experiment], query, max_results=1)), None)


def create(
    client: "MlflowClient",
    experiment: str,
    description: Description,
    tags: Mapping[str, str],
    seconds: float = 0.0,
) -> "Run":
    """A new run, begun `seconds` ago."""
    start = round(1000 * (time.time() - seconds))
    return client.create_run(experiment, start, {**description.tags, **tags}, description.name)


def describe(client: "MlflowClient", run: "Run", description: Description) -> bool:
    """Add the parameters that the run lacks; returns whether it did."""
    from mlflow.entities import Param

    # MLflow changes none that is there, such as a value that it has cut
    new = description.params.keys() - run.data.params.keys()
    params = [Param(key, description.params[key]) for key in sorted(new)]
    client.log_batch(run.info.run_id, params=params)
    return bool(new)


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
