"""MLflow runs: the training that a run shows, and how runs are found and completed."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import settings_sha256
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.tracking.datasets import DatasetFacts

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.tracking import MlflowClient

FINGERPRINT, COMMIT, FINISHED = "fingerprint", "mlflow.source.git.commit", "FINISHED"
# The tag whose value MLflow shows as the description of a run.
NOTE = "mlflow.note.content"
# The tag that says, by a fingerprint, which outputs a run shows.
OUTPUTS = "outputs"
# The value of a tag where nothing here tells what it should be.
UNKNOWN = "unknown"


class Point(NamedTuple):
    """The arguments of MLflow's Metric; `time` in milliseconds."""

    name: str
    value: float
    time: int
    update: int


@dataclass(frozen=True)
class RunDescription:
    """The training that a run shows: its experiment, run, fingerprint, parameters and datasets.

    `settings`: the fingerprint of all settings of the run, those of search included, since MLflow
    changes no parameter. `datasets`: the sets of its corpus, as far as they are on disk.
    """

    experiment: str
    run: Run
    fingerprint: str
    params: Mapping[str, str]
    settings: str = ""
    datasets: tuple[DatasetFacts, ...] = ()

    @classmethod
    def for_run(
        cls,
        settings: Settings,
        run: Run,
        fingerprint: str,
        parameters: int,
        datasets: tuple[DatasetFacts, ...] = (),
    ) -> Self:
        """`parameters`: how many the model has."""
        return cls(
            experiment=settings.experiment,
            run=run,
            fingerprint=fingerprint,
            params=_params(settings, run, parameters),
            settings=settings_sha256(settings, run),
            datasets=datasets,
        )

    @property
    def training(self) -> dict[str, str]:
        """The tags of all runs of this training, whatever search made their translations."""
        run = {name: str(value) for name, value in self.run._asdict().items()}
        return {**run, FINGERPRINT: self.fingerprint}

    @property
    def tags(self) -> dict[str, str]:
        """The tags by which the run is found."""
        return {**self.training, "settings": self.settings}

    @property
    def name(self) -> str:
        return " ".join(map(str, self.run))

    @property
    def note(self) -> str:
        """Where the report shows this run, in Markdown."""
        return (
            f"Row **{self.run.system}** of the table for **{self.run.corpus}** in "
            f"`reports/table.md`, seed {self.run.seed}. The report `reports/index.html` shows its "
            "learning curves, output errors and sentences."
        )


def _params(settings: Settings, run: Run, parameters: int) -> dict[str, str]:
    """What params.yaml says of a run: of its corpus all but where the files are."""
    corpus = settings.corpus(run.corpus)
    taken = settings.text_params(run.corpus)
    system = vars(settings.system_on(run.system, run.corpus))
    params = flatten_settings({**run._asdict(), "parameters": parameters, **system})
    corpus_settings = corpus.deciding_settings()
    corpus_settings["files"] = {"train": taken}
    corpus_settings |= corpus.facts_of_pairs()
    of_corpus = flatten_settings(corpus_settings)
    return params | {f"corpus.{key}": value for key, value in of_corpus.items()}


def find(client: "MlflowClient", experiment: str, tags: Mapping[str, str]) -> "MlflowRun | None":
    """The newest run with these tags in the experiment with this id."""
    query = " and ".join(f"tags.{name} = '{value}'" for name, value in tags.items())
    return next(iter(client.search_runs([experiment], query, max_results=1)), None)


def create(
    client: "MlflowClient",
    experiment: str,
    description: RunDescription,
    tags: Mapping[str, str],
    seconds: float = 0.0,
) -> "MlflowRun":
    """A new run, begun `seconds` ago."""
    start = round(1000 * (time.time() - seconds))
    return client.create_run(experiment, start, {**description.tags, **tags}, description.name)


def describe(client: "MlflowClient", run: "MlflowRun", description: RunDescription) -> bool:
    """Add the parameters, datasets and description that a run lacks; return whether it did.

    A description stays as it is once there is one: people edit it.
    """
    added_params = _add_params(client, run, description.params)
    added_datasets = _add_datasets(client, run, description.datasets)
    added_note = not run.data.tags.get(NOTE)
    if added_note:
        client.set_tag(run.info.run_id, NOTE, description.note)
    return added_params or added_datasets or added_note


def _add_params(client: "MlflowClient", run: "MlflowRun", params: Mapping[str, str]) -> bool:
    """Add the parameters that a run lacks; return whether there were any."""
    from mlflow.entities import Param

    # MLflow changes no parameter of a run, such as a value that it has cut
    missing = sorted(params.keys() - run.data.params.keys())
    if missing:
        new_params = [Param(key, params[key]) for key in missing]
        client.log_batch(run.info.run_id, params=new_params)
    return bool(missing)


def _add_datasets(
    client: "MlflowClient", run: "MlflowRun", datasets: Iterable[DatasetFacts]
) -> bool:
    """Add the datasets that a run lacks as its inputs; return whether there were any."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs = run.inputs.dataset_inputs if run.inputs else []
    logged = {(each.dataset.name, each.dataset.digest) for each in inputs}
    new_inputs = []
    for facts in datasets:
        if (facts.name, facts.digest) in logged:
            continue
        size = facts.size
        profile = {
            "pairs": size.pairs,
            "source_tokens": size.source_tokens,
            "target_tokens": size.target_tokens,
        }
        dataset = Dataset(
            name=facts.name,
            digest=facts.digest,
            source_type="local",
            source=json.dumps({"uri": facts.uri}),
            profile=json.dumps(profile),
        )
        context = InputTag("mlflow.data.context", facts.context)
        new_inputs.append(DatasetInput(dataset, [context]))
    if new_inputs:
        client.log_inputs(run.info.run_id, new_inputs)
    return bool(new_inputs)


def commit_tags(commit: str | None) -> dict[str, str]:
    """The tags of the code's commit, in whose names `+` means uncommitted changes."""
    return {"commit": commit, COMMIT: commit.split()[0].rstrip("+")} if commit else {}


def complete(
    client: "MlflowClient",
    run: "MlflowRun",
    tags: Mapping[str, str],
    points: Sequence[Point],
    scores: Mapping[str, float],
) -> bool:
    """Add what the run lacks of these, replace what has changed; returns whether it did.

    `points`: metrics of curves, timed from the start of the run; `scores`: those of the whole run.
    A tag that is UNKNOWN replaces no value.
    """
    from mlflow.entities import Metric, RunTag

    held, steps = run.data, logged_steps(client, run, {point.name for point in points})
    start, now = run.info.start_time, int(time.time() * 1000)
    unlogged = [point for point in points if point.update not in steps.get(point.name, ())]
    new = [Metric(*point._replace(time=start + point.time)) for point in unlogged]
    new += [Metric(*score, now, 0) for score in sorted(scores.items() - held.metrics.items())]
    new_tags = []
    for key, value in sorted(tags.items() - held.tags.items()):
        if value != UNKNOWN or key not in held.tags:
            new_tags.append(RunTag(key, value))
    client.log_batch(run.info.run_id, metrics=new, tags=new_tags)
    return bool(new or new_tags)


def logged_steps(
    client: "MlflowClient", run: "MlflowRun", names: Iterable[str]
) -> dict[str, set[int]]:
    """The updates at which each metric that the run has was logged."""
    return {
        name: {point.step for point in client.get_metric_history(run.info.run_id, name)}
        for name in run.data.metrics.keys() & {*names}
    }
