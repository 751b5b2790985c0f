"""Whether two reports have the same results: verdicts by hand, the noise against SciPy's t-test."""

from statistics import fmean

import numpy as np
import pytest
from scipy.stats import ttest_ind

from bleuprint.report.frame import REPORTS, RESULTS
from bleuprint.report.same_results import Verdict, compared, deviations, seeds_noise
from result_rows import against, changed, frame, record, values

MACHINE = {
    "versions": "Python 3.11.0, torch 2.0.0",
    "device": "A CPU",
    "processes": "1",
    "threads": "2",
}
EDITED = ("small", "news-en-de"), "first"


@pytest.fixture
def records():
    """Two systems on two test sets with two seeds."""
    rows = [
        record(system, "news-en-de", test, bleu + spread, seed=seed, **tested)
        for system, bleu, tested in (("tiny", 30.0, {}), ("small", 33.0, against("tiny", 0.04)))
        for seed, spread in ((3, 0.0), (1, 0.4))
        for test in ("first", "second")
    ]
    return changed(frame(*rows), **MACHINE)


def edited(records, system="small", **values):
    """A copy with other values for a system on news-en-de, first, in both seeds."""
    return changed(records, {"system": system, "corpus": "news-en-de", "test": "first"}, **values)


def differing(first, second):
    return [each for each in compared(first, second)[0] if each.verdict]


def verdicts(first, second):
    """Those of the edited system, after checking that all others are the same."""
    results, left_out = compared(first, second)
    assert len(results) == len(first.runs) and not left_out
    of_edited = {each.verdict for each in results if (each.cell[:2], each.first["test"]) == EDITED}
    assert sum(each.verdict != Verdict.SAME_BYTES for each in results) in (0, 2)
    return of_edited


@pytest.mark.parametrize("metric", ["ter", "bleu"])
def test_another_score_of_the_same_translations_is_no_noise(records, metric):
    found = differing(records, edited(records, **{metric: 33.01}))
    expected = ("score", (metric,), Verdict.DIFFERENT)
    assert {(each.stage, each.names, each.verdict) for each in found} == {expected}


def test_a_row_from_outside_is_not_a_trained_one(records):
    other = edited(records, external="an online system")
    assert verdicts(records, other) == verdicts(other, records) == {Verdict.DIFFERENT}
    (cause, *_) = differing(records, other)[0].causes()
    assert cause == "one is an external system, the other was trained"
    assert verdicts(other, edited(records, external="its new name")) == {Verdict.SAME_BYTES}


@pytest.mark.parametrize("shift", [0.5, 2.0, 6.0])
@pytest.mark.parametrize(
    ("first", "second"),
    [([30.1, 30.9], [30.3, 31.4]), ([30.1, 31.9, 29.5], [30.0, 30.2, 30.9]), ([5, 5, 6], [5] * 3)],
)
def test_noise_over_seeds_is_that_of_the_t_test(first, second, shift):
    moved = [value + shift for value in second]
    difference = abs(fmean(moved) - fmean(first))
    inside = difference <= seeds_noise(first, moved)
    assert inside == (ttest_ind(first, moved).pvalue >= 0.05)


def test_the_deviation_over_seeds_is_pooled_over_systems_and_reports(records, tmp_path):
    # tiny and small by 0 and 0.4: variance 0.08 each; once more by 0 and 1.2: 0.72; one degree each
    more = changed(records, {"system": "tiny"}, bleu=[30.0, 30.0, 31.2, 31.2])
    (references,) = {*records.runs.references_sha256[records.runs.test == "first"]}
    alone = records.where(records.runs.seed == 1)
    alone.save(tmp_path / RESULTS)
    assert deviations(tmp_path) == {}
    for name, each in (("a", records), ("b", more)):
        each.save(tmp_path / REPORTS / name / RESULTS.name)
    found = deviations(tmp_path)
    # of variances 0.08 (three) and 0.72, of two seeds: whose median is 0.4549 of the true one
    assert found[references] == pytest.approx((0.08 / 0.4549364) ** 0.5)
    # an external system has one score, whatever the seed
    changed(records, {"system": "tiny"}, external="a.txt", bleu=30.0).save(
        tmp_path / REPORTS / "a" / RESULTS.name
    )
    assert deviations(tmp_path)[references] == pytest.approx((0.08 / 0.4549364) ** 0.5)


