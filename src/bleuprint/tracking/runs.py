"""MLflow runs: the training that a run shows, and how runs are found and completed."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from bleuprint.config.cells import settings_sha256
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.dataset.binarized import CORPUS, BinaryCorpus, SetSize
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.runtime.flatten import dotted

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FINGERPRINT, COMMIT, FINISHED = "fingerprint", "mlflow.source.git.commit", "FINISHED"
_DIGEST = 16  # characters of a dataset's digest, of at most 36
_CONTEXTS = {"train": "training", "valid": "validation"}  # as MLflow calls them


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
    changes no parameter; `data`: that of the training's data; `sets`: the sizes of its sets, where
    the corpus is here.
    """

    experiment: str
    cell: Cell
    fingerprint: str
    params: Mapping[str, str]
    settings: str = ""
    data: str = ""
    sets: Mapping[str, SetSize] = field(default_factory=dict)

    @classmethod
    def of(
        cls, settings: Settings, cell: Cell, fingerprint: str, data: str, parameters: int
    ) -> Self:
        """`parameters`: how many the model has."""
        of_all, sets = settings_sha256(settings, cell), _sets(cell.corpus, data)
        params = _params(settings, cell, parameters)
        return cls(settings.experiment, cell, fingerprint, params, of_all, data, sets)

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


def _sets(corpus: str, data: str) -> Mapping[str, SetSize]:
    """The sizes of a corpus's sets, if it is that of this fingerprint (training/job.py)."""
    binary, texts = folder(corpus, "binary"), folder(corpus, "split")
    if not (binary / CORPUS).exists():
        return {}
    try:
        read, references = BinaryCorpus(binary), sorted(texts.glob("valid.*"))
    except UserError:  # damaged, or of another version
        return {}
    if fingerprint.of_settings(read.training_sha256, *map(sha256_of, references)) != data:
        return {}
    return read.sets


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
    """Add what the run lacks of parameters and datasets; returns whether it did."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Param

    run_id, corpus = run.info.run_id, description.cell.corpus
    # MLflow changes none that is there, such as a value that it has cut
    new = description.params.keys() - run.data.params.keys()
    client.log_batch(run_id, params=[Param(key, description.params[key]) for key in sorted(new)])
    if not description.sets or (run.inputs and run.inputs.dataset_inputs):
        return bool(new)
    of_all = description.data[:_DIGEST], "local", json.dumps({"uri": str(folder(corpus, "binary"))})
    inputs = []
    for name, size in description.sets.items():
        profile, context = json.dumps(asdict(size)), _CONTEXTS.get(name, "testing")
        dataset = Dataset(f"{corpus} {name}", *of_all, profile=profile)
        inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", context)]))
    client.log_inputs(run_id, inputs)
    return True


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
