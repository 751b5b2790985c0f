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
from bleuprint.report.score_texts import SIGNIFICANT_MARK, format_difference, is_significant
from bleuprint.report.seed_variance import largest_seed_difference
from bleuprint.scoring.metrics import BESIDE_BLEU, METRICS
from bleuprint.scoring.minimum_for_test import MIN_MATCHED_4_GRAMS, MIN_SENTENCES, TOO_FEW_SENTENCES

# A 95% confidence interval extends this many standard errors to each side.
_STANDARD_ERRORS_OF_95_PERCENT = 1.96
# Training costs that differ by less than 5% are not worth a sentence.
_SIMILAR_COST = 0.05


class Finding(NamedTuple):
    """A finding or a warning in the summary of the HTML report.

    Attributes:
        title: What was found, in bold, such as `wmt14: big is 1.2 BLEU better than base`.
        text: The evidence, in a sentence or a few.
    """

    title: str
    text: str


def best_systems(scores: pd.DataFrame, deviations: Mapping[str, float]) -> Iterator[Finding]:
    """Yield a finding for each test set: which system is best, and whether this is significant.

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.
        deviations: How much BLEU varies over seeds: the standard deviation on each test set, by
            the SHA-256 of its references, if it is known from other experiments.
    """
    tasks = [task for task, _, _ in by_test_set(scores)]
    for task, test, scores_of_test in by_test_set(scores):
        has_one_test_set = tasks.count(task) == 1
        test_set = task if has_one_test_set else f"{task}, {test}"
        yield _best_system(test_set, scores_of_test, deviations)


def _best_system(test_set: str, scores: pd.DataFrame, deviations: Mapping[str, float]) -> Finding:
    """Return the finding on the best system of one test set, the one with the highest BLEU.

    The finding says no more than the evidence allows: whether the system is the only one, could not
    be tested, is significantly better than the baseline, or perhaps not better.

    Args:
        test_set: The name of the test set, for the title.
        scores: The scores of all systems on the test set.
        deviations: The standard deviation of BLEU over seeds, by the SHA-256 of the references.
    """
    rows = bleu_rows(scores)
    best = max(rows, key=lambda row: row.value)
    why_untested = _why_untested(best, rows)
    if why_untested:
        return Finding(f"{test_set}: {why_untested}", _explain_untested(why_untested, best))
    if len(rows) == 1:
        title = f"{test_set}: {display_name(best)} is the only system"
        return Finding(title, f"BLEU {best.score_text}")
    # All systems except the baseline have a difference from it.
    is_baseline = pd.isna(best.difference)
    if is_baseline:
        title = f"{test_set}: no system is better than the baseline {display_name(best)}"
        return Finding(title, f"BLEU {best.score_text}")
    baseline = next(row for row in rows if row.row_name == best.baseline)
    if best.mark == SIGNIFICANT_MARK:
        return _significant_finding(test_set, best, baseline, scores, deviations)
    return _uncertain_finding(test_set, best, baseline, scores)


