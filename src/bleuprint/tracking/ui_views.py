"""What MLflow's page shows of an experiment: a note, and a view with the columns that matter.

A view that MLflow's "Share" button saves is a tag of the experiment, and so is ours.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.scoring.metrics import METRICS
from bleuprint.tracking.run_names import DIFFERS
from bleuprint.tracking.runs import NOTE

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

VIEW = "bleuprint"
# A metric of a test set is called KIND/CORPUS/SET; sorted by name, as MLflow does, they are first.
SCORES = tuple(METRICS)
_OF_TEST_SET = (*SCORES, "comet", "loss", "perplexity", "test_faulty_lines")
_SHOWN = ("bleu", "chrf", "comet", "loss", "perplexity")
# Pixels of the columns of names and scores; MLflow cuts at 100.
_ALWAYS = {"attributes.`Run Name`": 125, "runDateAndNestInfo": 110}
_SEED, _DIFFERS, _SCORE = 50, 85, 110


def is_score(metric: str) -> bool:
    """Whether a metric is a score of a test set."""
    return metric.partition("/")[0] in SCORES


def is_of_test_set(metric: str) -> bool:
    """Whether a metric is a score, or the loss or faults, of a test set."""
    return metric.partition("/")[0] in _OF_TEST_SET


def address(experiment: str) -> str:
    """The part of the view's address after the server's; `experiment`: its id."""
    return f"{_runs(experiment)}&viewStateShareKey={VIEW}"


def decorate(
    client: "MlflowClient", experiment: "Experiment", settings: Settings, metrics: Sequence[str]
) -> bool:
    """Set the experiment's view, and its note unless it has one; returns whether that is new.

    `metrics`: those of test sets; without any there is nothing to set.
    """
    if not metrics:
        return False
    held, identity = experiment.tags, experiment.experiment_id
    tags = {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": next(m for m in metrics if m.startswith("bleu/")),
        "mlflow.experiment.primaryMetric.greaterIsBetter": "True",
        f"mlflow.sharedViewState.{VIEW}": json.dumps(_view(settings, metrics)),
        NOTE: held.get(NOTE, _note(settings, identity)),
    }
    new = {name: text for name, text in tags.items() if held.get(name) != text}
    for name, text in new.items():
        client.set_experiment_tag(identity, name, text)
    return bool(new)


def _view(settings: Settings, metrics: Sequence[str]) -> dict[str, object]:
    seed = ["seed"] if len(settings.seeds) > 1 else []
    tags = [f"tags.`{name}`" for name in ("system", "corpus", *seed, DIFFERS)]
    scores = [
        f"metrics.`{name}`" for kind in _SHOWN for name in metrics if name.startswith(f"{kind}/")
    ]
    widths = {
        **_ALWAYS,
        "tags.`system`": _width("system", *settings.systems),
        "tags.`corpus`": _width("corpus", *settings.corpora),
        "tags.`seed`": _SEED,
        f"tags.`{DIFFERS}`": _DIFFERS,
        **dict.fromkeys(scores, _SCORE),
    }
    costs = ["params.`parameters`", "metrics.`total/teraflop`", "metrics.`total/seconds`"]
    columns = [*tags, *scores, *costs]
    return {
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "searchFilter": "tags.system != ''",  # all but the report
        "datasetsFilter": [],
        "selectedColumns": columns,
        "columnOrder": [*_ALWAYS, *columns],
        "columnWidths": widths,
    }


def _width(*texts: str) -> int:
    """Enough for the longest of some short texts."""
    return min(25 + 7 * max(map(len, texts)), 200)


def _runs(experiment: str) -> str:
    return f"#/experiments/{experiment}/runs?workflowType=machine_learning"


def _note(settings: Settings, experiment: str) -> str:
    systems, corpora = ", ".join(settings.systems), ", ".join(settings.corpora)
    every = _runs(experiment)
    return (
        f"[Scores and costs]({address(experiment)}), "
        f"[all curves]({every}&compareRunsMode=CHART): {systems} on {corpora}.\n\n"
        "Run `report` holds the report page. A run is a training, with the scores of the decoding "
        "in `params.yaml`; if there are others, they are below it. Group by the tag "
        "`bleuprint.group` for means over seeds."
    )
