"""The texts of scores and differences in tables: `31.1 [30.1, 33.1]`, `+8.7‡ p=0.001`."""

from math import isnan

from bleuprint.report.paired import format_p_value
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL

# The mark of a difference that is significant when tested alone.
SIGNIFICANT_ALONE_MARK = "†"
# The mark of a difference that stays significant after Holm's correction for all systems.
SIGNIFICANT_MARK = "‡"


def is_significant(difference: float, p_value: float) -> bool:
    """Return whether a difference is significant when tested alone.

    If many systems are compared, some differ by chance; a correction for this is a further step.

    Args:
        difference: The difference from the baseline.
        p_value: Its p-value; NaN if it is not tested. NaN is not smaller than any number, so the
            difference is then not significant.
    """
    return bool(p_value < SIGNIFICANCE_LEVEL and difference != 0)


def significance_mark(difference: float, p_value: float, corrected_p_value: float) -> str:
    """Return the mark of a difference in tables: ‡, † or nothing.

    ‡ marks a difference that stays significant after the correction for all compared systems, and †
    one that is significant only when tested alone.

    Args:
        difference: The difference from the baseline; NaN if it is not known.
        p_value: Its p-value; NaN if it is not tested.
        corrected_p_value: The p-value after Holm's correction; NaN if it is not tested.
    """
    if not is_significant(difference, p_value):
        return ""
    is_significant_corrected = corrected_p_value < SIGNIFICANCE_LEVEL
    return SIGNIFICANT_MARK if is_significant_corrected else SIGNIFICANT_ALONE_MARK


def format_score(value: float, deviation: float, ci_low: float, ci_high: float, digits: int) -> str:
    """Return a score as text, with its deviation or its interval if it has one.

    Examples are `31.5 ± 2.1`, `31.1 [30.1, 33.1]` and `31.1`.

    Args:
        value: The score; with several seeds the mean.
        deviation: The standard deviation over seeds; NaN with one seed.
        ci_low: The lower end of the 95% confidence interval; NaN if there is none.
        ci_high: The upper end of the interval.
        digits: The number of decimals.
    """
    if not isnan(deviation):
        # Counts of lines are printed without decimals, but their mean over seeds needs one.
        digits = max(digits, 1)
        return f"{value:.{digits}f} ± {deviation:.{digits}f}"
    if not isnan(ci_low):
        return f"{value:.{digits}f} [{ci_low:.{digits}f}, {ci_high:.{digits}f}]"
    return f"{value:.{digits}f}"


def format_difference(difference: float, is_significant: bool) -> str:
    """Return a difference between two scores with its sign and one decimal, such as `+8.7`.

    A small but significant difference, such as 0.004, gets as many decimals as it needs to differ
    from zero: `+0.004` in place of `+0.0`.

    Args:
        difference: The difference.
        is_significant: Whether it is significant.
    """
    decimals = 1
    if is_significant and difference != 0:
        while float(f"{difference:.{decimals}f}") == 0:
            decimals += 1
    # The option z of the format writes -0.04 as +0.0, and not as -0.0.
    return f"{difference:+z.{decimals}f}"


def format_tested_difference(difference: float, mark: str, p_value: float) -> str:
    """Return a difference with its significance mark and p-value, such as `+8.7‡ p=0.001`.

    A difference that is not significant is shown as `-0.2 n.s. p=0.410`.

    Args:
        difference: The difference; NaN if it is not known, which gives an empty text.
        mark: Its significance mark; empty if it is not significant.
        p_value: Its p-value; NaN if it is not tested, which gives the difference alone.
    """
    if isnan(difference):
        return ""
    text = format_difference(difference, is_significant=mark != "")
    if isnan(p_value):
        return text
    significance = mark or " n.s."  # Not significant.
    return f"{text}{significance} {format_p_value(p_value)}"