def _why_untested(best: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Return why a test set cannot show which system is best, such as too few sentences.

    Args:
        best: The BLEU of the best system.
        rows: The BLEU of all systems on the test set.

    Returns:
        The reason why no significance test is made; empty if a test is made.
    """
    row_names = {row.row_name for row in rows}
    is_compared = best.baseline in row_names
    if is_compared:
        return best.why_untested
    # The best system is the baseline itself. It is enough if one system is tested against it.
    reasons = [row.why_untested for row in rows if row.baseline in row_names]
    is_any_tested = "" in reasons
    if is_any_tested or not reasons:
        return ""
    return reasons[0]


def _explain_untested(why_untested: str, best: ScoreRow) -> str:
    """Return the sentence that explains why no difference on a test set is tested.

    Args:
        why_untested: The reason: `TOO_FEW_SENTENCES`, that is, too few sentences, or else too low
            scores.
        best: The BLEU of the best system.
    """
    if why_untested == TOO_FEW_SENTENCES:
        return f"{best.lines} sentences; a test over sentences needs {MIN_SENTENCES}."
    return (
        f"All systems match fewer than {MIN_MATCHED_4_GRAMS} 4-grams of the references. The "
        f"highest BLEU is {best.score_text}."
    )


def _uncertain_finding(
    test_set: str, best: ScoreRow, baseline: ScoreRow, scores: pd.DataFrame
) -> Finding:
    """Return the finding on a best system that may not really be better than the baseline.

    Its difference from the baseline is not significant. Or it is significant when tested alone, but
    not after the p-values are corrected for the number of compared systems.

    Args:
        test_set: The name of the test set, for the title.
        best: The BLEU of the best system.
        baseline: The BLEU of the baseline.
        scores: The scores of all systems on the test set, in all metrics.
    """
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
    """Return the finding on a best system that is significantly better than the baseline.

    Args:
        test_set: The name of the test set, for the title.
        best: The BLEU of the best system.
        baseline: The BLEU of the baseline.
        scores: The scores of all systems on the test set, in all metrics.
        deviations: The standard deviation of BLEU over seeds, by the SHA-256 of the references.
    """
    size = _size_of_difference(best)
    scope = _scope_of_difference(best, baseline)
    title = f"{test_set}: {display_name(best)} is {size} BLEU better than {best.baseline}{scope}"
    are_trained = best.is_trained and baseline.is_trained
    evidence = _evidence(best, are_trained, deviations.get(best.references_sha256))
    contradiction = _contradicting_metrics(best.row_name, scores)
    cost = _cost_comparison(best, baseline) if are_trained else ""
    return Finding(title, f"{evidence}.{contradiction}{cost}")


def _size_of_difference(best: ScoreRow) -> str:
    """Return the difference of a system from the baseline as text without its sign, as `1.2`."""
    is_marked_significant = best.mark != ""
    text = format_difference(abs(best.difference), is_marked_significant)
    return text.removeprefix("+")


def _scope_of_difference(best: ScoreRow, baseline: ScoreRow) -> str:
    """Return the words that limit `big is 1.2 BLEU better than base` to what was compared.

    With one seed, only two training runs were compared: ` in these two trainings`. If a system is
    external, these are two files of translations: ` in these two translations`. With several seeds,
    the statement holds without a limit for trained systems. An external system was compared with
    the translations of each seed: ` against each of 3 seeds`.

    Args:
        best: The BLEU of the best system.
        baseline: The BLEU of the baseline.
    """
    are_trained = best.is_trained and baseline.is_trained
    if best.seeds > 1:
        return "" if are_trained else f" against each of {best.seeds} seeds"
    compared = "trainings" if are_trained else "translations"
    return f" in these two {compared}"


def _evidence(best: ScoreRow, are_trained: bool, estimated_deviation: float | None) -> str:
    """Return how a significant difference was tested, and whether other noise may explain it.

    A test over seeds ignores that other test lines may show another difference, and a test over
    lines ignores that other seeds may show another one. So the difference is compared with the size
    of the noise that its test ignores, as in `Significant over the test lines (p=0.012), but within
    seed variance, as estimated from reports/ (0.9 BLEU): it may be chance`.

    Args:
        best: The BLEU of the best system.
        are_trained: Whether both systems are trained, and neither is only a file of translations.
        estimated_deviation: The standard deviation of BLEU over seeds in other experiments; None
            if it is not known.
    """
    p_value = format_p_value(best.p)
    is_tested_over_seeds = pd.notna(best.difference_deviation)
    if is_tested_over_seeds:
        sampling_error = _STANDARD_ERRORS_OF_95_PERCENT * best.standard_error
        noise_name = f"the sampling error of {best.lines:,} test lines"
        comparison = _compare_with_noise(best.difference, sampling_error, noise_name)
        return f"Significant over {best.seeds} seeds ({p_value}), {comparison}"
    text = f"Significant over the test lines ({p_value})"
    if not are_trained:
        return text
    if estimated_deviation is None:
        return f"{text}; how much another seed would change it is not known"
    seed_noise = largest_seed_difference(estimated_deviation)
    noise_name = "seed variance, as estimated from reports/"
    return f"{text}, {_compare_with_noise(best.difference, seed_noise, noise_name)}"


def _compare_with_noise(difference: float, noise: float, noise_name: str) -> str:
    """Return the words that say whether a difference in BLEU is larger than a source of noise.

    Args:
        difference: The difference in BLEU.
        noise: The difference in BLEU that the noise alone exceeds in 5% of cases.
        noise_name: The source of the noise, such as `the sampling error of 3,003 test lines`.
    """
    if abs(difference) > noise:
        return f"and beyond {noise_name} ({noise:.1f} BLEU)"
    return f"but within {noise_name} ({noise:.1f} BLEU): it may be chance"


def _contradicting_metrics(row_name: str, scores: pd.DataFrame) -> str:
    """Return a sentence with the metrics that contradict BLEU; empty if there are none.

    By these metrics, such as chrF, the baseline is significantly better than the system with the
    best BLEU.

    Args:
        row_name: The name of the system's table row.
        scores: The scores of all systems on the test set, in all metrics.
    """
    scores_of_system = scores[scores.row_name == row_name]
    contradictions = []
    # Of all metrics, only those count that the summary shows next to BLEU.
    for metric in BESIDE_BLEU:
        for row in score_rows(select_metric(scores_of_system, metric)):
            is_worse = row.difference < 0  # In these metrics, higher is better.
            if is_worse and is_significant(row.difference, row.p):
                difference = format_difference(row.difference, is_significant=True)
                contradictions.append(f"{METRICS[metric].label} {difference}{row.mark}")
    if not contradictions:
        return ""
    return f" Metrics that favor the baseline: {', '.join(contradictions)}."


def _cost_comparison(best: ScoreRow, baseline: ScoreRow) -> str:
    """Return a sentence on how much more the training of a system costs than the baseline's.

    The cost is the number of floating-point operations. The sentence is empty if both cost about
    the same.

    Args:
        best: The BLEU and the training cost of the best system.
        baseline: The BLEU and the training cost of the baseline.
    """
    ratio = best.training_flops / baseline.training_flops
    is_similar = abs(ratio - 1) < _SIMILAR_COST
    if is_similar:
        return ""
    # Two digits, such as 0.51 or 1.9. A large ratio keeps all digits, such as 1,234.
    times = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f" Training {best.row_name} costs {times} times the FLOPs of {baseline.row_name}."
