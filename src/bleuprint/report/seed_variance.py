"""Estimates how much BLEU varies over seeds, from the committed reports of this project."""

from collections import defaultdict
from math import sqrt
from pathlib import Path
from statistics import median

from bleuprint.report.frame import REPORTS, RESULTS, RUN_AND_TEST, Records, read_without_costs
from bleuprint.report.score_frame import SYSTEM_AND_TEST, select_metric
from bleuprint.report.training_costs import trained_runs
from bleuprint.runtime.errors import UserError

# A normally distributed value lies within this many standard deviations in 95% of cases.
_DEVIATIONS_OF_95_PERCENT = 1.96


def largest_seed_difference(deviation: float) -> float:
    """Return the difference in BLEU that 95% of pairs of training runs stay below.

    Args:
        deviation: The standard deviation of BLEU over seeds.
    """
    deviation_of_differences = deviation * sqrt(2)
    return _DEVIATIONS_OF_95_PERCENT * deviation_of_differences


def estimate_deviations(root: Path = Path()) -> dict[str, float]:
    """Estimate the standard deviation of BLEU over seeds on each test set.

    Each system with several seeds in reports/ or one of its folders gives an estimate of the
    variance. Their median is taken, so that one unstable system does not decide it.

    Args:
        root: The project's folder.

    Returns:
        The deviations by the SHA-256 of the references.
    """
    variances = defaultdict[str, list[float]](list)
    for path in sorted((root / REPORTS).rglob(RESULTS.name)):
        try:
            records = read_without_costs(path)
        except UserError:  # Written by another version, or damaged.
            continue
        for references_sha256, variance in _variance_estimates(records):
            variances[references_sha256].append(variance)
    return {references: sqrt(median(values)) for references, values in variances.items()}


def _variance_estimates(records: Records) -> list[tuple[str, float]]:
    """Return an estimate of the variance of BLEU for each system with several seeds.

    The variance s^2 of n values has a skewed distribution: s^2 (n - 1) / variance follows
    chi-squared with n - 1 degrees of freedom. Dividing by the median m of chi-squared gives
    (n - 1) s^2 / m, whose median is the variance.

    Args:
        records: The records of a report.

    Returns:
        The SHA-256 of the references, and the estimate, for each system and test set.
    """
    from scipy.special import chdtri  # scipy.stats would take half a second to load

    references = trained_runs(records.runs)[[*RUN_AND_TEST, "references_sha256"]]
    bleu = select_metric(records.metrics, "bleu").merge(references, on=RUN_AND_TEST)
    estimates = []
    for key, scores in bleu.groupby(["references_sha256", *SYSTEM_AND_TEST]).value:
        references_sha256 = key[0]
        degrees_of_freedom = len(scores) - 1
        if degrees_of_freedom > 0:
            chi_squared_median = float(chdtri(degrees_of_freedom, 0.5))
            variance = degrees_of_freedom / chi_squared_median * scores.var()
            estimates.append((references_sha256, variance))
    return estimates
