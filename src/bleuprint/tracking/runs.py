"""Find, create and complete MLflow runs.

`RunDescription` says which training a run shows. tracker.py logs a running training by these
functions, and sync.py the committed results.
"""

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

# The tag with the fingerprint of a training.
FINGERPRINT = "fingerprint"
# MLflow's tag for the Git commit, which its pages show.
COMMIT = "mlflow.source.git.commit"
# MLflow's status of a run that has ended without an error.
FINISHED = "FINISHED"
# The tag whose value MLflow shows as the description of a run.
NOTE = "mlflow.note.content"
# The tag with the fingerprint of the outputs that a run shows.
OUTPUTS = "outputs"
# The value of a tag where nothing here tells what it should be.
UNKNOWN = "unknown"


class Point(NamedTuple):
    """A value of a metric, with the arguments of MLflow's Metric in their order.

    Attributes:
        name: The name of the metric.
        value: The value.
        time: The time in milliseconds.
        update: The number of updates of the training, which MLflow calls the step.
    """

    name: str
    value: float
    time: int
    update: int


@dataclass(frozen=True)
class RunDescription:
    """The training that an MLflow run shows.

    Attributes:
        experiment: The name of the MLflow experiment.
        run: The system, the corpus and the seed.
        fingerprint: The fingerprint of the training.
        params: The parameters of the run by name: its settings in params.yaml.
        settings: The fingerprint of all settings, search included. MLflow cannot change the
            parameters of a run, so other settings need another run.
        datasets: The sets of the corpus, as far as they are on disk.
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
        """Describe the training of a run.

        Args:
            settings: The settings of the experiment.
            run: The system, the corpus and the seed.
            fingerprint: The fingerprint of the training.
            parameters: The number of parameters of the model.
            datasets: The sets of the corpus.
        """
        return cls(
            experiment=settings.experiment,
            run=run,
            fingerprint=fingerprint,
            params=_run_params(settings, run, parameters),
            settings=settings_sha256(settings, run),
            datasets=datasets,
        )

    @property
    def training(self) -> dict[str, str]:
        """The tags of all MLflow runs of this training, whatever search made the translations."""
        tags = {name: str(value) for name, value in self.run._asdict().items()}
        tags[FINGERPRINT] = self.fingerprint
        return tags

    @property
    def tags(self) -> dict[str, str]:
        """The tags by which the MLflow run is found."""
        return {**self.training, "settings": self.settings}

    @property
    def name(self) -> str:
        """The name of the MLflow run: system, corpus and seed."""
        return " ".join(str(part) for part in self.run)

    @property
    def note(self) -> str:
        """The description of the MLflow run, in Markdown: where the report shows its results."""
        return (
            f"Row **{self.run.system}** of the table for **{self.run.corpus}** in "
            f"`reports/table.md`, seed {self.run.seed}. The report `reports/index.html` shows its "
            "learning curves, output errors and sentences."
        )


def _run_params(settings: Settings, run: Run, parameters: int) -> dict[str, str]:
    """Return the settings of a run as MLflow parameters.

    Settings of the corpus begin with `corpus.`. The paths and addresses of its files are left out.

    Args:
        settings: The settings of the experiment.
        run: The system, the corpus and the seed.
        parameters: The number of parameters of the model.
    """
    system_settings = vars(settings.system_on(run.system, run.corpus))
    params = flatten_settings({**run._asdict(), "parameters": parameters, **system_settings})
    corpus = settings.corpus(run.corpus)
    corpus_settings = corpus.deciding_settings()
    # In place of the files: what is taken of each text, and what made its synthetic side.
    corpus_settings["files"] = {"train": settings.text_params(run.corpus)}
    # For a corpus of several language pairs: on which of them the model is trained.
    corpus_settings.update(corpus.facts_of_pairs())
    for key, value in flatten_settings(corpus_settings).items():
        params[f"corpus.{key}"] = value
    return params


def find_run(
    client: "MlflowClient", experiment_id: str, tags: Mapping[str, str]
) -> "MlflowRun | None":
    """Return the newest MLflow run with some tags; None if there is none.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        tags: The tags.
    """
    query = " and ".join(f"tags.{name} = '{value}'" for name, value in tags.items())
    runs = client.search_runs([experiment_id], query, max_results=1)
    return runs[0] if runs else None


def create_run(
    client: "MlflowClient",
    experiment_id: str,
    description: RunDescription,
    tags: Mapping[str, str],
    seconds: float = 0.0,
) -> "MlflowRun":
    """Create an MLflow run.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        description: The training that the run shows.
        tags: Tags of the run, in addition to the tags of the description.
        seconds: How long ago the run started.
    """
    start_milliseconds = round(1000 * (time.time() - seconds))
    all_tags = {**description.tags, **tags}
    return client.create_run(experiment_id, start_milliseconds, all_tags, description.name)


def describe_run(client: "MlflowClient", run: "MlflowRun", description: RunDescription) -> bool:
    """Add the parameters, datasets and the note that an MLflow run lacks.

    A note that exists stays as it is, because people edit it.

    Args:
        client: MLflow's client.
        run: The run.
        description: The training that the run shows.

    Returns:
        Whether anything was added.
    """
    has_new_params = _add_params(client, run, description.params)
    has_new_datasets = _add_datasets(client, run, description.datasets)
    has_new_note = not run.data.tags.get(NOTE)
    if has_new_note:
        client.set_tag(run.info.run_id, NOTE, description.note)
    return has_new_params or has_new_datasets or has_new_note


def _add_params(client: "MlflowClient", run: "MlflowRun", params: Mapping[str, str]) -> bool:
    """Add the parameters that an MLflow run lacks; return whether there were any."""
    from mlflow.entities import Param

    # Only missing names: MLflow refuses to change a parameter, and it may have cut a long value.
    missing_names = sorted(params.keys() - run.data.params.keys())
    if not missing_names:
        return False
    new_params = [Param(name, params[name]) for name in missing_names]
    client.log_batch(run.info.run_id, params=new_params)
    return True


def _add_datasets(
    client: "MlflowClient", run: "MlflowRun", datasets: Iterable[DatasetFacts]
) -> bool:
    """Add the datasets that an MLflow run lacks as its inputs; return whether there were any."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    logged_datasets = set()
    if run.inputs:
        for dataset_input in run.inputs.dataset_inputs:
            logged_datasets.add((dataset_input.dataset.name, dataset_input.dataset.digest))
    new_inputs = []
    for facts in datasets:
        if (facts.name, facts.digest) in logged_datasets:
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
    if not new_inputs:
        return False
    client.log_inputs(run.info.run_id, new_inputs)
    return True


