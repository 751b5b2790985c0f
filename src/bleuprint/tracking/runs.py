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
from bleuprint.tracking.datasets import DatasetDescription

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric
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
    datasets: tuple[DatasetDescription, ...] = ()

    @classmethod
    def for_run(
        cls,
        settings: Settings,
        run: Run,
        fingerprint: str,
        parameters: int,
        datasets: tuple[DatasetDescription, ...] = (),
    ) -> Self:
        """Describe the training of a system on a corpus with a seed, for its MLflow run.

        Args:
            settings: The settings of the experiment.
            run: The system, the corpus and the seed.
            fingerprint: A SHA-256 of everything that decides the result of the training.
            parameters: The number of parameters of the model.
            datasets: The training, validation and test sets of the corpus, as far as they are on
                disk.
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
    def training_tags(self) -> dict[str, str]:
        """The tags that all MLflow runs of this training share.

        One training has several MLflow runs if its model translates with several settings, such as
        two beam sizes.
        """
        tags = {name: str(value) for name, value in self.run._asdict().items()}
        tags[FINGERPRINT] = self.fingerprint
        return tags

    @property
    def tags(self) -> dict[str, str]:
        """The tags that identify one MLflow run: the training, and how its model translates."""
        return {**self.training_tags, "settings": self.settings}

    @property
    def name(self) -> str:
        """The name of the MLflow run: system, corpus and seed."""
        return " ".join(str(part) for part in self.run)

    @property
    def note(self) -> str:
        """The text that MLflow shows on the page of the run: where to find its results."""
        # MLflow renders it as Markdown.
        return (
            f"Row **{self.run.system}** of the table for **{self.run.corpus}** in "
            f"`reports/table.md`, seed {self.run.seed}. The report `reports/index.html` shows its "
            "learning curves, output errors and sentences."
        )


def _run_params(settings: Settings, run: Run, parameters: int) -> dict[str, str]:
    """Return the settings of a training as MLflow parameters, such as `train.max_tokens`: `4096`.

    The names of the corpus's settings begin with `corpus.`.

    Args:
        settings: The settings of the experiment.
        run: The system, the corpus and the seed.
        parameters: The number of parameters of the model.
    """
    system_settings = vars(settings.system_on(run.system, run.corpus))
    params = flatten_settings({**run._asdict(), "parameters": parameters, **system_settings})
    corpus = settings.corpus(run.corpus)
    corpus_settings = corpus.deciding_settings()
    # The paths and URLs of all files would be too many parameters. Instead: how many sentence pairs
    # of each training text are used, and which system translated it if it is synthetic.
    corpus_settings["files"] = {"train": settings.text_params(run.corpus)}
    # For a corpus with several translation directions: on which of them the model is trained.
    corpus_settings.update(corpus.params_of_pairs())
    for key, value in flatten_settings(corpus_settings).items():
        params[f"corpus.{key}"] = value
    return params


def find_run(
    client: "MlflowClient", experiment_id: str, tags: Mapping[str, str]
) -> "MlflowRun | None":
    """Find the newest MLflow run that has all the given tags.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        tags: The values of the tags by name.

    Returns:
        The run; None if no run has all of the tags.
    """
    query = " and ".join(f"tags.{name} = '{value}'" for name, value in tags.items())
    # By default, MLflow returns the newest run first.
    runs = client.search_runs([experiment_id], query, max_results=1)
    return runs[0] if runs else None


def create_run(
    client: "MlflowClient",
    experiment_id: str,
    description: RunDescription,
    tags: Mapping[str, str],
    seconds: float = 0.0,
) -> "MlflowRun":
    """Create an MLflow run for a training.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        description: The training; it has the name of the run and the tags that identify it.
        tags: Additional tags of the run.
        seconds: How long ago the training started; 0 if it starts now.
    """
    start_milliseconds = round(1000 * (time.time() - seconds))
    all_tags = {**description.tags, **tags}
    return client.create_run(experiment_id, start_milliseconds, all_tags, description.name)


def describe_run(client: "MlflowClient", run: "MlflowRun", description: RunDescription) -> bool:
    """Add to an MLflow run the parameters, the datasets and the note that it lacks.

    Nothing that exists is changed. In particular, MLflow shows the note as the description of the
    run, and users may have edited it.

    Args:
        client: MLflow's client.
        run: The MLflow run.
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
    """Add parameters to an MLflow run unless it has parameters of the same name.

    Returns:
        Whether a parameter was added.
    """
    from mlflow.entities import Param

    # Existing values are not compared: MLflow refuses to change a parameter, and it cuts long ones.
    missing_names = sorted(params.keys() - run.data.params.keys())
    if not missing_names:
        return False
    new_params = [Param(name, params[name]) for name in missing_names]
    client.log_batch(run.info.run_id, params=new_params)
    return True


