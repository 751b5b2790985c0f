"""Scores, differences and p-values as text."""

from bleuprint.report.system_results import SIGNIFICANT, Difference, Score


def score_text(score: Score) -> str:
    """91.2 [89.5, 92.9] of one seed; 91.2 ± 0.4 of several."""
    if score.deviation is not None:
        return f"{score.mean:.1f} ± {score.deviation:.1f}"
    return f"{score.mean:.1f} [{score.low:.1f}, {score.high:.1f}]"


def verdict(difference: Difference) -> str:
    """+8.7 ‡ p=0.001, or -0.2 n.s. p=0.410; both tests where they disagree."""
    second = disagreement(difference)
    text = f"{difference.bleu:+.1f} {difference.mark or 'n.s.'} {p_text(difference.p)}"
    return f"{text} ({second})" if second else text


def disagreement(difference: Difference) -> str:
    """randomization p=0.061, if that test decides otherwise; empty if both agree."""
    second = difference.randomisation
    if second is None or (second < SIGNIFICANT) == difference.significant:
        return ""
    return f"randomization {p_text(second)}"


def p_text(p: float) -> str:
    """p=0.012; p<0.001 instead of 0.000."""
    return "p<0.001" if p < 0.0005 else f"p={p:.3f}"
