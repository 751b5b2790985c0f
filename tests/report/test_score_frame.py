"""Means over seeds, differences and their significance, checked by hand and against SciPy."""

import math
import random
import statistics

import pytest
from scipy.stats import ttest_rel

from bleuprint.config.published import Published
from bleuprint.report.notes import all_notes
from bleuprint.report.paired import holm_correction, largest_p_value, paired_t_test
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.score_frame import bleu_rows, computed_scores, score_frame
from result_rows import compared_with, record, records_from_rows, score_of


def bleu_agreement(difference):
    """Return the percentage of people who prefer the better system (Kocmi et al. 2024)."""
    return pytest.approx(88.33333333333225 / (1 + math.exp(-0.96639269 * difference)))


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        # Sorted, they are 0.005 * 4, 0.01 * 3, 0.03 * 2 and 0.04 * 1, which is raised to 0.06.
        pytest.param([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02], id="four"),
        pytest.param([0.6, 0.7], [1.0, 1.0], id="at most 1"),
        pytest.param([0.02, 0.02], [0.04, 0.04], id="equal"),
        pytest.param([0.2], [0.2], id="one"),
        pytest.param([], [], id="none"),
    ],
)
def test_holms_correction_by_hand(p_values, corrected):
    """The smallest of n p-values is multiplied by n, the next by n - 1; none is below the last."""
    assert holm_correction(p_values) == pytest.approx(corrected)


def step_down_rejections(p_values):
    """Return the indices of the hypotheses that Holm's procedure rejects at 5 % (Holm 1979)."""
    rejected = set()
    ordered = sorted(range(len(p_values)), key=p_values.__getitem__)
    for step, index in enumerate(ordered):
        if p_values[index] >= 0.05 / (len(p_values) - step):
            break  # This hypothesis and all with larger p-values are kept.
        rejected.add(index)
    return rejected


def test_corrected_p_values_below_5_percent_are_what_holms_procedure_rejects():
    """Holm (1979) compares sorted p-values with 5 % / n, 5 % / (n - 1) and so on.

    `step_down_rejections` does that. `holm_correction` corrects the p-values, so that each can be
    compared with 5 %, and must reject the same ones. There are 200 random families of 1 to 7.
    """
    rng = random.Random(1)
    for _ in range(200):
        count = rng.randint(1, 7)
        p_values = [rng.random() ** 3 for _ in range(count)]  # mostly small, as in experiments

        corrected_p_values = holm_correction(p_values)

        rejected = set()
        for index, p_value in enumerate(corrected_p_values):
            if p_value < 0.05:
                rejected.add(index)
        assert rejected == step_down_rejections(p_values)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_the_paired_t_test_is_that_of_scipy(seeds):
    """Two systems have random BLEU scores with each seed."""
    rng = random.Random(seeds)
    better = [rng.gauss(30.4, 1) for _ in range(seeds)]
    worse = [rng.gauss(30, 1) for _ in range(seeds)]
    differences = [first - second for first, second in zip(better, worse, strict=True)]

    p_value = paired_t_test(differences)

    assert p_value == pytest.approx(ttest_rel(better, worse).pvalue, rel=1e-9)


@pytest.mark.parametrize("sign", [pytest.param(1, id="better"), pytest.param(-1, id="worse")])
def test_the_paired_t_test_agrees_with_a_printed_table(sign):
    """For 2 degrees of freedom, tables list 4.303 as the two-sided 5 % point of t.

    Three differences m - 1, m and m + 1 have the mean m and the standard deviation 1, and so
    t = m / (1 / sqrt 3).
    """
    t = sign * 4.303
    m = t / math.sqrt(3)

    p_value = paired_t_test([m - 1, m, m + 1])

    assert p_value == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize(
    "differences", [[0.0, 0.0, 0.0], [0.5, 0.5]], ids=["no difference", "equal differences"]
)
def test_equal_differences_have_a_p_value_of_1(differences):
    """Their deviation is 0, so t cannot be computed."""
    assert paired_t_test(differences) == 1.0


