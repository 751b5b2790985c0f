"""How often people prefer the system with the better score (Kocmi et al. 2024, "Navigating the
Metrics Maze: Reconciling Score Magnitudes and Accuracies", ACL 2024).

A logistic function was fitted to ToShip23, Microsoft's pairs of systems with human judgments, of
many languages, and compared with WMT's. For systems unlike those, other text or a small test set it
is a guide to the size of a difference; it says nothing of significance.
"""

import math

from bleuprint.scoring.metric import Agreement

# Of two systems without a difference, half of the judgments are for either.
LOWEST = 50.0
# The head of the percentage in tables.
AGREEMENT_COLUMN = "human agreement"
# How to read the percentage, in one sentence and in full.
AGREEMENT_DEFINITION = (
    "Human agreement is the accuracy of the metric: the share of system pairs with such a Δ in "
    "which people prefer the system with the better score"
)
AGREEMENT_NOTE = (
    f"{AGREEMENT_DEFINITION} (Kocmi et al. 2024). It is an average of their systems, languages and "
    "texts; for other systems, or small test sets, it is only a guide. 50% is chance. ≥ marks the "
    "end of their table; larger values are not extrapolated."
)


def human_agreement(fitted: Agreement, difference: float) -> float:
    """Return in how many per cent of system pairs people prefer the better one.

    Args:
        fitted: The function of the metric.
        difference: The difference of the two systems in the metric.

    Returns:
        A percentage between LOWEST and the end of the authors' table.
    """
    share = fitted.ceiling / (1 + math.exp(-fitted.slope * abs(difference)))
    return min(max(share, LOWEST), fitted.highest)


def agreement_text(fitted: Agreement, per_cent: float) -> str:
    """Return 55%, or ≥ 85% where the table ends."""
    is_at_end = per_cent >= fitted.highest
    return f"{'≥ ' if is_at_end else ''}{per_cent:.0f}%"
