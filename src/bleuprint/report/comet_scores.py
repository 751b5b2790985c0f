"""COMET of translations for the records: scores, intervals, paired tests.

Scores are multiplied by 100, as in papers and in the table of Kocmi et al. 2024.
"""

from collections.abc import Iterable
from math import fsum
from typing import Any

import pandas as pd

from bleuprint.comet.score import CometScores, read_comet
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.metrics import DIGITS
from bleuprint.scoring.significance import PairedTest, mean_interval, paired_test_of_means
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations

POINTS = 100
# By which a score may be outside its interval, since both are rounded.
ROUNDING = 1e-3


def comet_columns(run: ScoredTranslations, test: str) -> dict[str, Any]:
    """The columns of COMET; None where params.yaml names no model."""
    names = ("comet", "comet_low", "comet_high", "comet_signature")
    if not run.settings.comet:
        return dict.fromkeys(names)
    scores = comet_scores(run, test)
    low, high = mean_interval(_points(scores))
    values = round(POINTS * scores["score"], DIGITS), low, high, scores["signature"]
    return dict(zip(names, values, strict=True))


def paired_comet(run: ScoredTranslations, baseline: ScoredTranslations, test: str) -> PairedTest:
    """The test of the difference from the baseline, over the lines of the test set."""
    return paired_test_of_means(*(_points(comet_scores(each, test)) for each in (baseline, run)))


def comet_scores(run: ScoredTranslations, test: str) -> CometScores:
    """COMET of a test set.

    Raises UserError if it is of other files, of another model, or contradicts itself.
    """
    assert run.settings.comet
    ((name, model),) = run.settings.comet.items()
    path, cell = run.comet, "-".join(map(str, run.cell))
    of_run = f"comet@{name}-{cell}"
    if not isinstance(run, CellResults):
        of_run = f"comet_outside@{name}-{run.cell.corpus}"
    again = f"run: dvc repro --force --single-item {of_run}"
    content, scored = read_comet(path), run.scores_of(test)
    if test not in content:
        raise UserError(f"{path}: no test set {test!r}; {again}")
    scores = content[test]
    for side in ("sources", "references", "hypotheses"):
        if scores[side] != scored[side]:
            raise UserError(f"{path}: of other {side} of {test} than scores.json; {again}")
    if scores["model"] != model.sha256:
        raise UserError(f"{path}: of a model with SHA-256 {scores['model']}, not {name}'s; {again}")
    mean = fsum(scores["segments"]) / max(len(scores["segments"]), 1)
    if len(scores["segments"]) != scored["lines"] or abs(mean - scores["score"]) > ROUNDING / 100:
        raise UserError(f"{path}: {scores['score']} on {test} is not that of its lines; {again}")
    return scores


def one_model(runs: Iterable[ScoredTranslations], test: str) -> str:
    """The model, if all cells were scored by the same version of the same one; otherwise empty."""
    runs = list(runs)
    if not all(run.settings.comet for run in runs):
        return ""
    found = {
        (each["signature"], each["model"]) for run in runs for each in [comet_scores(run, test)]
    }
    return next(iter(found))[0].split("|")[3] if len(found) == 1 else ""


def check_one_signature(records: pd.DataFrame) -> None:
    """Raise UserError if the cells were scored by different versions of COMET."""
    if len(signatures := records.comet_signature.dropna().unique()) > 1:
        raise UserError(
            f"COMET of different versions: {' and '.join(signatures)}; to score all again by one: "
            "dvc repro --force --single-item comet"
        )


def _points(scores: CometScores) -> list[float]:
    return [POINTS * score for score in scores["segments"]]