@pytest.fixture(scope="module")
def one_seed():
    """Return the records of the baseline base and two other systems on two test sets."""
    return records_from_rows(
        record("base", "news-en-de", "first", bleu=30.0),
        record("base", "news-en-de", "second", bleu=20.0),
        record(
            "good",
            "news-en-de",
            "first",
            bleu=32.5,
            **compared_with("base", p=0.01, randomization=0.02),
        ),
        record("good", "news-en-de", "second", bleu=21.0, **compared_with("base", p=0.04)),
        record("fair", "news-en-de", "first", bleu=29.0, **compared_with("base", p=0.03)),
        record("fair", "news-en-de", "second", bleu=20.0, **compared_with("base", p=1.0)),
    )


@pytest.fixture(scope="module")
def one_seed_bleu(one_seed):
    """Return the rows of BLEU in the score frame, by system and test set."""
    rows = {}
    for row in bleu_rows(score_frame(one_seed)):
        rows[row.system, row.test] = row
    return rows


def test_scores_are_in_the_order_of_the_records(one_seed_bleu):
    """Tables list systems as params.yaml does: here base, good and fair, not sorted by name."""
    assert list(one_seed_bleu) == [
        ("base", "first"),
        ("base", "second"),
        ("good", "first"),
        ("good", "second"),
        ("fair", "first"),
        ("fair", "second"),
    ]


def test_the_baseline_has_no_difference(one_seed_bleu):
    assert math.isnan(one_seed_bleu["base", "first"].difference)
    assert math.isnan(one_seed_bleu["base", "second"].difference)


@pytest.mark.parametrize(
    ("row", "difference", "p", "p_holm", "mark"),
    [
        pytest.param(("good", "first"), 2.5, 0.01, 0.02, "‡", id="significant after correction"),
        pytest.param(("good", "second"), 1.0, 0.04, 0.08, "†", id="significant before correction"),
        pytest.param(("fair", "first"), -1.0, 0.03, 0.03, "‡", id="significantly worse"),
        pytest.param(("fair", "second"), 0.0, 1.0, 1.0, "", id="not significant"),
    ],
)
def test_one_seed_is_tested_by_the_bootstrap_and_corrected_on_each_test_set(
    one_seed_bleu, row, difference, p, p_holm, mark
):
    """On each of two test sets, the systems good and fair are tested against base.

    Of two p-values, Holm's correction doubles the smaller one.
    """
    score = one_seed_bleu[row]

    assert score.baseline == "base"
    assert score.difference == difference
    assert score.p == p
    assert score.p_holm == p_holm
    assert score.mark == mark


def test_one_seed_has_a_standard_error_but_no_deviation(one_seed_bleu):
    """The standard error over lines is 0.5 in these records; a deviation needs several seeds."""
    for row, score in one_seed_bleu.items():
        assert math.isnan(score.deviation), row
        assert math.isnan(score.difference_deviation), row
        if score.system != "base":
            assert score.standard_error == 0.5, row


def test_one_seed_keeps_its_value_and_interval(one_seed_bleu):
    """The record of `good` says BLEU 32.5 [31.5, 34.5]; several seeds would be averaged."""
    score = one_seed_bleu["good", "first"]

    assert score.value == 32.5
    assert score.ci_low == 31.5
    assert score.ci_high == 34.5


def test_human_agreement_depends_on_the_size_of_a_significant_difference(one_seed_bleu):
    assert one_seed_bleu["good", "first"].agreement == bleu_agreement(2.5)
    assert one_seed_bleu["good", "second"].agreement == bleu_agreement(1.0)
    assert one_seed_bleu["fair", "first"].agreement == bleu_agreement(1.0)  # 1.0 below base


def test_human_agreement_is_unknown_for_a_difference_that_is_not_significant(one_seed_bleu):
    assert math.isnan(one_seed_bleu["fair", "second"].agreement)


