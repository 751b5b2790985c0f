"""Reads what the stages have measured of translations, and checks it."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import DamagedFile
from bleuprint.runtime.schema import read_record
from bleuprint.scoring.metric import MetricValue, parse_statistics
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.record import SCORES_FILE, SetScores

# Statistics of a line; numbers of at most 18 digits fit into 64 bits.
_NUMBERS = re.compile(r"-?[0-9]{1,18}( -?[0-9]{1,18})*")


def read_scores(settings: Settings, run: Run, folder: Path) -> dict[str, SetScores]:
    """Return all metrics of a run by test set: those of scores.json, then those of models.

    Args:
        settings: The settings of the experiment.
        run: The run.
        folder: The folder of its results.

    Raises:
        UserError: A file is missing or damaged, or a model scored other translations than the
            stage score, or is another model than that of params.yaml.
    """
    scores = _read(folder / SCORES_FILE)
    for metric in METRICS.values():
        for name, model in settings.metric_models(metric.key).items():
            path = folder / f"{metric.stage}.json"
            stage = settings.stage(metric.stage, *run).replace("@", f"@{name}-")
            _add(scores, path, model.sha256, stage)
    return scores


def _add(scores: dict[str, SetScores], path: Path, model_sha256: str, stage: str) -> None:
    """Add the metrics of the file that `stage` wrote to those of scores.json."""
    of_model = _read(path)
    for test, of_test in scores.items():
        found = of_model.get(test)
        differing = _first_difference(found, of_test, model_sha256)
        if found is None or differing:
            raise UserError(
                f"{path}: {test} has other {differing} than {SCORES_FILE} or params.yaml; run: "
                f"dvc repro --force --single-item {stage}"
            )
        of_test["metrics"] += found["metrics"]


def _first_difference(found: SetScores | None, scores: SetScores, model_sha256: str) -> str:
    """The first field in which a model's scores are not of these translations; "" if they are."""
    expected: dict[str, Any] = {**scores, "scored_with": model_sha256}
    of_model: dict[str, Any] = {} if found is None else {**found}
    for key in ("sources", "references", "hypotheses", "scored_with"):
        if of_model.get(key) != expected[key]:
            return key
    return ""


def _read(path: Path) -> dict[str, SetScores]:
    """Read a file of scores; raises UserError if it is damaged."""
    scores = read_record(dict[str, SetScores], path)
    for test, of_test in scores.items():
        for number, each in enumerate(of_test["metrics"]):
            problem = _wrong_statistics(each)
            if problem:
                raise DamagedFile(path, f"field {test}.metrics.{number}.statistics: {problem}")
    return scores


def _wrong_statistics(measured: MetricValue) -> str:
    """What is wrong with the statistics of a metric; "" if nothing is."""
    rows = measured["statistics"]
    if not rows:
        return ""
    if measured["metric"] not in METRICS:
        return f"{measured['metric']!r} is a metric without statistics"
    for number, row in enumerate(rows):
        if not _NUMBERS.fullmatch(row):
            return f"row {number} is not a list of whole numbers"
        if row.count(" ") != rows[0].count(" "):
            return f"row {number} has another length than row 0"
    try:
        with np.errstate(all="ignore"):
            METRICS[measured["metric"]].overall_value(
                parse_statistics({**measured, "statistics": rows[:1]})
            )
    except (ValueError, LookupError):
        return f"rows of {rows[0].count(' ') + 1} numbers are not those of {measured['metric']}"
    return ""
