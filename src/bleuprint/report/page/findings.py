"""The findings in plain sentences: the best system on each test set, and what its test says.

None is stronger than its evidence: with one seed a difference is one of two trainings.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bleuprint.report.paired import p_text
from bleuprint.report.score_frame import (
    bleu_rows,
    by_test_set,
    display_name,
    format_difference,
    is_significant,
    select_metric,
)
from bleuprint.report.seed_variance import seed_difference
from bleuprint.scoring.floor import MIN_MATCHES, MIN_SENTENCES, TOO_FEW
from bleuprint.scoring.metrics import BESIDE_BLEU, METRICS

# Standard errors to each side of a 95% CI.
_Z = 1.96


class Finding(NamedTuple):
    """A title, and a sentence or a few."""

    title: str
    text: str


def best_systems(scores: pd.DataFrame, deviations: Mapping[str, float]) -> Iterator[Finding]:
    """Yield the best system on each test set, and whether it is better than the baseline.

    Args:
        scores: The score frame.
        deviations: The standard deviation of BLEU over seeds by the SHA-256 of the references, as
            far as it is known.
    """
    tasks = [task for task, _, _ in by_test_set(scores)]
    for task, test, of_test in by_test_set(scores):
        place = task if tasks.count(task) == 1 else f"{task}, {test}"
        rows = bleu_rows(of_test)
        best = max(rows, key=lambda row: row.value)
        below = _below_floor(best, rows)
        if below:
            yield Finding(f"{place}: {below}", _why_untested(below, best))
        elif len(rows) == 1:
            title = f"{place}: {display_name(best)} is the only system"
            yield Finding(title, f"BLEU {best.score_text}")
        elif pd.isna(best.difference):
            title = f"{place}: no system is better than the baseline {display_name(best)}"
            yield Finding(title, f"BLEU {best.score_text}")
        else:
            baseline = next(row for row in rows if row.row_name == best.baseline)
            yield _better(place, best, baseline, of_test, deviations)


def _below_floor(best: Any, rows: Sequence[Any]) -> str:
    """Return why nothing is said of the best system; empty if it, or one beside it, was tested."""
    names = {row.row_name for row in rows}
    if best.baseline in names:
        return str(best.why_untested)
    floors = [row.why_untested for row in rows if row.baseline in names]
    return str(floors[0]) if floors and all(floors) else ""


def _why_untested(below: str, best: Any) -> str:
    if below == TOO_FEW:
        return f"{best.lines} sentences; a test over sentences needs {MIN_SENTENCES}."
    why = f"All systems match fewer than {MIN_MATCHES} 4-grams of the references."
    return f"{why} The highest BLEU is {best.score_text}."


def _better(
    place: str, best: Any, baseline: Any, scores: pd.DataFrame, deviations: Mapping[str, float]
) -> Finding:
    """Return the finding on a system with a higher BLEU than the baseline."""
    name = display_name(best)
    is_of_files = not (best.is_trained and baseline.is_trained)
    size = format_difference(abs(best.difference), bool(best.mark)).removeprefix("+")
    pair = _pair_of(best, is_of_files)
    contradiction = _against(best.row_name, scores)
    if best.mark != "‡":
        title = f"{place}: {name} is best, but perhaps not better than {best.baseline}"
        text = f"not significant ({p_text(best.p)}): this test does not tell them apart."
        if best.mark:
            text = (
                f"significant alone ({p_text(best.p)}), not corrected for all systems "
                f"({p_text(best.p_holm)})."
            )
        return Finding(title, f"{size} BLEU above the baseline{pair}: {text}{contradiction}")
    title = f"{place}: {name} is {size} BLEU better than {best.baseline}{pair}"
    evidence = _evidence(best, is_of_files, deviations.get(best.references_sha256))
    cost = "" if is_of_files else _cost(best, baseline)
    return Finding(title, f"{evidence}.{contradiction}{cost}")


def _pair_of(best: Any, is_of_files: bool) -> str:
    """Return of which translations or trainings a difference is."""
    if best.seeds == 1:
        return f" in these two {'translations' if is_of_files else 'trainings'}"
    return f" against each of {best.seeds} seeds" if is_of_files else ""


def _evidence(best: Any, is_of_files: bool, deviation: float | None) -> str:
    """Return what a significant difference was tested against, and what the test omits."""
    if pd.notna(best.difference_deviation):
        lines = f"the sampling error of {best.lines:,} test lines"
        noise = _noise(best.difference, _Z * best.standard_error, lines)
        return f"Significant over {best.seeds} seeds ({p_text(best.p)}), {noise}"
    text = f"Significant over the test lines ({p_text(best.p)})"
    if is_of_files:
        return text
    if deviation is None:
        return f"{text}; how much another seed would change it is not known"
    seeds = "seed variance, as estimated from reports/"
    return f"{text}, {_noise(best.difference, seed_difference(deviation), seeds)}"


def _cost(best: Any, baseline: Any) -> str:
    """Return how much training the better system takes, compared with the baseline.

    Empty if it takes about the same.
    """
    ratio = best.training_flops / baseline.training_flops
    if 0.95 < ratio < 1.05:
        return ""
    times = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f" Training {best.row_name} costs {times} times the FLOPs of {baseline.row_name}."


def _against(name: str, scores: pd.DataFrame) -> str:
    """Return the metrics by which the baseline is significantly better than the row `name`."""
    worse = []
    for metric in BESIDE_BLEU:
        for row in select_metric(scores[scores.row_name == name], metric).itertuples():
            if is_significant(row.difference, row.p) and row.difference < 0:
                difference = format_difference(row.difference, True)
                worse.append(f"{METRICS[metric].label} {difference}{row.mark}")
    return f" Metrics that favor the baseline: {', '.join(worse)}." if worse else ""


def _noise(difference: float, noise: float, name: str) -> str:
    """Return how the difference compares with a noise that its test does not count."""
    if abs(difference) > noise:
        return f"and beyond {name} ({noise:.1f} BLEU)"
    return f"but within {name} ({noise:.1f} BLEU): it may be chance"
