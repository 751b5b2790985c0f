"""Estimates how much BLEU varies over seeds, from the committed reports of this project."""

from collections import defaultdict
from math import sqrt
from pathlib import Path
from statistics import median

from bleuprint.report.frame import (
    REPORTS,
    RESULTS,
    RUN_AND_TEST,
    SYSTEM_AND_TEST,
    Records,
    read_without_costs,
)
from bleuprint.report.score_frame import select_metric
from bleuprint.report.training_costs import trained_runs
from bleuprint.runtime.errors import UserError

# A normally distributed value lies within this many standard deviations in 95% of cases.
_DEVIATIONS_OF_95_PERCENT = 1.96


def largest_seed_difference(deviation: float) -> float:
    """Return how much the BLEU of two training runs may differ only because of their seeds.

    For 95% of pairs of training runs with different seeds and otherwise equal settings, the
    difference is smaller than the result.

    Args:
        deviation: The standard deviation of BLEU over seeds.
    """
    # The difference of two independent values has twice the variance of one value.
    deviation_of_differences = deviation * sqrt(2)
    return _DEVIATIONS_OF_95_PERCENT * deviation_of_differences


def estimate_deviations(root: Path = Path()) -> dict[str, float]:
    """Estimate the standard deviation of BLEU over seeds, from all reports of a project.

    Each system with several seeds gives an estimate of the variance on its test sets. The result is
    their median and not their mean, so that one unstable system has little influence.

    Args:
        root: The project's folder. Its reports are in reports/ and the folders below.

    Returns:
        The deviation on each test set, by the SHA-256 of its references.
    """
    variances_by_references = defaultdict[str, list[float]](list)
    for path in sorted((root / REPORTS).rglob(RESULTS.name)):
        try:
            records = read_without_costs(path)
        except UserError:  # The report was written by another version, or is damaged.
            continue
        for references_sha256, variance in _variance_estimates(records):
            variances_by_references[references_sha256].append(variance)
    deviations = {}
    for references_sha256, variances in variances_by_references.items():
        deviations[references_sha256] = sqrt(median(variances))
    return deviations


def _variance_estimates(records: Records) -> list[tuple[str, float]]:
    """Estimate the variance of BLEU over seeds, once for each system with several seeds.

    The sample variance of few values is more often too low than too high, so the median of several
    estimates, which the caller computes, would be too low, too. Each estimate is scaled to correct
    this: after that, its median is the true variance.

    Args:
        records: The results of a report, as results.json stores them.

    Returns:
        The SHA-256 of the references, and the estimate, for each system and test set.
    """
    # chdtri is the inverse distribution function of chi-squared. scipy.stats would take half a
    # second to load.
    from scipy.special import chdtri

    references = trained_runs(records.runs)[[*RUN_AND_TEST, "references_sha256"]]
    bleu = select_metric(records.metrics, "bleu").merge(references, on=RUN_AND_TEST)
    estimates = []
    for key, seed_scores in bleu.groupby(["references_sha256", *SYSTEM_AND_TEST]).value:
        references_sha256 = key[0]
        degrees_of_freedom = len(seed_scores) - 1
        if degrees_of_freedom > 0:
            # The sample variance, times the degrees of freedom, divided by the true variance, has a
            # chi-squared distribution.
            chi_squared_median = float(chdtri(degrees_of_freedom, 0.5))
            variance = degrees_of_freedom / chi_squared_median * seed_scores.var()
            estimates.append((references_sha256, variance))
    return estimates