def test_the_noise_of_seeds_is_unbiased_in_the_median(tmp_path):
    """Of systems with three seeds and one deviation, of which one system is unstable."""
    random = np.random.default_rng(1)
    rows = [
        record(f"s{n}", "news-en-de", "first", 30 + deviation * random.normal(), seed=seed)
        for n, deviation in enumerate([0.5] * 300 + [50.0])
        for seed in (1, 2, 3)
    ]
    frame(*rows).save(tmp_path / RESULTS)
    ((found),) = deviations(tmp_path).values()
    assert found == pytest.approx(0.5, rel=0.1)


# 1.96 x 0.3 x sqrt(2) = 0.8316
@pytest.mark.parametrize(("more", "verdict"), [(0.8, 3), (0.9, 5), (-0.8, 3), (-0.9, 5)])
def test_other_translations_of_one_seed(records, more, verdict):
    cells = records.runs
    one = records.where((cells.seed == 1) & (cells.system == "small") & (cells.test == "first"))
    other = changed(one, hypotheses_sha256="ab" * 32, bleu=values(one)[0] + more)
    ((result,), _) = compared(one, other, {one.runs.references_sha256.iloc[0]: 0.3}.get)
    assert result.verdict == verdict and result.difference == pytest.approx(more)
    assert result.stage == "translate"
    ((unknown,), _) = compared(one, other)
    assert unknown.verdict == Verdict.NOISE_UNKNOWN == 4


def test_other_translations_of_several_seeds(records):
    cells = records.runs
    seeds = values(records.where((cells.system == "small") & (cells.test == "first")))
    noise = seeds_noise(seeds, seeds)
    for more, verdict in ((0.9 * noise, Verdict.WITHIN_NOISE), (1.1 * noise, Verdict.DIFFERENT)):
        other = edited(
            records,
            hypotheses_sha256="ab" * 32,
            bleu=[score + more for score in seeds],
            training_sha256="cd" * 32,
        )
        assert verdicts(records, other) == {verdict}


@pytest.mark.parametrize(
    ("column", "value", "stage", "cause"),
    [
        ("references_sha256", "ab" * 32, "split", ["test set"]),
        ("binary_sha256", "ab" * 32, "binarize", ["data"]),
        ("training_sha256", "ab" * 32, "train", ["code of the training"]),
        ("settings_sha256", "ab" * 32, "translate", ["settings"]),
    ],
)
def test_the_first_stage_and_its_cause(records, column, value, stage, cause):
    other = edited(records, hypotheses_sha256="cd" * 32, **{column: value})
    result, _ = differing(records, other)
    assert (result.stage, list(result.causes())) == (stage, cause)
    expected = Verdict.DIFFERENT if stage == "split" else Verdict.WITHIN_NOISE
    assert result.verdict == expected


def test_a_signature_and_versions_are_named_by_what_differs(records):
    (signature,) = {*values(records, column="signature")}
    other = edited(records, versions="Python 3.11.0, torch 2.1.0", device="Another CPU")
    of_bleu = {"system": "small", "test": "first", "metric": "bleu"}
    other = changed(other, of_bleu, signature=signature.replace("tok:13a", "tok:intl"))
    result, _ = differing(records, other)
    assert result.verdict == Verdict.DIFFERENT and result.stage == "score"
    assert list(result.causes()) == ["signature tok:13a and tok:intl"]
    versions, machine = result.environment(portable=True)
    assert versions == "torch 2.0.0 and torch 2.1.0"
    assert machine == "machine A CPU, 1 x 2 threads and Another CPU, 1 x 2 threads"
    native = f"{machine}: native arithmetic rounds differently on each"
    assert list(result.environment(portable=False)) == [versions, native]


def test_other_versions_of_the_scorer_are_named(records):
    other = edited(records, bleu=34.0, scored_with="torch 2.0.0, sacrebleu 2.7.0")
    result, _ = differing(records, other)
    assert list(result.causes()) == ["scored with sacrebleu 2.6.0 and sacrebleu 2.7.0"]


def test_a_machine_that_one_side_does_not_know_is_no_cause(records):
    unknown = dict.fromkeys(MACHINE)
    other = edited(records, hypotheses_sha256="cd" * 32, **unknown)
    result, _ = differing(records, other)
    assert list(result.environment(portable=False)) == []


def test_code_is_a_cause_if_neither_settings_nor_data_are(records):
    changed_training = {"hypotheses_sha256": "cd" * 32, "training_sha256": "ab" * 32}
    other = edited(records, settings_sha256="ef" * 32, binary_sha256="12" * 32, **changed_training)
    result, _ = differing(records, other)
    assert list(result.causes()) == ["settings", "data"]
