"""The findings in plain sentences: the best system on each test set, and how sure this is.

No finding is stronger than its evidence: with one seed, a difference is one between two training
runs, and not between two systems.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from bleuprint.report.paired import format_p_value
from bleuprint.report.score_frame import (
    ScoreRow,
    bleu_rows,
    by_test_set,
    display_name,
    score_rows,
    select_metric,
)
from bleuprint.report.score_texts import SIGNIFICANT, format_difference, is_significant
from bleuprint.report.seed_variance import largest_seed_difference
from bleuprint.scoring.floor import MIN_MATCHES, MIN_SENTENCES, TOO_FEW
from bleuprint.scoring.metrics import BESIDE_BLEU, METRICS

# The standard errors to each side of a 95% confidence interval.
_Z = 1.96
# Training costs that differ by less than 5% are not worth a sentence.
_SIMILAR_COST = 0.05


class Finding(NamedTuple):
    """A finding or a warning of the summary.

    Attributes:
        title: What was found, in bold.
        text: A sentence or a few that give the evidence.
    """

    title: str
    text: str


def best_systems(scores: pd.DataFrame, deviations: Mapping[str, float]) -> Iterator[Finding]:
    """Yield the best system on each test set, and whether it is better than the baseline.

    Args:
        scores: The score frame.
        deviations: The standard deviation of BLEU over seeds, by the SHA-256 of the references, as
            far as it is known from other experiments.
    """
    tasks = [task for task, _, _ in by_test_set(scores)]
    for task, test, scores_of_test in by_test_set(scores):
        has_one_test_set = tasks.count(task) == 1
        test_set = task if has_one_test_set else f"{task}, {test}"
        yield _best_system(test_set, scores_of_test, deviations)


def _best_system(test_set: str, scores: pd.DataFrame, deviations: Mapping[str, float]) -> Finding:
    """Return the finding on the best system of one test set.

    Args:
        test_set: The name of the test set, for the title.
        scores: Its part of the score frame.
        deviations: See `best_systems`.
    """
    rows = bleu_rows(scores)
    best = max(rows, key=lambda row: row.value)
    why_untested = _why_untested(best, rows)
    if why_untested:
        return Finding(f"{test_set}: {why_untested}", _explain_untested(why_untested, best))
    if len(rows) == 1:
        title = f"{test_set}: {display_name(best)} is the only system"
        return Finding(title, f"BLEU {best.score_text}")
    if pd.isna(best.difference):
        title = f"{test_set}: no system is better than the baseline {display_name(best)}"
        return Finding(title, f"BLEU {best.score_text}")
    baseline = next(row for row in rows if row.row_name == best.baseline)
    if best.mark == SIGNIFICANT:
        return _significant_finding(test_set, best, baseline, scores, deviations)
    return _uncertain_finding(test_set, best, baseline, scores)


def _why_untested(best: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Return why the difference of the best system from the baseline is not tested.

    If the baseline is best, the differences of the other systems count.

    Returns:
        The reason; empty if a difference is tested.
    """
    row_names = {row.row_name for row in rows}
    if best.baseline in row_names:
        return best.why_untested
    reasons = [row.why_untested for row in rows if row.baseline in row_names]
    return reasons[0] if reasons and all(reasons) else ""


def _explain_untested(why_untested: str, best: ScoreRow) -> str:
    """Return the evidence of a finding that nothing is tested."""
    if why_untested == TOO_FEW:
        return f"{best.lines} sentences; a test over sentences needs {MIN_SENTENCES}."
    return (
        f"All systems match fewer than {MIN_MATCHES} 4-grams of the references. The highest BLEU "
        f"is {best.score_text}."
    )


def _uncertain_finding(
    test_set: str, best: ScoreRow, baseline: ScoreRow, scores: pd.DataFrame
) -> Finding:
    """Return the finding on a best system that is not significantly better than the baseline."""
    title = f"{test_set}: {display_name(best)} is best, but perhaps not better than {best.baseline}"
    p_value = format_p_value(best.p)
    if best.mark:
        result = (
            f"significant alone ({p_value}), not corrected for all systems "
            f"({format_p_value(best.p_holm)})."
        )
    else:
        result = f"not significant ({p_value}): this test does not tell them apart."
    size = _size_of_difference(best)
    scope = _scope_of_difference(best, baseline)
    contradiction = _contradicting_metrics(best.row_name, scores)
    return Finding(title, f"{size} BLEU above the baseline{scope}: {result}{contradiction}")


