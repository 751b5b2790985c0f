"""How much BLEU varies over seeds, as estimated from the reports of this project."""

from collections import defaultdict
from contextlib import suppress
from math import sqrt
from pathlib import Path
from statistics import median

from bleuprint.report.frame import REPORTS, RESULTS, RUN_AND_TEST, read_without_costs, trained_runs
from bleuprint.report.score_frame import SYSTEM_AND_TEST
from bleuprint.runtime.errors import UserError


def seed_difference(deviation: float) -> float:
    """Return the difference that 95% of pairs of training runs stay below.

    Args:
        deviation: The standard deviation of BLEU over seeds.
    """
    return 1.96 * deviation * sqrt(2)


def deviations(root: Path = Path()) -> dict[str, float]:
    """Estimate the standard deviation of BLEU over seeds on each test set.

    The estimate is the median over all systems with several seeds in reports/ and its folders, so
    that one unstable system does not decide it: the root of the median of (n - 1) s^2 / m, where n
    is the number of seeds, s^2 their variance, and m the median of chi-squared with n - 1 degrees
    of freedom.

    Args:
        root: The project's folder.

    Returns:
        The deviations by the SHA-256 of the references.
    """
    from scipy.special import chdtri  # scipy.stats would take half a second to load

    variances = defaultdict[str, list[float]](list)
    for path in sorted((root / REPORTS).rglob(RESULTS.name)):
        with suppress(UserError):
            records = read_without_costs(path)
            bleu = records.metrics.query("metric == 'bleu' and group == ''")
            references_of = trained_runs(records.runs)[[*RUN_AND_TEST, "references_sha256"]]
            scored = bleu.merge(references_of, on=RUN_AND_TEST)
            for group, scores in scored.groupby(["references_sha256", *SYSTEM_AND_TEST]).value:
                freedom = len(scores) - 1
                if freedom > 0:
                    ratio = freedom / float(chdtri(freedom, 0.5))
                    variances[group[0]].append(ratio * scores.var())
    return {references: sqrt(median(values)) for references, values in variances.items()}
