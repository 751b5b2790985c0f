"""The scores of a run: what stages have written of them, read, checked and joined."""

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

# The statistics of a line: whole numbers. Those of at most 18 digits fit into 64 bits.
_WHOLE_NUMBERS = re.compile(r"-?[0-9]{1,18}( -?[0-9]{1,18})*")


def read_scores(settings: Settings, run: Run, folder: Path) -> dict[str, SetScores]:
    """Return the scores of a run by test set: those of scores.json, then those of metric models.

    Args:
        settings: The settings of the experiment.
        run: The run.
        folder: The folder of its results.

    Raises:
        UserError: A file is missing or damaged, or a model scored other translations than the
            stage score, or is another model than that of params.yaml.
    """
    scores = _read_file(folder / SCORES_FILE)
    for metric in METRICS.values():
        for name, model in settings.metric_models(metric.key).items():
            # DVC names a stage of one model score@MODEL-SYSTEM-CORPUS-SEED.
            stage = settings.stage(metric.stage, *run).replace("@", f"@{name}-")
            path = folder / f"{metric.stage}.json"
            _add_model_scores(scores, path, model.sha256, stage)
    return scores


def _add_model_scores(
    scores: dict[str, SetScores], path: Path, model_sha256: str, stage: str
) -> None:
    """Add the metrics of a model's scores to the scores of the stage score.

    Args:
        scores: The scores by test set, which are changed.
        path: The file of the model's scores.
        model_sha256: The SHA-256 of the model in params.yaml.
        stage: The stage that wrote the file, for messages.

    Raises:
        UserError: The file scores other translations, or another model wrote it.
    """
    model_scores = _read_file(path)
    for test, set_scores in scores.items():
        scores_of_set = model_scores.get(test)
        differing_field = _first_difference(scores_of_set, set_scores, model_sha256)
        if scores_of_set is None or differing_field:
            raise UserError(
                f"{path}: {test} has other {differing_field} than {SCORES_FILE} or params.yaml; "
                f"run: dvc repro --force --single-item {stage}"
            )
        set_scores["metrics"] += scores_of_set["metrics"]


def _first_difference(model_scores: SetScores | None, scores: SetScores, model_sha256: str) -> str:
    """Return the first field by which a model's scores are of other translations, or model.

    Args:
        model_scores: The model's scores of a test set; None if there are none.
        scores: The scores of the stage score.
        model_sha256: The SHA-256 of the model in params.yaml.

    Returns:
        The name of the field; an empty text if the scores fit.
    """
    expected_fields: dict[str, Any] = {**scores, "scored_with": model_sha256}
    actual_fields: dict[str, Any] = {}
    if model_scores is not None:
        actual_fields = {**model_scores}
    for field in ("sources", "references", "hypotheses", "scored_with"):
        if actual_fields.get(field) != expected_fields[field]:
            return field
    return ""


def _read_file(path: Path) -> dict[str, SetScores]:
    """Read a file of scores by test set.

    Raises:
        UserError: The file is missing.
        DamagedFile: A field is damaged.
    """
    scores = read_record(dict[str, SetScores], path)
    for test, set_scores in scores.items():
        for position, value in enumerate(set_scores["metrics"]):
            problem = _problem_of_statistics(value)
            if problem:
                field = f"{test}.metrics.{position}.statistics"
                raise DamagedFile(path, f"field {field}: {problem}")
    return scores


def _problem_of_statistics(value: MetricValue) -> str:
    """Return what is wrong with the statistics of a metric's value.

    A metric has as many numbers on each line, such as n-gram counts. The value of a metric is
    computed from their sums.

    Returns:
        A message; an empty text if nothing is wrong.
    """
    lines = value["statistics"]
    if not lines:
        return ""
    if value["metric"] not in METRICS:
        return f"{value['metric']!r} is a metric without statistics"
    for number, line in enumerate(lines):
        if not _WHOLE_NUMBERS.fullmatch(line):
            return f"row {number} is not a list of whole numbers"
        if line.count(" ") != lines[0].count(" "):
            return f"row {number} has another length than row 0"
    metric = METRICS[value["metric"]]
    first_line: MetricValue = {**value, "statistics": lines[:1]}
    try:
        # The sums of one line may be 0, by which a value divides.
        with np.errstate(all="ignore"):
            metric.overall_value(parse_statistics(first_line))
    except (ValueError, LookupError):
        length = lines[0].count(" ") + 1
        return f"rows of {length} numbers are not those of {value['metric']}"
    return ""
