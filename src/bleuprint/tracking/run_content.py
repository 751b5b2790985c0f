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

from bleuprint.config.paths import COSTS_CSV, Run
from bleuprint.runs.results import Results
from bleuprint.runtime.file_errors import report_as_damage
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.output_errors import ANY_ERROR
from bleuprint.scoring.record import SetScores
from bleuprint.tracking import runs
from bleuprint.tracking.datasets import describe_datasets, may_be_copied
from bleuprint.tracking.runs import UNKNOWN, Point, RunDescription
from bleuprint.tracking.timings import read_training_cost
from bleuprint.training.history import Curves

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
        """A hash of everything that the MLflow run shows, which tells whether it is up to date.

        It is logged as the tag `outputs`. If an MLflow run has a tag with this value, nothing needs
        to be logged again.
        """
        description = self.description
        # If a key is renamed, all hashes change, and every run is logged once more. The times of
        # points are not part of the hash: they follow from the duration, which is a metric.
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
    """Collect what the MLflow run of a training should show.

    These are its tags (such as the GPU), its metrics (totals of the training, scores), its learning
    curves and the files with its translations.

    Args:
        results: The output files of one training and of the translations by its model.
        scores: The scores of the translations by test set; empty if they were not scored yet.

    Raises:
        UserError: An output file is damaged.
    """
    training = results.training
    measurement = _find_measurement(results.run, training.fingerprint)
    tags = {"device": UNKNOWN, "versions": UNKNOWN, "commit": UNKNOWN}
    metrics = {
        # Not in FLOP: the number would have so many digits that MLflow would round it.
        "total/teraflop": training.flops / 1e12,
        "total/target_tokens": float(training.target_tokens),
    }
    seconds = None
    if measurement is not None:
        seconds = measurement.seconds
        metrics["total/seconds"] = measurement.seconds
        tags["device"] = measurement.device
        tags["versions"] = measurement.versions or UNKNOWN
        tags.update(runs.commit_tags(measurement.commit))
    if training.early_end:
        # A sentence that says why early stopping ended the training.
        tags["early_end"] = str(training.early_end)
    metrics.update(score_metrics(results.run.corpus, scores))
    return RunContent(
        description=describe_results(results),
        tags=tags,
        metrics=metrics,
        has_scores=bool(scores),
        points=_curve_points(results.curves, seconds),
        seconds=seconds,
        hypotheses=_hypotheses_to_copy(results, scores),
    )


def describe_results(results: Results) -> RunDescription:
    """Describe the training that has produced some results, so that its MLflow run can be found.

    Args:
        results: The output files of one training and of the translations by its model.
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
    """Return the scores of whole test sets as MLflow metrics, such as `bleu/news-en-de/newstest`.

    MLflow draws one chart per metric name. The name contains the corpus and the test set, because
    scores on different texts or in different languages cannot be compared.

    Args:
        corpus: The name of the corpus.
        scores: The scores by test set.

    Returns:
        The values by the name METRIC/CORPUS/TEST_SET. Of the statistics about output errors, only
        the number of lines with any error is included: all of them would be too many charts.
    """
    values = {}
    for test_set, set_scores in scores.items():
        for score in set_scores["metrics"]:
            metric = score["metric"]
            # A score with a group is about a part of the test set, such as its long sentences.
            is_of_part = score["group"] != ""
            if is_of_part or metric not in METRICS:
                continue
            if metric == ANY_ERROR:
                values[f"{_LINES_WITH_ERRORS}/{corpus}/{test_set}"] = score["value"]
            elif METRICS[metric].kind in ("score", "figure"):
                values[f"{metric}/{corpus}/{test_set}"] = score["value"]
    return values


def _hypotheses_to_copy(results: Results, scores: Mapping[str, SetScores]) -> tuple[Path, ...]:
    """Return the files with the scored translations, if copying them to MLflow is allowed.

    Args:
        results: The output files of one training and of the translations by its model.
        scores: The scores of the translations by test set.

    Returns:
        One file per test set; none if the license of the texts could forbid copies.
    """
    run = results.run
    if not may_be_copied(results.settings, run.system, run.corpus):
        return ()
    return tuple(results.files(test_set).hypotheses for test_set in scores)


def _curve_points(curves: Curves | None, seconds: float | None) -> tuple[Point, ...]:
    """Return the points of the learning curves, each with an estimate of its time.

    MLflow needs a time for each point, but only the duration of the whole training is known. So
    each update gets the same share of it: in a training of 1000 updates and 50 seconds, update 200
    gets the time 10 seconds.

    Args:
        curves: The training losses and the validation results by update; None if the training has
            recorded none.
        seconds: The duration of the training. If it is None, all points get the time 0.

    Returns:
        The points; their times are milliseconds since the start of the training.
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
    """Return one point for each value that was measured at one update of a training.

    For example, `{"update": 100, "tokens": 25000, "loss": 3.2}` of the curve `train` gives one
    point, the value 3.2 of `train/loss` at update 100. A value that is None was not measured, and
    gets no point.

    Args:
        curve: What the values describe: `train` or `valid`.
        values: The values by name.
        milliseconds_per_update: The mean duration of an update, from which the time of the points
            is computed.
    """
    update = values["update"]
    milliseconds_since_start = round(milliseconds_per_update * update)
    points = []
    for name, value in values.items():
        # The numbers of updates and tokens say where the points are on the horizontal axis.
        is_position = name in ("update", "tokens")
        if not is_position and value is not None:
            points.append(Point(f"{curve}/{name}", value, milliseconds_since_start, update))
    return points


def _find_measurement(run: Run, training_sha256: str) -> Measurement | None:
    """Find the recorded duration of a training, with the machine on which it was measured.

    A training that ran on this machine has recorded it in a file. Otherwise the table of
    costs that is committed with the results is searched.

    Args:
        run: The system, the corpus and the seed that were trained.
        training_sha256: The fingerprint of the training: a SHA-256 of everything that decides its
            result. It tells the training from earlier ones of the same system with other settings.

    Returns:
        None if no duration is recorded for this training.
    """
    measured_here = read_training_cost(run, training_sha256)
    if measured_here:
        return Measurement(
            seconds=measured_here.seconds,
            device=measured_here.device,
            versions=measured_here.versions,
            commit=measured_here.commit,
        )
    if not COSTS_CSV.exists():
        return None
    with report_as_damage(COSTS_CSV), COSTS_CSV.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["training_sha256"] == training_sha256 and row["train_seconds"]:
                return Measurement(
                    seconds=float(row["train_seconds"]),
                    device=row["device"] or UNKNOWN,
                    versions=row["versions"] or None,
                    commit=row["commit"] or None,
                )
    return None
