"""How much BLEU varies over seeds, as estimated from reports."""

import numpy as np
import pytest

from bleuprint.report.frame import REPORTS, RESULTS
from bleuprint.report.seed_variance import estimate_deviations, largest_seed_difference
from result_rows import changed, record, records_from_rows

# The median of the chi-squared distribution with one degree of freedom, that is, of two seeds.
CHI_SQUARED_MEDIAN = 0.4549364


def two_seeds(system, first_bleu, second_bleu):
    """Return the records of a system whose BLEU with two seeds is given."""
    return [
        record(system, "news-en-de", "first", first_bleu, seed=3),
        record(system, "news-en-de", "first", second_bleu, seed=1),
    ]


@pytest.fixture
def first_report():
    """Return the records of a report with two systems, whose variances over seeds are 0.08."""
    return records_from_rows(*two_seeds("tiny", 30.0, 30.4), *two_seeds("small", 33.0, 33.4))


@pytest.fixture
def second_report():
    """Return the records of a report with two systems, whose variances are 0.72 and 0.08."""
    return records_from_rows(*two_seeds("tiny", 30.0, 31.2), *two_seeds("small", 33.0, 33.4))


def deviation_of(root, records):
    """Return the estimated deviation on the only test set of some records."""
    (references_sha256,) = set(records.runs.references_sha256)
    return estimate_deviations(root)[references_sha256]


def test_the_deviation_over_seeds_is_pooled_over_systems_and_reports(
    tmp_path, first_report, second_report
):
    """Four systems with two seeds have the variances 0.08 and 0.08, and 0.72 and 0.08.

    Their median is 0.08; a mean would follow the outlier 0.72. For two seeds, the variance is
    chi-squared distributed, so its median is divided by that of chi-squared.
    """
    first_report.save(tmp_path / REPORTS / "a" / RESULTS.name)
    second_report.save(tmp_path / REPORTS / "b" / RESULTS.name)

    deviation = deviation_of(tmp_path, first_report)

    median_variance = 0.08
    assert deviation == pytest.approx((median_variance / CHI_SQUARED_MEDIAN) ** 0.5)


def test_a_report_with_one_seed_does_not_change_the_deviation(
    tmp_path, first_report, second_report
):
    """The two other reports give the median variance 0.08; one seed has no variance."""
    one_seed = first_report.select_runs(first_report.runs.seed == 1)
    one_seed.save(tmp_path / RESULTS)
    first_report.save(tmp_path / REPORTS / "a" / RESULTS.name)
    second_report.save(tmp_path / REPORTS / "b" / RESULTS.name)

    deviation = deviation_of(tmp_path, first_report)

    median_variance = 0.08
    assert deviation == pytest.approx((median_variance / CHI_SQUARED_MEDIAN) ** 0.5)


def test_one_seed_has_no_deviation(tmp_path, first_report):
    one_seed = first_report.select_runs(first_report.runs.seed == 1)
    one_seed.save(tmp_path / RESULTS)

    assert estimate_deviations(tmp_path) == {}


def test_an_external_system_does_not_change_the_deviation(tmp_path, first_report, second_report):
    """Its translations are a file, with the same BLEU 30.0 for each seed: a variance of 0.

    It takes the place of a trained system with the variance 0.08, so 0.08, 0.72 and 0.08 remain.
    """
    external = changed(first_report, {"system": "tiny"}, about="a.txt", bleu=30.0)
    external.save(tmp_path / REPORTS / "a" / RESULTS.name)
    second_report.save(tmp_path / REPORTS / "b" / RESULTS.name)

    deviation = deviation_of(tmp_path, first_report)

    median_variance = 0.08
    assert deviation == pytest.approx((median_variance / CHI_SQUARED_MEDIAN) ** 0.5)


def test_the_deviation_is_unbiased_although_one_system_is_unstable(tmp_path):
    """The BLEU of 300 systems varies over seeds with the deviation 0.5, that of one with 50."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(301):
        is_unstable = number == 300
        deviation = 50.0 if is_unstable else 0.5
        for seed in (1, 2, 3):
            bleu = 30 + deviation * rng.normal()
            rows.append(record(f"s{number}", "news-en-de", "first", bleu, seed=seed))
    records_from_rows(*rows).save(tmp_path / RESULTS)

    (estimate,) = estimate_deviations(tmp_path).values()

    assert estimate == pytest.approx(0.5, rel=0.1)


def test_the_largest_difference_between_two_seeds_follows_from_the_deviation():
    """In 95 % of cases, two values differ by less than 1.96 deviations of their difference.

    BLEU varies with the deviation 0.3, so a difference of two values varies with sqrt(2) * 0.3.
    """
    difference = largest_seed_difference(deviation=0.3)

    deviation_of_a_difference = 2**0.5 * 0.3
    assert difference == pytest.approx(1.96 * deviation_of_a_difference, abs=1e-4)