def _significant_finding(
    test_set: str,
    best: ScoreRow,
    baseline: ScoreRow,
    scores: pd.DataFrame,
    deviations: Mapping[str, float],
) -> Finding:
    """Return the finding on a best system that is significantly better than the baseline."""
    size = _size_of_difference(best)
    scope = _scope_of_difference(best, baseline)
    title = f"{test_set}: {display_name(best)} is {size} BLEU better than {best.baseline}{scope}"
    are_trained = best.is_trained and baseline.is_trained
    evidence = _evidence(best, are_trained, deviations.get(best.references_sha256))
    contradiction = _contradicting_metrics(best.row_name, scores)
    cost = _cost_comparison(best, baseline) if are_trained else ""
    return Finding(title, f"{evidence}.{contradiction}{cost}")


def _size_of_difference(best: ScoreRow) -> str:
    """Return the size of a difference in BLEU, without its sign."""
    has_mark = best.mark != ""
    return format_difference(abs(best.difference), has_mark).removeprefix("+")


def _scope_of_difference(best: ScoreRow, baseline: ScoreRow) -> str:
    """Return for which translations or training runs a difference holds."""
    are_trained = best.is_trained and baseline.is_trained
    if best.seeds == 1:
        compared = "trainings" if are_trained else "translations"
        return f" in these two {compared}"
    return "" if are_trained else f" against each of {best.seeds} seeds"


def _evidence(best: ScoreRow, are_trained: bool, estimated_deviation: float | None) -> str:
    """Return how a significant difference was tested, and what the test does not cover.

    A test over seeds does not cover the sampling error of the test set, and one over lines does
    not cover seed variance.

    Args:
        best: The best system.
        are_trained: Whether both systems are trained here.
        estimated_deviation: The standard deviation of BLEU over seeds in other experiments; None
            if it is not known.
    """
    p_value = format_p_value(best.p)
    if pd.notna(best.difference_deviation):
        test_lines = f"the sampling error of {best.lines:,} test lines"
        comparison = _compare_with_noise(best.difference, _Z * best.standard_error, test_lines)
        return f"Significant over {best.seeds} seeds ({p_value}), {comparison}"
    text = f"Significant over the test lines ({p_value})"
    if not are_trained:
        return text
    if estimated_deviation is None:
        return f"{text}; how much another seed would change it is not known"
    noise = largest_seed_difference(estimated_deviation)
    seeds = "seed variance, as estimated from reports/"
    return f"{text}, {_compare_with_noise(best.difference, noise, seeds)}"


def _compare_with_noise(difference: float, noise: float, noise_name: str) -> str:
    """Return whether a difference is larger than a noise that its test does not cover.

    Args:
        difference: The difference in BLEU.
        noise: The size of 95% of differences that come from the noise alone.
        noise_name: What the noise comes from.
    """
    if abs(difference) > noise:
        return f"and beyond {noise_name} ({noise:.1f} BLEU)"
    return f"but within {noise_name} ({noise:.1f} BLEU): it may be chance"


def _contradicting_metrics(row_name: str, scores: pd.DataFrame) -> str:
    """Return the metrics by which the baseline is significantly better than a system."""
    scores_of_system = scores[scores.row_name == row_name]
    contradictions = []
    for metric in BESIDE_BLEU:
        for row in score_rows(select_metric(scores_of_system, metric)):
            if row.difference < 0 and is_significant(row.difference, row.p):
                difference = format_difference(row.difference, is_significant=True)
                contradictions.append(f"{METRICS[metric].label} {difference}{row.mark}")
    if not contradictions:
        return ""
    return f" Metrics that favor the baseline: {', '.join(contradictions)}."


def _cost_comparison(best: ScoreRow, baseline: ScoreRow) -> str:
    """Return how many times the training cost of the baseline a system takes.

    Empty if both take about the same.
    """
    ratio = best.training_flops / baseline.training_flops
    if abs(ratio - 1) < _SIMILAR_COST:
        return ""
    times = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f" Training {best.row_name} costs {times} times the FLOPs of {baseline.row_name}."