def commit_tags(commit: str | None) -> dict[str, str]:
    """Return the tags of an MLflow run that name the commit of the code.

    Args:
        commit: The hash of the commit, with `+` if there were uncommitted changes, and perhaps a
            remark after a space. None if it is not known.
    """
    if not commit:
        return {}
    commit_hash = commit.split()[0].rstrip("+")
    return {"commit": commit, COMMIT: commit_hash}


def complete_run(
    client: "MlflowClient",
    run: "MlflowRun",
    tags: Mapping[str, str],
    points: Sequence[Point],
    scores: Mapping[str, float],
) -> bool:
    """Add the values that an MLflow run lacks, and replace the values that have changed.

    Args:
        client: MLflow's client.
        run: The run.
        tags: The tags of the run. A value UNKNOWN replaces no other value.
        points: The points of the learning curves, timed from the start of the run.
        scores: The metrics of the whole run, by name.

    Returns:
        Whether anything was added or replaced.
    """
    from mlflow.entities import Metric, RunTag

    new_metrics = []
    updates_by_metric = logged_updates(client, run, {point.name for point in points})
    for point in points:
        if point.update not in updates_by_metric.get(point.name, set()):
            milliseconds = run.info.start_time + point.time
            new_metrics.append(Metric(point.name, point.value, milliseconds, point.update))
    # Without the names and values that are logged, the new and the changed scores remain.
    new_scores = sorted(scores.items() - run.data.metrics.items())
    now_milliseconds = int(time.time() * 1000)
    for name, value in new_scores:
        new_metrics.append(Metric(name, value, now_milliseconds, step=0))
    new_tags = []
    for tag, text in sorted(tags.items() - run.data.tags.items()):
        if text != UNKNOWN or tag not in run.data.tags:
            new_tags.append(RunTag(tag, text))
    client.log_batch(run.info.run_id, metrics=new_metrics, tags=new_tags)
    return bool(new_metrics or new_tags)


def logged_updates(
    client: "MlflowClient", run: "MlflowRun", metric_names: Iterable[str]
) -> dict[str, set[int]]:
    """Return the updates at which metrics of an MLflow run were logged, by the metric's name.

    Args:
        client: MLflow's client.
        run: The run.
        metric_names: The names of the metrics. Those that the run does not have are left out.
    """
    updates_by_metric = {}
    for name in metric_names:
        if name in run.data.metrics:
            history = client.get_metric_history(run.info.run_id, name)
            updates_by_metric[name] = {metric.step for metric in history}
    return updates_by_metric
