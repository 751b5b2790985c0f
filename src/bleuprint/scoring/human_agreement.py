"""How often people prefer the system with the better score.

By Kocmi et al. 2024, "Navigating the Metrics Maze: Reconciling Score Magnitudes and Accuracies",
ACL 2024. A logistic function was fitted to ToShip23, Microsoft's pairs of systems with human
judgments, of many languages, and compared with WMT's. For other systems, other text or a small test
set it is a guide to the size of a difference; it says nothing about significance.
"""

import math

from bleuprint.scoring.metric import Agreement

# Between two systems without a difference, half of the judgments prefer either.
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
    """Estimate how often people prefer the system that a metric prefers, in percent of all cases.

    A case is two systems that differ as much in the metric. Kocmi et al. (2024) fitted a logistic
    function to human judgments: the larger the difference, the more often people agree with it.

    Args:
        fitted: The function of the metric.
        difference: The difference of two systems in the metric.

    Returns:
        A percentage, at least 50 (chance), and at most the last one in the authors' table: the
            function is not extrapolated.
    """
    percentage = fitted.ceiling / (1 + math.exp(-fitted.slope * abs(difference)))
    return min(max(percentage, LOWEST), fitted.highest)


def agreement_text(fitted: Agreement, percentage: float) -> str:
    """Format how often people agree with a metric: 55%, or ≥ 85% where the authors' table ends.

    Args:
        fitted: The function of the metric, by which the percentage was computed.
        percentage: The percentage of system pairs.
    """
    text = f"{percentage:.0f}%"
    is_end_of_table = percentage >= fitted.highest
    return f"≥ {text}" if is_end_of_table else text
