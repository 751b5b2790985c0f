"""How much BLEU varies over seeds, as estimated from reports."""

import numpy as np
import pytest

from bleuprint.report.frame import REPORTS, RESULTS
from bleuprint.report.seed_variance import estimate_deviations, largest_seed_difference
from result_rows import changed, frame, record

CORPUS = "news-en-de"
# The median of chi-squared with one degree of freedom, as of two seeds.
MEDIAN = 0.4549364


def results(system, first, second):
    """Records of a system with two seeds on a test set."""
    return [
        record(system, CORPUS, "first", first, seed=3),
        record(system, CORPUS, "first", second, seed=1),
    ]


def test_the_deviation_over_seeds_is_pooled_over_systems_and_reports(tmp_path):
    """Of the variances 0.08, 0.08, 0.08 and 0.72."""
    first = frame(*results("tiny", 30.0, 30.4), *results("small", 33.0, 33.4))
    second = frame(*results("tiny", 30.0, 31.2), *results("small", 33.0, 33.4))
    (references,) = set(first.runs.references_sha256)
    one_seed = first.select_runs(first.runs.seed == 1)
    one_seed.save(tmp_path / RESULTS)
    assert estimate_deviations(tmp_path) == {}
    for name, records in (("a", first), ("b", second)):
        records.save(tmp_path / REPORTS / name / RESULTS.name)
    assert estimate_deviations(tmp_path)[references] == pytest.approx((0.08 / MEDIAN) ** 0.5)
    # an external system has one score, whatever the seed
    external = changed(first, {"system": "tiny"}, about="a.txt", bleu=30.0)
    external.save(tmp_path / REPORTS / "a" / RESULTS.name)
    assert estimate_deviations(tmp_path)[references] == pytest.approx((0.08 / MEDIAN) ** 0.5)


def test_the_deviation_is_unbiased_in_the_median(tmp_path):
    """Of systems with three seeds and one deviation, of which one system is unstable."""
    random = np.random.default_rng(1)
    rows = [
        record(f"s{number}", CORPUS, "first", 30 + deviation * random.normal(), seed=seed)
        for number, deviation in enumerate([0.5] * 300 + [50.0])
        for seed in (1, 2, 3)
    ]
    frame(*rows).save(tmp_path / RESULTS)
    (found,) = estimate_deviations(tmp_path).values()
    assert found == pytest.approx(0.5, rel=0.1)


def test_the_difference_of_two_trainings_by_their_deviation():
    """1.96 x 0.3 x the square root of 2."""
    assert largest_seed_difference(0.3) == pytest.approx(0.8316, abs=1e-4)
