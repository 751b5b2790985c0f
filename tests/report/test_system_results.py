"""Means over seeds, differences, and what is significant: against scipy, tables and hand."""

import math
import random
import statistics

import numpy as np
import pytest

from bleuprint.report.notes import notes
from bleuprint.report.paired import holm, paired_t
from bleuprint.report.system_results import system_results
from result_rows import against, frame, record

# 88.333 / (1 + e^(-0.96639 d))
BLEU = {d: pytest.approx(88.33333333333225 / (1 + math.exp(-0.96639269 * d))) for d in (1.0, 2.5)}


def difference(results, system):
    (result,) = (result for result in results if result.system == system)
    return result.difference


def test_holm_by_hand():
    # sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 are 0.02, 0.03, 0.06, 0.04 -> 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.02, 0.02]) == [0.04, 0.04]
    assert holm([0.2]) == [0.2] and holm([]) == []


def test_holm_rejects_what_the_step_down_procedure_rejects():
    rng = random.Random(1)
    for _ in range(200):
        values = [rng.random() ** 3 for _ in range(rng.randint(1, 7))]
        rejected = set()
        for step, (p, index) in enumerate(sorted(zip(values, range(len(values)), strict=True))):
            if p >= 0.05 / (len(values) - step):  # Holm 1979: stop at the first that is not
                break
            rejected.add(index)
        assert {i for i, p in enumerate(holm(values)) if p < 0.05} == rejected


def test_paired_t_equals_scipy_and_a_t_table():
    from scipy.stats import ttest_rel

    rng = random.Random(2)
    for count in (2, 3, 5, 10):
        one, other = ([rng.gauss(mean, 1) for _ in range(count)] for mean in (30.4, 30))
        by_seed = [a - b for a, b in zip(one, other, strict=True)]
        assert paired_t(by_seed) == pytest.approx(ttest_rel(one, other).pvalue, rel=1e-9)
    # the table's two-sided 5 % point of t with 2 degrees of freedom is 4.303: three differences
    # m - 1, m, m + 1 have t = m * sqrt 3
    m = 4.303 / math.sqrt(3)
    assert paired_t([m - 1, m, m + 1]) == pytest.approx(0.05, abs=1e-4)
    assert paired_t([-m - 1, -m, -m + 1]) == pytest.approx(0.05, abs=1e-4)


def test_differences_that_are_all_the_same():
    assert paired_t([0.0, 0.0, 0.0]) == 1.0
    assert paired_t([0.5, 0.5]) == 1.0


def test_one_seed_takes_the_bootstrap_and_is_corrected_by_column():
    records = [
        record("base", "news-en-de", "first", 30.0),
        record("base", "news-en-de", "second", 20.0),
        record("good", "news-en-de", "first", 32.5, **against("base", 0.01, 0.02)),
        record("good", "news-en-de", "second", 21.0, **against("base", 0.04)),
        record("fair", "news-en-de", "first", 29.0, **against("base", 0.03)),
        record("fair", "news-en-de", "second", 20.0, **against("base", 1.0)),
    ]
    results = system_results(frame(*records))
    assert [(result.system, result.test) for result in results] == [
        (r["facts"]["system"], r["facts"]["test"]) for r in records
    ]
    assert results[0].difference is None and results[1].difference is None
    # two systems in a column: the smaller p twice, the other at least as much
    found = [each for result in results[2:] if (each := result.difference)]
    assert [(e.value, e.p, e.corrected) for e in found] == [
        *((2.5, 0.01, 0.02), (1.0, 0.04, 0.08)),
        *((-1.0, 0.03, 0.03), (0.0, 1.0, 1.0)),
    ]
    assert {(e.baseline, e.error, e.deviation) for e in found} == {("base", 0.5, None)}
    agree = [e.agreement.value for e in found if e.agreement]
    assert agree == [BLEU[2.5], BLEU[1.0], BLEU[1.0]]
    of_chrf = results[3].differences["chrf2"].agreement
    assert of_chrf and of_chrf.value == pytest.approx(93 / (1 + math.exp(-1.1142732)), abs=1e-5)
    assert results[3].differences["ter"].agreement is None
    marks = [result.difference.mark for result in results if result.difference]
    assert marks == ["‡", "†", "‡", ""]
    assert (results[2].bleu.mean, results[2].bleu.low, results[2].bleu.high) == (32.5, 31.5, 34.5)
    assert results[2].bleu.deviation is None


def test_three_seeds_are_tested_across_seeds():
    from scipy.stats import ttest_rel

    base, good, same = (30.0, 31.0, 29.5), (31.0, 32.5, 30.2), (30.0, 31.0, 29.5)
    records = [
        record(
            *(system, "news-en-de", "only", bleu),
            seed=seed,
            **(against("base", 0.9) if system != "base" else {}),
        )
        for system, scores in (("base", base), ("good", good), ("same", same))
        for seed, bleu in enumerate(scores, 1)
    ]
    results = system_results(frame(*records))
    assert [result.system for result in results] == ["base", "good", "same"]
    assert [len(result.seeds) for result in results] == [3, 3, 3]
    better = difference(results, "good")
    # 1, 1.5 and 0.7: mean 3.2 / 3; the bootstrap's 0.9 is not used
    assert better.value == pytest.approx(3.2 / 3, abs=1e-6)
    assert better.p == pytest.approx(ttest_rel(good, base).pvalue, abs=1e-6)
    assert better.significant and better.corrected == pytest.approx(2 * better.p, abs=2e-6)
    equal = difference(results, "same")
    assert (equal.value, equal.p, equal.corrected, equal.mark) == (0.0, 1.0, 1.0, "")
    score = results[1].bleu
    assert score.deviation == pytest.approx(statistics.stdev(good))
    assert (score.mean, score.low, score.high) == (pytest.approx(93.7 / 3), None, None)
    assert results[1].scores["ter"].mean == pytest.approx(93.7 / 3 - 9)
    assert results[1].scores["chrf2"].mean == pytest.approx(93.7 / 3 + 20)


def test_the_errors_of_seeds_are_averaged_and_their_differences_spread():
    base, good = (30.0, 31.0, 29.5), (31.0, 32.5, 30.2)
    errors = (0.2, 0.5, 1.1)
    records = []
    for seed in (1, 2, 3):
        tested = against("base", 0.9)
        tested["tested"]["standard_error"] = errors[seed - 1]
        records.append(record("base", "news-en-de", "only", base[seed - 1], seed=seed))
        records.append(record("good", "news-en-de", "only", good[seed - 1], seed=seed, **tested))
    found = difference(system_results(frame(*records)), "good")
    assert found.error == pytest.approx(np.mean(errors))
    deltas = np.subtract(good, base)
    assert found.deviation == pytest.approx(np.std(deltas, ddof=1))
    assert len({found.error, *errors}) == 4


@pytest.mark.parametrize(("corpus", "known"), [("news-en-de", True), ("copy-src-tgt", False)])
def test_people_agree_on_no_symbols(corpus, known):
    rows = record("base", corpus, "only", 30.0), record("other", corpus, "only", 32.0)
    for p in (0.01, 0.2):
        records = frame(rows[0], {**rows[1], **against("base", p)})
        found = difference(system_results(records), "other").agreement
        assert (found is not None) is (known and p < 0.05)
        # only where a table shows it
        explained = any(note.startswith("people agree") for note in notes(records))
        assert explained is (known and p < 0.05)