def test_human_agreement_has_other_coefficients_for_chrf2(one_seed):
    """Human agreement: the percentage of people who would also prefer the better system.

    Kocmi et al. (2024) fitted a curve for chrF2 and none for TER. The difference is 1.0 in both.
    """
    chrf2 = score_of(one_seed, "good", "chrf2", test="second")
    ter = score_of(one_seed, "good", "ter", test="second")

    expected_for_chrf2 = 93 / (1 + math.exp(-1.1142732 * 1.0))
    assert chrf2.agreement == pytest.approx(expected_for_chrf2, abs=1e-5)
    assert math.isnan(ter.agreement)


BASE_BLEU = (30.0, 31.0, 29.5)
GOOD_BLEU = (31.0, 32.5, 30.2)  # 1.0, 1.5 and 0.7 above


@pytest.fixture(scope="module")
def three_seeds():
    """Return the records of three systems with three seeds; `same` has the scores of base."""
    rows = []
    for seed in (1, 2, 3):
        rows.append(record("base", "news-en-de", "only", bleu=BASE_BLEU[seed - 1], seed=seed))
    for seed in (1, 2, 3):
        bleu = GOOD_BLEU[seed - 1]
        rows.append(
            record(
                "good", "news-en-de", "only", bleu=bleu, seed=seed, **compared_with("base", p=0.9)
            )
        )
    for seed in (1, 2, 3):
        bleu = BASE_BLEU[seed - 1]
        rows.append(
            record(
                "same", "news-en-de", "only", bleu=bleu, seed=seed, **compared_with("base", p=0.9)
            )
        )
    return records_from_rows(*rows)


def test_the_seeds_of_a_system_become_one_row(three_seeds):
    rows = bleu_rows(score_frame(three_seeds))

    assert [row.system for row in rows] == ["base", "good", "same"]
    assert [row.seeds for row in rows] == [3, 3, 3]


def test_the_value_of_several_seeds_is_their_mean(three_seeds):
    """`good` has BLEU 31.0, 32.5 and 30.2. In each record, chrF2 is 20 higher, and TER 9 lower."""
    mean_bleu = (31.0 + 32.5 + 30.2) / 3

    assert score_of(three_seeds, "good").value == pytest.approx(mean_bleu)
    assert score_of(three_seeds, "good", "chrf2").value == pytest.approx(mean_bleu + 20)
    assert score_of(three_seeds, "good", "ter").value == pytest.approx(mean_bleu - 9)


def test_several_seeds_have_a_deviation_but_no_interval(three_seeds):
    """An interval over lines is that of one training; three trainings differ by their seed, too."""
    score = score_of(three_seeds, "good")

    assert score.deviation == pytest.approx(statistics.stdev([31.0, 32.5, 30.2]))
    assert math.isnan(score.ci_low)
    assert math.isnan(score.ci_high)


def test_several_seeds_are_tested_by_a_paired_t_test(three_seeds):
    """Runs with the same seed are a pair. The p-values over lines, 0.9 for each seed, do not count.

    Two systems are tested; Holm's correction doubles the smaller p-value, that of `good`.
    """
    base_bleu = [30.0, 31.0, 29.5]
    good_bleu = [31.0, 32.5, 30.2]

    score = score_of(three_seeds, "good")

    assert score.difference == pytest.approx((1.0 + 1.5 + 0.7) / 3, abs=1e-6)
    p_value = ttest_rel(good_bleu, base_bleu).pvalue
    assert score.p == pytest.approx(p_value, abs=1e-6)
    assert score.p_holm == pytest.approx(2 * p_value, abs=2e-6)
    assert score.mark == "†"


def test_seeds_with_the_scores_of_the_baseline_are_not_significant(three_seeds):
    """`same` has the BLEU of base with each seed; a t-test of equal differences divides by 0."""
    score = score_of(three_seeds, "same")

    assert score.difference == 0.0
    assert score.p == 1.0
    assert score.p_holm == 1.0
    assert score.mark == ""


@pytest.fixture
def good_with_standard_errors():
    """Return the score of good, whose three seeds have the standard errors 0.2, 0.5 and 1.1."""
    rows = []
    for seed, standard_error in ((1, 0.2), (2, 0.5), (3, 1.1)):
        test = compared_with("base", p=0.9)
        test["tested"]["standard_error"] = standard_error
        rows.append(record("base", "news-en-de", "only", bleu=BASE_BLEU[seed - 1], seed=seed))
        rows.append(
            record("good", "news-en-de", "only", bleu=GOOD_BLEU[seed - 1], seed=seed, **test)
        )
    return score_of(records_from_rows(*rows), "good")


