"""What MLflow's page shows of an experiment: a note, and a view with the columns that matter.

A view that MLflow's "Share" button saves is a tag of the experiment, and so is ours.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.scoring.metrics import METRICS
from bleuprint.tracking.runs import NOTE

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

VIEW = "bleuprint"
# A score is called bleu/SET: a narrow column shows the beginning.
SCORES = tuple(METRICS)


def is_score(metric: str) -> bool:
    """Whether a metric is a score of a test set."""
    return metric.partition("/")[0] in SCORES


def decorate(
    client: "MlflowClient", experiment: "Experiment", settings: Settings, scores: Sequence[str]
) -> bool:
    """Set the experiment's view, and its note unless it has one; returns whether that is new."""
    held, identity = experiment.tags, experiment.experiment_id
    tags = {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": next(s for s in scores if s.startswith("bleu/")),
        "mlflow.experiment.primaryMetric.greaterIsBetter": "True",
        f"mlflow.sharedViewState.{VIEW}": json.dumps(_view(scores)),
        NOTE: held.get(NOTE, _note(settings, identity)),
    }
    new = {name: text for name, text in tags.items() if held.get(name) != text}
    for name, text in new.items():
        client.set_experiment_tag(identity, name, text)
    return bool(new)


def _view(scores: Sequence[str]) -> dict[str, object]:
    metrics = [name for kind in ("bleu/", "chrf/") for name in scores if name.startswith(kind)]
    columns = [f"metrics.`{name}`" for name in [*metrics, "total/teraflop", "total/seconds"]]
    return {
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "searchFilter": "",
        "datasetsFilter": [],
        "selectedColumns": [*columns, "params.`parameters`", "tags.`seed`"],
    }


def _note(settings: Settings, experiment: str) -> str:
    systems, corpora = ", ".join(settings.systems), ", ".join(settings.corpora)
    runs = f"#/experiments/{experiment}/runs?workflowType=machine_learning"
    return (
        f"[Scores and costs]({runs}&viewStateShareKey={VIEW}), "
        f"[all curves]({runs}&compareRunsMode=CHART): {systems} on {corpora}.\n\n"
        "Run `report` holds the report page. A run is a training, with the scores of the decoding "
        "in `params.yaml`; below it are all its decodings. Group by the tag `bleuprint.group` for "
        "means over seeds."
    )
