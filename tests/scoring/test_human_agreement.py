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
@pytest.mark.parametrize("sign", [1, -1], ids=["better", "worse"])
def test_the_agreement_of_a_difference_is_that_of_the_authors_table(metric, sign):
    """Human agreement: the percentage of people who would also prefer the better system.

    Kocmi et al. (2024) print a table of the differences that 55, 60, 65, … % of people see.
    """
    agreement_of_metric = METRICS[metric].agreement_of("")

    for step, difference in enumerate(TABLE[metric]):
        percent = human_agreement(agreement_of_metric, sign * difference)

        expected_percent = 55 + 5 * step
        # The table is rounded to 0.01, which is a quarter of a percent where it is steepest.
        assert percent == pytest.approx(expected_percent, abs=0.25)


@pytest.mark.parametrize(
    ("metric", "difference", "expected_percent"),
    [
        pytest.param(BLEU, 0.0, 50, id="no difference in BLEU"),
        pytest.param(BLEU, 0.2, 50, id="a small difference in BLEU"),
        pytest.param(BLEU, 9.0, 85, id="a large difference in BLEU"),
        pytest.param(CHRF2, 40.0, 90, id="a large difference in chrF2"),
    ],
)
def test_agreement_is_not_extrapolated_beyond_the_authors_table(
    metric, difference, expected_percent
):
    """The fitted curve of BLEU begins at 44 % and ends at 88 %, the table at 50 % and 85 %."""
    assert human_agreement(metric, difference) == expected_percent


@pytest.mark.parametrize(("percent", "text"), [(50, "50%"), (54.6, "55%"), (85, "≥ 85%")])
def test_the_highest_agreement_is_printed_as_a_lower_bound(percent, text):
    assert agreement_text(BLEU, percent) == text


@pytest.mark.parametrize("metric", ["chrf2pp", "ter"])
def test_a_metric_that_the_authors_did_not_fit_has_no_agreement(metric):
    assert METRICS[metric].agreement_of("") is None


def test_one_point_of_bleu_agrees_as_often_as_the_authors_tool_prints():
    assert human_agreement(BLEU, 1.0) == pytest.approx(63.989, abs=0.01)


def test_as_many_points_of_chrf2_as_the_authors_tool_prints_agree_as_often_as_one_of_bleu():
    """The tool prints 0.710 chrF2, rounded; there the curve rises by 22 % a point."""
    assert human_agreement(CHRF2, 0.71) == pytest.approx(63.989, abs=0.012)
