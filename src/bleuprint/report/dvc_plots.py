"""The files that DVC's commands show: scores for `dvc metrics`, curves for `dvc plots`.

dvc.yaml and .dvc/plots/ define the plots, with a column for the system, so they need no change for
other systems. The plots have eight colors.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.frame import Records
from bleuprint.report.page.curves import group_neighbors
from bleuprint.report.score_frame import select_metric
from bleuprint.training.history import Curves

# The largest number of points in the training curve of a run.
POINTS = 100


def bleu_metrics(records: Records) -> dict[str, Any]:
    """Return the content of metrics.json: BLEU by system and corpus, means over seeds.

    A corpus with several test sets has an object with the BLEU of each.

    Args:
        records: The records of the experiment.
    """
    by_system: dict[str, Any] = {}
    bleu = select_metric(records.metrics, "bleu")
    for (system, corpus), rows in bleu.groupby(["system", "corpus"], sort=False):
        means = rows.groupby("test", sort=False).value.mean().round(2).to_dict()
        content = means if len(means) > 1 else next(iter(means.values()))
        by_system.setdefault(system, {})[corpus] = content
    return {"BLEU": by_system}


def training_curves_csv(curves: Mapping[Run, Curves]) -> str:
    """Return the text of training.csv: the training loss of each run by update.

    A curve with more than `POINTS` points is thinned: neighboring points become their mean.

    Args:
        curves: The curves of each run.
    """
    aggregations = {"update": "last", "tokens": "last", "loss": "mean"}
    frames = {}
    for run, curves_of_run in curves.items():
        points = pd.DataFrame(curves_of_run.training, columns=list(aggregations))
        frames[run] = group_neighbors(points, POINTS).agg(aggregations)
    return _csv_text(frames)


def validation_curves_csv(curves: Mapping[Run, Curves]) -> str:
    """Return the text of validation.csv: loss and BLEU of the validation set by update.

    Args:
        curves: The curves of each run.
    """
    frames = {}
    for run, curves_of_run in curves.items():
        frames[run] = pd.DataFrame(curves_of_run.validation)
    return _csv_text(frames)


def _csv_text(frames: Mapping[Run, pd.DataFrame]) -> str:
    """Return the data frames of all runs below each other as CSV, after the columns of the run."""
    # The last level of the index counts the rows of each run, which is of no use to a reader.
    together = pd.concat(frames, names=Run._fields).droplevel(-1).round(4)
    text: str = together.to_csv(lineterminator="\n")
    return text
