"""The authors' table of thresholds, and the figures that their tool prints."""

import pytest

from bleuprint.scoring.human_agreement import agreement_text, human_agreement
from bleuprint.scoring.metrics import METRICS

# The functions that were fitted to differences in BLEU and in chrF2.
BLEU = METRICS["bleu"].agreement_of("")
CHRF2 = METRICS["chrf2"].agreement_of("")

# Kocmi et al. 2024, table of thresholds: the difference for 55, 60, ... per cent.
TABLE = {
    "bleu": [0.52, 0.78, 1.06, 1.39, 1.79, 2.34, 3.35],
    "chrf2": [0.33, 0.54, 0.76, 1.00, 1.28, 1.63, 2.12, 3.05],
}


@pytest.mark.parametrize("metric", TABLE)
def test_the_authors_table(metric):
    for step, difference in enumerate(TABLE[metric]):
        for sign in (1, -1):
            found = human_agreement(METRICS[metric].agreement_of(""), sign * difference)
            # rounded to 0.01, of which the steepest slope makes a quarter of a per cent
            assert found == pytest.approx(55 + 5 * step, abs=0.25)


def test_nothing_is_extrapolated():
    # the curve itself begins at 44 and ends at 88
    assert [human_agreement(BLEU, d) for d in (0.0, 0.2, 9.0)] == [50, 50, 85]
    assert human_agreement(CHRF2, 40.0) == 90
    assert [agreement_text(BLEU, each) for each in (50, 54.6, 85)] == ["50%", "55%", "≥ 85%"]
    assert METRICS["chrf2pp"].agreement_of("") is METRICS["ter"].agreement_of("") is None


def test_the_example_of_the_authors_tool():
    """It prints 63.989% for 1.0 BLEU, and that 0.710 chrF2 agree as often."""
    assert human_agreement(BLEU, 1.0) == pytest.approx(63.989, abs=0.01)
    # 0.710 is rounded, and the curve rises by 22% a point
    assert human_agreement(CHRF2, 0.71) == pytest.approx(63.989, abs=0.012)
