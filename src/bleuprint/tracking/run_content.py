"""Collect what the MLflow run of a training should show, from the outputs of the stages.

`collect_content` is the entry point; sync.py writes the content to MLflow.
"""

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bleuprint.config.paths import Run
from bleuprint.runs.results import Results
from bleuprint.runtime.files import report_as_damage, sha256_of
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.output_errors import ANY_ERROR
from bleuprint.scoring.record import SetScores
from bleuprint.tracking import runs
from bleuprint.tracking.datasets import describe_datasets, may_be_copied
from bleuprint.tracking.runs import UNKNOWN, Point, RunDescription
from bleuprint.tracking.timings import read_training_cost
from bleuprint.training.history import Curves

# The table with the training times of the committed results. A clone that has pulled the results
# has not measured them itself.
_COSTS = Path("reports", "costs.csv")
# The metric that counts the lines with any output error. It is the only error count that a run
# shows: all twelve of them would hide the scores in MLflow's comparisons.
_LINES_WITH_ERRORS = "test_lines_with_errors"


@dataclass(frozen=True)
class Measurement:
    """The duration of a training, and the machine and the software with which it was measured.

    Attributes:
        seconds: The duration of the training in seconds.
        device: The processor or GPU.
        versions: The versions of the software; None if they were not recorded.
        commit: The Git commit of the project; None if it was not recorded.
    """

    seconds: float
    device: str
    versions: str | None
    commit: str | None


