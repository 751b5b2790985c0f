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
MAX_POINTS = 100


def bleu_metrics(records: Records) -> dict[str, Any]:
    """Return the BLEU of each system on each corpus, for metrics.json.

    `dvc metrics show` prints this file. With several seeds, BLEU is their mean. A corpus with
    several test sets has a BLEU for each of them:

        {"BLEU": {"base": {"wmt14": {"newstest2013": 25.1, "newstest2014": 27.3}}}}

    A corpus with one test set has its BLEU alone: `{"BLEU": {"base": {"wmt14": 27.3}}}`.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    bleu_by_system: dict[str, Any] = {}
    bleu = select_metric(records.metrics, "bleu")
    for (system, corpus), rows in bleu.groupby(["system", "corpus"], sort=False):
        mean_bleu = rows.groupby("test", sort=False).value.mean()
        bleu_by_test_set = mean_bleu.round(2).to_dict()
        bleu_by_corpus = bleu_by_system.setdefault(system, {})
        if len(bleu_by_test_set) > 1:
            bleu_by_corpus[corpus] = bleu_by_test_set
        else:
            (only_bleu,) = bleu_by_test_set.values()
            bleu_by_corpus[corpus] = only_bleu
    return {"BLEU": bleu_by_system}


def training_curves_csv(curves: Mapping[Run, Curves]) -> str:
    """Return the training loss of each run at each update, as the text of training.csv.

    `dvc plots` draws a curve for each run, that is, a system trained on a corpus with one seed. To
    keep the file small, a curve has at most `MAX_POINTS` points. If more were recorded, neighboring
    points become one, with the mean of their losses and the last of their updates.

    Args:
        curves: The curves of each run.
    """
    # How each column of a group of neighboring points becomes one number.
    aggregations = {"update": "last", "tokens": "last", "loss": "mean"}
    points_by_run = {}
    for run, curves_of_run in curves.items():
        points = pd.DataFrame(curves_of_run.training, columns=list(aggregations))
        points_by_run[run] = group_neighbors(points, MAX_POINTS).agg(aggregations)
    return _to_csv(points_by_run)


def validation_curves_csv(curves: Mapping[Run, Curves]) -> str:
    """Return loss and BLEU on the validation set at each update, as the text of validation.csv.

    `dvc plots` draws a curve for each run, that is, a system trained on a corpus with one seed.

    Args:
        curves: The curves of each run.
    """
    points_by_run = {}
    for run, curves_of_run in curves.items():
        points_by_run[run] = pd.DataFrame(curves_of_run.validation)
    return _to_csv(points_by_run)


def _to_csv(points_by_run: Mapping[Run, pd.DataFrame]) -> str:
    """Return the points of all runs as one CSV text, with a line for each point.

    The first columns identify the run: system, corpus and seed.
    """
    points = pd.concat(points_by_run, names=Run._fields)
    # The index has the levels system, corpus, seed and the number of the point. The file needs no
    # numbers of points.
    points = points.droplevel(-1).round(4)
    text: str = points.to_csv(lineterminator="\n")
    return text
