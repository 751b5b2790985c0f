"""How often people prefer the system with the better score (Kocmi et al. 2024, "Navigating the
Metrics Maze: Reconciling Score Magnitudes and Accuracies", ACL 2024).

A logistic function was fitted to ToShip23, Microsoft's pairs of systems with human judgments, of
many languages, and compared with WMT's. For systems unlike those, other text or a small test set it
is a guide to the size of a difference; it says nothing of significance.
"""

import math

# a and b of a / (1 + exp(-b d)) per cent for a difference d, as in the authors' mt-thresholds, and
# the last percentage of their table of thresholds: what is above would be extrapolated. COMET's
# models are by name, and their scores multiplied by 100.
COEFFICIENTS = {
    "BLEU": (88.33333333333225, 0.9663926931178954, 85.0),
    "chrF2": (92.999999999972, 1.1142732157139852, 90.0),
    "wmt20-comet-da": (97.33333333332897, 0.7266990738678005, 95.0),
    "wmt22-comet-da": (96.22374133884283, 2.8359194570556636, 95.0),
    "wmt22-cometkiwi-da": (98.88141616584615, 2.719280643871758, 95.0),
    "XCOMET-XL": (96.56738237041118, 1.4535595865214588, 95.0),
    "XCOMET-XXL": (98.93432477039522, 1.1629533711748128, 95.0),
}
# Of two systems without a difference, half of the judgments are for either.
LOWEST = 50.0
# The head of the percentage in tables.
AGREE = "human agreement"
# How to read the percentage, in one sentence and in full.
AGREEMENT_MEANING = (
    "Human agreement is the accuracy of the metric: the share of system pairs with such a Δ in "
    "which people prefer the system with the better score"
)
AGREEMENT = (
    f"{AGREEMENT_MEANING} (Kocmi et al. 2024). It is an average of their systems, languages and "
    "texts; for other systems, or small test sets, it is only a guide. 50% is chance. ≥ marks the "
    "end of their table; larger values are not extrapolated."
)


def human_agreement(metric: str, difference: float) -> float | None:
    """Per cent of system pairs with this difference in which people prefer the better one.

    Between LOWEST and the end of the authors' table; None for a metric without coefficients.
    """
    if metric not in COEFFICIENTS or math.isnan(difference):
        return None
    a, b, highest = COEFFICIENTS[metric]
    return min(max(a / (1 + math.exp(-b * abs(difference))), LOWEST), highest)


def agreement_text(metric: str, per_cent: float) -> str:
    """Return 55%, or ≥ 85% where the table ends."""
    is_at_end = per_cent >= COEFFICIENTS[metric][2]
    return f"{'≥ ' if is_at_end else ''}{per_cent:.0f}%"
