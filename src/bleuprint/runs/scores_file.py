"""The scores of a run: what stages have written of them, read, checked and joined."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.schema import read_record
from bleuprint.scoring.metric import MetricValue, parse_statistics
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.own_metrics import is_own_metric
from bleuprint.scoring.record import SCORES_FILE, SetScores

# The statistics of a line: whole numbers. Those of at most 18 digits fit into 64 bits.
_WHOLE_NUMBERS = re.compile(r"-?[0-9]{1,18}( -?[0-9]{1,18})*")


def read_scores(settings: Settings, run: Run, folder: Path) -> dict[str, SetScores]:
    """Read the scores of a run from the files of all stages that compute scores.

    The stage `score` writes the scores of metrics such as BLEU and chrF to scores.json. A learned
    metric, such as COMET, is a model; it has its own stage and file.

    Args:
        settings: The settings of the experiment.
        run: The run: a system that is trained on a corpus with one seed.
        folder: The folder of its results.

    Returns:
        The scores by test set. The scores of learned metrics come last.

    Raises:
        UserError: A file is missing or damaged, a learned metric scored other translations than the
            stage `score` did, or params.yaml now names another model for it.
    """
    scores = _read_file(folder / SCORES_FILE)
    for metric in METRICS.values():
        for name, model in settings.metric_models(metric.key).items():
            # `stage` returns STAGE@SYSTEM-CORPUS-SEED. In dvc.yaml, the stage of a learned metric
            # is called STAGE@MODEL-SYSTEM-CORPUS-SEED.
            stage = settings.stage(metric.stage, *run).replace("@", f"@{name}-")
            path = folder / f"{metric.stage}.json"
            _add_model_scores(scores, path, model.sha256, stage)
    return scores


def _add_model_scores(
    scores: dict[str, SetScores], path: Path, model_sha256: str, stage: str
) -> None:
    """Add the scores of a learned metric, such as COMET, to the scores of scores.json.

    Args:
        scores: The scores by test set, from scores.json; changed in place.
        path: The file with the scores of the learned metric, which is a model.
        model_sha256: The SHA-256 of the model that params.yaml names.
        stage: The stage that wrote the file, for messages.

    Raises:
        UserError: The file has scores of other translations, or another model computed them.
    """
    all_model_scores = _read_file(path)
    for test, set_scores in scores.items():
        model_scores = all_model_scores.get(test)
        differing_hash = _first_differing_hash(model_scores, set_scores, model_sha256)
        if model_scores is None or differing_hash:
            raise UserError(
                f"{path}: {differing_hash} of {test} differs from {SCORES_FILE} or params.yaml. "
                f"Run: dvc repro --force --single-item {stage}"
            )
        set_scores["metrics"] += model_scores["metrics"]


def _first_differing_hash(
    model_scores: SetScores | None, scores: SetScores, model_sha256: str
) -> str:
    """Compare what a learned metric has scored with what the other metrics have scored.

    Both scores come with hashes of the sources, the references and the translations (hypotheses).
    The scores of a learned metric also come with the hash of its model.

    Args:
        model_scores: The scores of the learned metric on a test set; None if there are none.
        scores: The scores of the other metrics on the same test set.
        model_sha256: The SHA-256 of the model that params.yaml names.

    Returns:
        The name of the first hash that differs, such as `references`; an empty text if all hashes
        are equal.
    """
    expected_hashes: dict[str, Any] = {**scores, "scored_with": model_sha256}
    model_hashes: dict[str, Any] = {}
    if model_scores is not None:
        model_hashes = {**model_scores}
    for name in ("sources", "references", "hypotheses", "scored_with"):
        if model_hashes.get(name) != expected_hashes[name]:
            return name
    return ""


def _read_file(path: Path) -> dict[str, SetScores]:
    """Read a file of scores by test set, and check it.

    Raises:
        UserError: The file is missing.
        DamagedFile: A field has a wrong value.
    """
    scores = read_record(dict[str, SetScores], path)
    for test, set_scores in scores.items():
        for position, value in enumerate(set_scores["metrics"]):
            problem = _describe_wrong_statistics(value)
            if problem:
                field = f"{test}.metrics.{position}.statistics"
                raise DamagedFile(path, f"field {field}: {problem}")
    return scores


def _describe_wrong_statistics(value: MetricValue) -> str:
    """Check the statistics from which the value of a metric was computed.

    For each line of the test set, there is a row of whole numbers; for BLEU these are counts of
    n-grams. The value of the metric is computed from the sums over all rows. The rows are stored,
    because significance tests between two systems need them.

    Returns:
        What is wrong with the statistics; an empty text if nothing is wrong.
    """
    rows = value["statistics"]
    if not rows:  # Some metrics have no statistics.
        return ""
    is_own = is_own_metric(value["metric"])
    if not is_own and value["metric"] not in METRICS:
        return f"the metric {value['metric']!r} must not have statistics"
    # A row is a text such as "12 7 3 1", whose numbers are separated by single spaces.
    row_length = rows[0].count(" ") + 1
    for number, row in enumerate(rows):
        if not _WHOLE_NUMBERS.fullmatch(row):
            return f"row {number} is not a list of whole numbers"
        if row.count(" ") + 1 != row_length:
            return f"row {number} and row 0 differ in length"
    if is_own:
        # The value is not computed. Own code may have been removed or edited since the scores were
        # written, and need not be able to compute a value from one row: it may divide by a count
        # that is 0 there.
        return ""
    metric = METRICS[value["metric"]]
    # Try to compute the metric from the first row. This fails if the row has too few or too many
    # numbers for the metric.
    first_row: MetricValue = {**value, "statistics": rows[:1]}
    try:
        # A single line may have a count of 0, by which the metric divides.
        with np.errstate(all="ignore"):
            metric.overall_value(parse_statistics(first_row))
    except (ValueError, LookupError):
        return f"{value['metric']} cannot be computed from rows of {row_length} numbers"
    return ""
