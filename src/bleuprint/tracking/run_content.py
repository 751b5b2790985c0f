"""What the MLflow run of a cell shows, from the outputs of the cell's stages."""

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from bleuprint.cells.results import Results
from bleuprint.config.paths import Cell
from bleuprint.runtime.files import reading, sha256_of
from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.record import SetScores
from bleuprint.tracking import runs
from bleuprint.tracking.datasets import datasets_of, may_be_copied
from bleuprint.tracking.runs import UNKNOWN, Description, Point
from bleuprint.tracking.timings import read_training
from bleuprint.training.history import Curves

# What was measured of the committed results, for clones that have pulled them.
_COSTS = Path("reports", "costs.csv")
# The metric that counts the lines with any output error: one of a dozen counts, of which the others
# would hide the scores in MLflow's comparisons.
_FAULTY_LINES = "test_faulty_lines"


@dataclass(frozen=True)
class Measured:
    """What was measured of a training, on this machine or where its results were committed."""

    seconds: float
    device: str
    versions: str | None
    commit: str | None


@dataclass(frozen=True)
class RunContent:
    """Everything that the run of a cell shows.

    `metrics` are the totals of the training and, if `has_scores`, the scores of its translations.
    `points` are the metrics of the curves, with times in milliseconds from the start of the run.
    `seconds` is the duration of the training; None if nobody measured it. `hypotheses` are the
    files of translations that may be copied into MLflow, as artifacts.
    """

    description: Description
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    has_scores: bool
    points: tuple[Point, ...]
    seconds: float | None
    hypotheses: tuple[Path, ...]

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of all that the run shows; a run with it as a tag is up to date."""
        description = self.description
        content = {
            "name": description.name,
            "note": description.note,
            "params": dict(description.params),
            "found_by": description.tags,
            "datasets": [asdict(each) for each in description.datasets],
            "tags": dict(self.tags),
            "metrics": dict(self.metrics),
            "points": [(point.name, point.update, point.value) for point in self.points],
            "hypotheses": {path.name: sha256_of(path) for path in self.hypotheses},
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def content_of(results: Results, scores: Mapping[str, SetScores]) -> RunContent:
    """Return what the run of a cell shows.

    Args:
        results: The outputs of the cell.
        scores: Its scores by test set, checked to be of these outputs; empty without scores.

    Raises:
        UserError: If an output is damaged.
    """
    facts, cell = results.training, results.cell
    measured = _measured(cell, facts.fingerprint)
    tags = {"device": UNKNOWN, "versions": UNKNOWN, "commit": UNKNOWN}
    totals = {
        "total/teraflop": facts.flops / 1e12,  # in this unit MLflow shows all digits
        "total/target_tokens": float(facts.target_tokens),
    }
    if measured:
        totals["total/seconds"] = measured.seconds
        tags["device"] = measured.device
        tags["versions"] = measured.versions or UNKNOWN
        tags.update(runs.commit_tags(measured.commit))
    if facts.early_end:
        tags["early_end"] = str(facts.early_end)
    seconds = measured.seconds if measured else None
    return RunContent(
        description=described(results),
        tags=tags,
        metrics={**totals, **metrics(cell.corpus, scores)},
        has_scores=bool(scores),
        points=_points(results.curves, seconds),
        seconds=seconds,
        hypotheses=_hypotheses(results, scores),
    )


def described(results: Results) -> Description:
    """The training of a cell, as its run shows it."""
    facts = results.training
    datasets = datasets_of(results.cell.corpus, facts.data)
    return Description.of(
        results.settings, results.cell, facts.fingerprint, facts.parameters, datasets
    )


def metrics(corpus: str, scores: Mapping[str, SetScores]) -> dict[str, float]:
    """Return the scores of a run as MLflow's metrics, MEASURE/CORPUS/TEST_SET.

    MLflow makes one chart per name, so names contain the corpus: scores on other texts, or in
    another language, cannot be compared.
    """
    named = {}
    for test, of_test in scores.items():
        for each in of_test["measures"]:
            measure = each["measure"]
            if each["group"] or measure not in MEASURES:
                continue
            if measure == ANY:
                named[f"{_FAULTY_LINES}/{corpus}/{test}"] = each["value"]
            elif MEASURES[measure].kind in ("score", "figure"):
                named[f"{measure}/{corpus}/{test}"] = each["value"]
    return named


def _hypotheses(results: Results, scores: Mapping[str, SetScores]) -> tuple[Path, ...]:
    """The translations that were scored, if they may be copied."""
    cell = results.cell
    if not may_be_copied(results.settings, cell.system, cell.corpus):
        return ()
    return tuple(results.files(test)["hypotheses"] for test in scores)


def _points(curves: Curves | None, seconds: float | None) -> tuple[Point, ...]:
    """The points of the curves, spaced evenly over the duration of the training."""
    if curves is None:
        return ()
    pace = 1000 * seconds / curves.validation[-1].update if seconds else 0.0
    entries = [("train", vars(entry)) for entry in curves.training]
    entries += [("valid", vars(entry)) for entry in curves.validation]
    points = []
    for kind, values in entries:
        update = values["update"]
        for name, value in values.items():
            if name not in ("update", "tokens") and value is not None:
                points.append(Point(f"{kind}/{name}", value, round(pace * update), update))
    return tuple(points)


def _measured(cell: Cell, training_sha256: str) -> Measured | None:
    """What was measured of the training with this fingerprint: here, or by reports/costs.csv."""
    here = read_training(cell, training_sha256)
    if here:
        return Measured(here.seconds, here.device, here.versions, here.commit)
    if not _COSTS.exists():
        return None
    with reading(_COSTS), _COSTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["training_sha256"] == training_sha256 and row["train_seconds"]:
                return Measured(
                    seconds=float(row["train_seconds"]),
                    device=row["device"] or UNKNOWN,
                    versions=row["versions"] or None,
                    commit=row["commit"] or None,
                )
    return None
