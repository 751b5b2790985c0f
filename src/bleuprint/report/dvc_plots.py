"""The files of DVC's own commands: few numbers for `dvc metrics`, points for `dvc plots`.

dvc.yaml and .dvc/plots/ define the plots, with a column for the system: they need no change for
other systems. There are eight colors.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.frame import Records
from bleuprint.report.page.curves import neighbors
from bleuprint.training.history import Curves

# Points of a training's curve that are drawn, at most.
POINTS = 100


def metrics(records: Records) -> dict[str, Any]:
    """BLEU by system and corpus, and by test set if there are several; means over seeds."""
    by_system: dict[str, Any] = {}
    bleu = records.metrics[(records.metrics.metric == "bleu") & (records.metrics.group == "")]
    for (system, corpus), of_corpus in bleu.groupby(["system", "corpus"], sort=False):
        means = of_corpus.groupby("test", sort=False).value.mean().round(2).to_dict()
        (first, *others) = means.values()
        by_system.setdefault(system, {})[corpus] = means if others else first
    return {"BLEU": by_system}


def training(curves: Mapping[Run, Curves]) -> str:
    """The loss by update, as CSV: the mean of neighbors if there are more than POINTS."""
    form = {"update": "last", "tokens": "last", "loss": "mean"}
    points = {run: pd.DataFrame(of.training, columns=[*form]) for run, of in curves.items()}
    return _csv({run: neighbors(of, POINTS).agg(form) for run, of in points.items()})


def validation(curves: Mapping[Run, Curves]) -> str:
    """Loss and BLEU of the validation set by update, as CSV."""
    return _csv({run: pd.DataFrame(of.validation) for run, of in curves.items()})


def _csv(frames: Mapping[Run, pd.DataFrame]) -> str:
    """The frames of the runs one below the other, after the columns of the run."""
    together = pd.concat(frames, names=Run._fields).droplevel(-1).round(4)
    text: str = together.to_csv(lineterminator="\n")
    return text