@dataclass(frozen=True)
class RunContent:
    """The content of the MLflow run of a training.

    Attributes:
        description: The training, which identifies the MLflow run.
        tags: The tags of the MLflow run, such as the device.
        metrics: The totals of the training and, if `has_scores`, the scores of its translations.
        has_scores: Whether the translations have been scored.
        points: The points of the learning curves, timed from the start of the run.
        seconds: The duration of the training; None if nobody measured it.
        hypotheses: The translation files that may be copied into MLflow as artifacts.
    """

    description: RunDescription
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    has_scores: bool
    points: tuple[Point, ...]
    seconds: float | None
    hypotheses: tuple[Path, ...]

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of the whole content.

        An MLflow run whose tag `outputs` has this value is up to date. So the keys below must not
        be renamed without need: all runs would be logged again.
        """
        description = self.description
        content = {
            "name": description.name,
            "note": description.note,
            "params": dict(description.params),
            "found_by": description.tags,
            "datasets": [asdict(dataset) for dataset in description.datasets],
            "tags": dict(self.tags),
            "metrics": dict(self.metrics),
            "points": [(point.name, point.update, point.value) for point in self.points],
            "hypotheses": {path.name: sha256_of(path) for path in self.hypotheses},
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def collect_content(results: Results, scores: Mapping[str, SetScores]) -> RunContent:
    """Return what the MLflow run of a training should show.

    Args:
        results: The outputs of the stages.
        scores: The scores of these outputs by test set; empty if they have not been scored.

    Raises:
        UserError: An output is damaged.
    """
    training = results.training
    measurement = _find_measurement(results.run, training.fingerprint)
    tags = {"device": UNKNOWN, "versions": UNKNOWN, "commit": UNKNOWN}
    all_metrics = {
        # In this unit, MLflow shows all digits of the number.
        "total/teraflop": training.flops / 1e12,
        "total/target_tokens": float(training.target_tokens),
    }
    seconds = None
    if measurement is not None:
        seconds = measurement.seconds
        all_metrics["total/seconds"] = measurement.seconds
        tags["device"] = measurement.device
        tags["versions"] = measurement.versions or UNKNOWN
        tags.update(runs.commit_tags(measurement.commit))
    if training.early_end:
        tags["early_end"] = str(training.early_end)
    all_metrics.update(score_metrics(results.run.corpus, scores))
    return RunContent(
        description=describe_results(results),
        tags=tags,
        metrics=all_metrics,
        has_scores=bool(scores),
        points=_curve_points(results.curves, seconds),
        seconds=seconds,
        hypotheses=_copied_hypotheses(results, scores),
    )


def describe_results(results: Results) -> RunDescription:
    """Return the description of a training, which identifies its MLflow run.

    Args:
        results: The outputs of the stages.
    """
    training = results.training
    return RunDescription.for_run(
        settings=results.settings,
        run=results.run,
        fingerprint=training.fingerprint,
        parameters=training.parameters,
        datasets=describe_datasets(results.run.corpus, training.data),
    )


def score_metrics(corpus: str, scores: Mapping[str, SetScores]) -> dict[str, float]:
    """Return scores as metrics of MLflow, by the name METRIC/CORPUS/TEST_SET.

    MLflow draws one chart per name. The names contain the corpus, because scores on different texts
    or in different languages cannot be compared.

    Args:
        corpus: The name of the corpus.
        scores: The scores by test set.
    """
    values = {}
    for test_set, set_scores in scores.items():
        for score in set_scores["metrics"]:
            metric = score["metric"]
            # The score of the whole test set has an empty group. Other groups are parts of the test
            # set, or statistics by document.
            is_whole_set = score["group"] == ""
            if not is_whole_set or metric not in METRICS:
                continue
            if metric == ANY_ERROR:
                values[f"{_LINES_WITH_ERRORS}/{corpus}/{test_set}"] = score["value"]
            elif METRICS[metric].kind in ("score", "figure"):
                values[f"{metric}/{corpus}/{test_set}"] = score["value"]
    return values


def _copied_hypotheses(results: Results, scores: Mapping[str, SetScores]) -> tuple[Path, ...]:
    """Return the translation files that were scored; empty if they must not be copied."""
    run = results.run
    if not may_be_copied(results.settings, run.system, run.corpus):
        return ()
    return tuple(results.files(test_set)["hypotheses"] for test_set in scores)


def _curve_points(curves: Curves | None, seconds: float | None) -> tuple[Point, ...]:
    """Return the points of the learning curves.

    The time of each update is not recorded. The updates are therefore spaced evenly over the
    duration of the training, which ends with the last validation.

    Args:
        curves: The learning curves; None if the run has none.
        seconds: The duration of the training in seconds. If it is not known, all points are at
            the start of the run.
    """
    if curves is None:
        return ()
    milliseconds_per_update = 0.0
    if seconds:
        last_update = curves.validation[-1].update
        milliseconds_per_update = 1000 * seconds / last_update
    points = []
    for training_entry in curves.training:
        points += _points_at_update("train", vars(training_entry), milliseconds_per_update)
    for validation_entry in curves.validation:
        points += _points_at_update("valid", vars(validation_entry), milliseconds_per_update)
    return tuple(points)


def _points_at_update(
    curve: str, values: Mapping[str, Any], milliseconds_per_update: float
) -> list[Point]:
    """Return one point for each value that was measured at one update.

    Args:
        curve: The name of the curve, `train` or `valid`.
        values: The values by name, with the update under `update`.
        milliseconds_per_update: The mean duration of an update.
    """
    update = values["update"]
    time = round(milliseconds_per_update * update)
    points = []
    for name, value in values.items():
        is_position = name in ("update", "tokens")  # the horizontal axis of a curve
        if not is_position and value is not None:
            points.append(Point(f"{curve}/{name}", value, time, update))
    return points


def _find_measurement(run: Run, training_sha256: str) -> Measurement | None:
    """Return the duration of a training, from this machine or else from reports/costs.csv.

    Args:
        run: The run of the training.
        training_sha256: The fingerprint of the training. Measurements of an earlier training of
            the same run have another one and are ignored.
    """
    timing = read_training_cost(run, training_sha256)
    if timing:
        return Measurement(timing.seconds, timing.device, timing.versions, timing.commit)
    if not _COSTS.exists():
        return None
    with report_as_damage(_COSTS), _COSTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["training_sha256"] == training_sha256 and row["train_seconds"]:
                return Measurement(
                    seconds=float(row["train_seconds"]),
                    device=row["device"] or UNKNOWN,
                    versions=row["versions"] or None,
                    commit=row["commit"] or None,
                )
    return None