def _add_datasets(
    client: "MlflowClient", run: "MlflowRun", datasets: Iterable[DatasetDescription]
) -> bool:
    """Add datasets to the inputs of an MLflow run, except those that it has already.

    Returns:
        Whether a dataset was added.
    """
    from mlflow.entities import DatasetInput

    logged_datasets = set()
    if run.inputs:
        for dataset_input in run.inputs.dataset_inputs:
            logged_dataset = dataset_input.dataset
            logged_datasets.add((logged_dataset.name, logged_dataset.digest))
    new_inputs: list[DatasetInput] = []
    for dataset in datasets:
        if (dataset.name, dataset.digest) not in logged_datasets:
            new_inputs.append(_mlflow_input(dataset))
    if not new_inputs:
        return False
    client.log_inputs(run.info.run_id, new_inputs)
    return True


def _mlflow_input(dataset: DatasetDescription) -> "DatasetInput":
    """Convert the description of a dataset to an input of an MLflow run.

    Args:
        dataset: The description; its `context` says what the dataset is used for, such as
            `training`.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    size = dataset.size
    profile = {
        "pairs": size.pairs,
        "source_tokens": size.source_tokens,
        "target_tokens": size.target_tokens,
    }
    mlflow_dataset = Dataset(
        name=dataset.name,
        digest=dataset.digest,
        source_type="local",
        source=json.dumps({"uri": dataset.uri}),
        profile=json.dumps(profile),
    )
    context_tag = InputTag("mlflow.data.context", dataset.context)
    return DatasetInput(mlflow_dataset, [context_tag])


def commit_tags(commit: str | None) -> dict[str, str]:
    """Return the tags by which an MLflow run names the Git commit of its code.

    The tag `commit` is the whole text. MLflow's own tag, which its pages show, contains only the
    hash of the first commit: `1f3a9c+ + 7d2e00` becomes `1f3a9c`.

    Args:
        commit: The hash of the commit, followed by `+` if the code had uncommitted changes. If a
            training was resumed with other code, the hashes of all commits, joined by ` + `. None
            if the commit is not known.

    Returns:
        The two tags; an empty mapping if the commit is not known.
    """
    if not commit:
        return {}
    first_commit = commit.split()[0]
    return {"commit": commit, COMMIT: first_commit.rstrip("+")}


def complete_run(
    client: "MlflowClient",
    run: "MlflowRun",
    tags: Mapping[str, str],
    points: Sequence[Point],
    scores: Mapping[str, float],
) -> bool:
    """Log the results of a training that its MLflow run does not show yet, or shows differently.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        tags: The tags by name. A tag with the value UNKNOWN does not replace an existing tag.
        points: The points of the learning curves. Their times are milliseconds since the start of
            the run. A point at an update that was logged before is skipped.
        scores: The metrics of the training as a whole, such as BLEU, by name.

    Returns:
        Whether anything was logged.
    """
    from mlflow.entities import RunTag

    new_metrics = _missing_points(client, run, points) + _new_scores(run, scores)
    new_tags = []
    # A set difference of (name, value) pairs: the tags that are missing or have another value.
    for name, value in sorted(tags.items() - run.data.tags.items()):
        if value != UNKNOWN or name not in run.data.tags:
            new_tags.append(RunTag(name, value))
    client.log_batch(run.info.run_id, metrics=new_metrics, tags=new_tags)
    return bool(new_metrics or new_tags)


def _missing_points(
    client: "MlflowClient", run: "MlflowRun", points: Sequence[Point]
) -> list["Metric"]:
    """Return the points of learning curves that an MLflow run does not have yet.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        points: The points; their times are milliseconds since the start of the run.

    Returns:
        The points as metrics of MLflow; their times are milliseconds since 1970, as in MLflow.
    """
    from mlflow.entities import Metric

    updates_by_metric = logged_updates(client, run, {point.name for point in points})
    metrics = []
    for point in points:
        if point.update not in updates_by_metric.get(point.name, set()):
            milliseconds_since_1970 = run.info.start_time + point.time
            metrics.append(Metric(point.name, point.value, milliseconds_since_1970, point.update))
    return metrics


def _new_scores(run: "MlflowRun", scores: Mapping[str, float]) -> list["Metric"]:
    """Return the scores that an MLflow run lacks or has with another value, as MLflow's metrics."""
    from mlflow.entities import Metric

    now_milliseconds = int(time.time() * 1000)
    # The difference of the pairs (name, value): scores that are missing or have another value.
    new_scores = sorted(scores.items() - run.data.metrics.items())
    return [Metric(name, value, now_milliseconds, step=0) for name, value in new_scores]


def logged_updates(
    client: "MlflowClient", run: "MlflowRun", metric_names: Iterable[str]
) -> dict[str, set[int]]:
    """Return, for each metric, the training updates at which an MLflow run has a value.

    Callers use it to log no value twice. MLflow calls an update a step.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        metric_names: The names of metrics, such as `train/loss`. A metric that the run does not
            have is missing in the result.
    """
    updates_by_metric = {}
    for name in metric_names:
        if name in run.data.metrics:
            history = client.get_metric_history(run.info.run_id, name)
            updates_by_metric[name] = {metric.step for metric in history}
    return updates_by_metric
