"""Means over seeds, differences, and what is significant: against scipy, tables and hand."""

import math
import random
import statistics

import numpy as np
import pytest

from bleuprint.config.published import Published
from bleuprint.report.notes import all_notes
from bleuprint.report.paired import holm_correction, paired_t_test
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.score_frame import bleu_rows, computed_scores, score_frame
from result_rows import against, frame, record, score_of

# 88.333 / (1 + e^(-0.96639 d))
BLEU = {d: pytest.approx(88.33333333333225 / (1 + math.exp(-0.96639269 * d))) for d in (1.0, 2.5)}


def test_holm_by_hand():
    # sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 are 0.02, 0.03, 0.06, 0.04 -> 0.06
    assert holm_correction([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_correction([0.6, 0.7]) == [1.0, 1.0]
    assert holm_correction([0.02, 0.02]) == [0.04, 0.04]
    assert holm_correction([0.2]) == [0.2] and holm_correction([]) == []


def test_holm_rejects_what_the_step_down_procedure_rejects():
    rng = random.Random(1)
    for _ in range(200):
        values = [rng.random() ** 3 for _ in range(rng.randint(1, 7))]
        rejected = set()
        for step, (p, index) in enumerate(sorted(zip(values, range(len(values)), strict=True))):
            if p >= 0.05 / (len(values) - step):  # Holm 1979: stop at the first that is not
                break
            rejected.add(index)
        assert {i for i, p in enumerate(holm_correction(values)) if p < 0.05} == rejected


def test_paired_t_equals_scipy_and_a_t_table():
    from scipy.stats import ttest_rel

    rng = random.Random(2)
    for count in (2, 3, 5, 10):
        one, other = ([rng.gauss(mean, 1) for _ in range(count)] for mean in (30.4, 30))
        by_seed = [a - b for a, b in zip(one, other, strict=True)]
        assert paired_t_test(by_seed) == pytest.approx(ttest_rel(one, other).pvalue, rel=1e-9)
    # the table's two-sided 5 % point of t with 2 degrees of freedom is 4.303: three differences
    # m - 1, m, m + 1 have t = m * sqrt 3
    m = 4.303 / math.sqrt(3)
    assert paired_t_test([m - 1, m, m + 1]) == pytest.approx(0.05, abs=1e-4)
    assert paired_t_test([-m - 1, -m, -m + 1]) == pytest.approx(0.05, abs=1e-4)


def test_differences_that_are_all_the_same():
    assert paired_t_test([0.0, 0.0, 0.0]) == 1.0
    assert paired_t_test([0.5, 0.5]) == 1.0


def test_one_seed_takes_the_bootstrap_and_is_corrected_by_column():
    records = [
        record("base", "news-en-de", "first", 30.0),
        record("base", "news-en-de", "second", 20.0),
        record("good", "news-en-de", "first", 32.5, **against("base", 0.01, 0.02)),
        record("good", "news-en-de", "second", 21.0, **against("base", 0.04)),
        record("fair", "news-en-de", "first", 29.0, **against("base", 0.03)),
        record("fair", "news-en-de", "second", 20.0, **against("base", 1.0)),
    ]
    made = frame(*records)
    rows = bleu_rows(score_frame(made))
    assert [(row.system, row.test) for row in rows] == [
        (r["facts"]["system"], r["facts"]["test"]) for r in records
    ]
    assert all(math.isnan(row.difference) for row in rows[:2])
    # two systems in a column: the smaller p twice, the other at least as much
    assert [(row.difference, row.p, row.p_holm) for row in rows[2:]] == [
        *((2.5, 0.01, 0.02), (1.0, 0.04, 0.08)),
        *((-1.0, 0.03, 0.03), (0.0, 1.0, 1.0)),
    ]
    assert {(row.baseline, row.standard_error) for row in rows[2:]} == {("base", 0.5)}
    assert all(math.isnan(row.difference_deviation) for row in rows)
    assert [row.agreement for row in rows[2:5]] == [BLEU[2.5], BLEU[1.0], BLEU[1.0]]
    assert math.isnan(rows[5].agreement)
    of_chrf = score_of(made, "good", "chrf2", test="second").agreement
    assert of_chrf == pytest.approx(93 / (1 + math.exp(-1.1142732)), abs=1e-5)
    assert math.isnan(score_of(made, "good", "ter", test="second").agreement)
    assert [row.mark for row in rows[2:]] == ["‡", "†", "‡", ""]
    assert (rows[2].value, rows[2].ci_low, rows[2].ci_high) == (32.5, 31.5, 34.5)
    assert math.isnan(rows[2].deviation)


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
    made = frame(*records)
    assert [row.system for row in bleu_rows(score_frame(made))] == ["base", "good", "same"]
    better = score_of(made, "good")
    assert better.seeds == 3
    # 1, 1.5 and 0.7: mean 3.2 / 3; the bootstrap's 0.9 is not used
    assert better.difference == pytest.approx(3.2 / 3, abs=1e-6)
    assert better.p == pytest.approx(ttest_rel(good, base).pvalue, abs=1e-6)
    assert better.mark == "†" and better.p_holm == pytest.approx(2 * better.p, abs=2e-6)
    equal = score_of(made, "same")
    assert (equal.difference, equal.p, equal.p_holm, equal.mark) == (0.0, 1.0, 1.0, "")
    assert better.deviation == pytest.approx(statistics.stdev(good))
    assert better.value == pytest.approx(93.7 / 3)
    assert math.isnan(better.ci_low) and math.isnan(better.ci_high)
    assert score_of(made, "good", "ter").value == pytest.approx(93.7 / 3 - 9)
    assert score_of(made, "good", "chrf2").value == pytest.approx(93.7 / 3 + 20)


def test_the_errors_of_seeds_are_averaged_and_their_differences_spread():
    base, good = (30.0, 31.0, 29.5), (31.0, 32.5, 30.2)
    errors = (0.2, 0.5, 1.1)
    records = []
    for seed in (1, 2, 3):
        tested = against("base", 0.9)
        tested["tested"]["standard_error"] = errors[seed - 1]
        records.append(record("base", "news-en-de", "only", base[seed - 1], seed=seed))
        records.append(record("good", "news-en-de", "only", good[seed - 1], seed=seed, **tested))
    found = score_of(frame(*records), "good")
    assert found.standard_error == pytest.approx(np.mean(errors))
    deltas = np.subtract(good, base)
    assert found.difference_deviation == pytest.approx(np.std(deltas, ddof=1))
    assert len({found.standard_error, *errors}) == 4


@pytest.mark.parametrize(("corpus", "known"), [("news-en-de", True), ("copy-src-tgt", False)])
def test_people_agree_on_no_symbols(corpus, known):
    rows = record("base", corpus, "only", 30.0), record("other", corpus, "only", 32.0)
    for p in (0.01, 0.2):
        records = frame(rows[0], {**rows[1], **against("base", p)})
        found = score_of(records, "other").agreement
        assert math.isnan(found) is not (known and p < 0.05)
        # only where a table shows it
        explained = any(note.startswith("Human agreement") for note in all_notes(records))
        assert explained is (known and p < 0.05)


def test_a_system_alone_has_no_difference():
    only = score_of(frame(record("base", "news-en-de", "only", 30.0)), "base")
    assert math.isnan(only.difference)
    assert math.isnan(only.p)
    assert (only.mark, only.difference_text, only.why_untested) == ("", "", "")


def test_a_published_number_is_a_row():
    records = frame(record("base", "news-en-de", "only", 30.0))
    number = Published("Paper", "Doe 2020", "news-en-de", "only", 31.25, "intl", perplexity=4.0)
    scores = score_frame(with_published_numbers(records, [number]))
    of_paper = scores[scores.is_published]
    assert list(of_paper.row_name.unique()) == ["Paper (published)"]
    assert list(of_paper.task.unique()) == ["news-en-de"]
    # log 4 = 1.386
    assert dict(zip(of_paper.metric, of_paper.score_text, strict=True)) == {
        "intl": "31.25",
        "loss": "1.386",
        "perplexity": "4.00",
    }
    assert computed_scores(scores).shape == score_frame(records).shape