def test_the_standard_error_over_lines_is_the_mean_over_seeds(good_with_standard_errors):
    """The mean, 0.6, is none of the three errors."""
    expected = (0.2 + 0.5 + 1.1) / 3
    assert good_with_standard_errors.standard_error == pytest.approx(expected)


def test_the_deviation_of_a_difference_is_that_of_the_differences_by_seed(
    good_with_standard_errors,
):
    expected = statistics.stdev([1.0, 1.5, 0.7])
    assert good_with_standard_errors.difference_deviation == pytest.approx(expected)


@pytest.mark.parametrize(
    ("differences", "p_values", "largest"),
    [
        pytest.param([1.0, 2.0, 0.5], [0.01, 0.03, 0.02], 0.03, id="same sign"),
        pytest.param([1.0, -2.0], [0.01, 0.01], 1, id="different signs"),
        pytest.param([0.0, 1.0], [1.0, 0.01], 1, id="one is zero"),
    ],
)
def test_the_p_value_of_an_external_system_is_the_largest_over_seeds(
    differences, p_values, largest
):
    """Differences in different directions show nothing, whatever their p-values."""
    assert largest_p_value(differences, p_values) == largest


@pytest.mark.parametrize(
    ("corpus", "p_value", "is_known"),
    [
        pytest.param("news-en-de", 0.01, True, id="significant"),
        pytest.param("news-en-de", 0.2, False, id="not significant"),
        pytest.param("copy-src-tgt", 0.01, False, id="symbols"),
        pytest.param("copy-src-tgt", 0.2, False, id="symbols, not significant"),
    ],
)
def test_human_agreement_is_known_and_explained_for_natural_languages(corpus, p_value, is_known):
    """Human agreement: the percentage of people who would also prefer the better system.

    The corpus `copy` consists of random symbols, whose translations people cannot judge.
    """
    records = records_from_rows(
        record("base", corpus, "only", bleu=30.0),
        record("other", corpus, "only", bleu=32.0, **compared_with("base", p=p_value)),
    )

    has_agreement = not math.isnan(score_of(records, "other").agreement)
    has_note = any(note.startswith("Human agreement") for note in all_notes(records))

    assert has_agreement == is_known
    assert has_note == is_known


def test_an_only_system_has_no_difference():
    """An experiment with one system has no baseline to compare it with."""
    records = records_from_rows(record("base", "news-en-de", "only", bleu=30.0))

    score = score_of(records, "base")

    assert math.isnan(score.difference)
    assert math.isnan(score.p)
    assert score.mark == ""
    assert score.difference_text == ""
    assert score.why_untested == ""


@pytest.fixture
def scores_with_published_number():
    """Return the score frame of base and of a paper's BLEU 31.25 and perplexity 4."""
    records = records_from_rows(record("base", "news-en-de", "only", bleu=30.0))
    number = Published("Paper", "Doe 2020", "news-en-de", "only", 31.25, "intl", perplexity=4.0)
    return score_frame(with_published_numbers(records, [number]))


def test_a_published_number_becomes_rows_of_its_metrics(scores_with_published_number):
    """Paper reports 31.25 BLEU with the tokenizer intl, and the perplexity 4."""
    rows = scores_with_published_number[scores_with_published_number.is_published]

    assert set(rows.row_name) == {"Paper (published)"}
    assert set(rows.task) == {"news-en-de"}
    assert dict(zip(rows.metric, rows.score_text, strict=True)) == {
        "intl": "31.25",
        "loss": f"{math.log(4):.3f}",
        "perplexity": "4.00",
    }


def test_published_numbers_leave_computed_scores_as_they_are(scores_with_published_number):
    without = score_frame(records_from_rows(record("base", "news-en-de", "only", bleu=30.0)))

    assert computed_scores(scores_with_published_number).shape == without.shape
