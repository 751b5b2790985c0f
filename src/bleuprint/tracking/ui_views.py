"""How MLflow's page shows an experiment: a note, and a view with the columns that matter.

A view that is shared by MLflow's "Share" button is a tag of the experiment; ours is one, too.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.tracking.runs import NOTE

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

VIEW = "bleuprint"
# A score is called bleu/SET: a narrow column shows the beginning.
SCORES = "bleu", "chrf", "ter"


def is_score(metric: str) -> bool:
    """Whether a metric is of a test set, and no deviation of such."""
    kind, _, test = metric.partition("/")
    return kind in SCORES and bool(test) and not test.endswith("_deviation")


def decorate(
    client: "MlflowClient", experiment: "Experiment", settings: Settings, scores: Sequence[str]
) -> bool:
    """Give the experiment its note, unless it has one, and its view; whether anything is new."""
    first = next(name for name in scores if name.startswith("bleu/"))
    wanted = {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": first,
        "mlflow.experiment.primaryMetric.greaterIsBetter": "True",
        f"mlflow.sharedViewState.{VIEW}": json.dumps(_view(scores)),
    }
    if NOTE not in experiment.tags:
        wanted[NOTE] = _note(settings, experiment.experiment_id)
    new = {name: text for name, text in wanted.items() if experiment.tags.get(name) != text}
    for name, text in new.items():
        client.set_experiment_tag(experiment.experiment_id, name, text)
    return bool(new)


def links(experiment: str) -> tuple[str, str]:
    """The addresses, after the server's, of our columns and of the charts."""
    runs = f"#/experiments/{experiment}/runs?workflowType=machine_learning"
    return f"{runs}&viewStateShareKey={VIEW}", f"{runs}&compareRunsMode=CHART"


def _view(scores: Sequence[str]) -> dict[str, object]:
    metrics = [name for kind in ("bleu/", "chrf/") for name in scores if name.startswith(kind)]
    columns = [
        *(f"metrics.`{name}`" for name in [*metrics, "total/teraflop", "total/seconds"]),
        "params.`parameters`",
        "tags.`seed`",
    ]
    return {
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "searchFilter": "",
        "datasetsFilter": [],
        "selectedColumns": columns,
    }


def _note(settings: Settings, experiment: str) -> str:
    systems, corpora = ", ".join(settings.systems), ", ".join(settings.corpora)
    table, charts = links(experiment)
    return (
        f"[Scores and costs]({table}), [all curves]({charts}): {systems} on {corpora}.\n\n"
        "Run `report` holds the report page. A run is a training; those that differ in their seed "
        "alone are below one run, which holds their means."
    )
