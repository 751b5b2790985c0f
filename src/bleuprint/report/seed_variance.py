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
    """Return the difference in BLEU that 95% of pairs of training runs stay below.

    The runs of a pair differ in their seed only, so a smaller difference between two systems may
    come from the seed.

    Args:
        deviation: The standard deviation of BLEU over seeds.
    """
    # The difference of two independent values has twice the variance of one value.
    deviation_of_differences = deviation * sqrt(2)
    return _DEVIATIONS_OF_95_PERCENT * deviation_of_differences


def estimate_deviations(root: Path = Path()) -> dict[str, float]:
    """Estimate the standard deviation of BLEU over seeds, from all reports of a project.

    Each system with several seeds gives an estimate of the variance on its test sets. The median
    of these estimates counts, so that one unstable system does not decide it.

    Args:
        root: The project's folder. Its reports are in reports/ and the folders below.

    Returns:
        The deviation on each test set, by the SHA-256 of its references.
    """
    variances_by_references = defaultdict[str, list[float]](list)
    for path in sorted((root / REPORTS).rglob(RESULTS.name)):
        try:
            records = read_without_costs(path)
        except UserError:  # Written by another version, or damaged.
            continue
        for references_sha256, variance in _variance_estimates(records):
            variances_by_references[references_sha256].append(variance)
    deviations = {}
    for references_sha256, variances in variances_by_references.items():
        deviations[references_sha256] = sqrt(median(variances))
    return deviations


def _variance_estimates(records: Records) -> list[tuple[str, float]]:
    """Estimate the variance of BLEU over seeds, once for each system with several seeds.

    The sample variance of few values is skewed: more often too low than too high. It is scaled so
    that its median, in place of its mean, is the true variance, since the caller takes a median.

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
            # Sample variance * degrees of freedom / true variance follows chi-squared.
            chi_squared_median = float(chdtri(degrees_of_freedom, 0.5))
            variance = degrees_of_freedom / chi_squared_median * seed_scores.var()
            estimates.append((references_sha256, variance))
    return estimates
