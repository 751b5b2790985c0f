"""Whether two reports have the same results: verdicts by hand, the noise against SciPy's t-test."""

from typing import Any

import pandas as pd
import pytest
from scipy.stats import ttest_ind

from bleuprint.report.same_results import Verdict, compared, seeds_noise
from result_rows import against, frame, record

MACHINE = {
    "versions": "Python 3.11.0, torch 2.0.0",
    "device": "A CPU",
    "processes": 1,
    "threads": 2,
}
EDITED = ("small", "news-en-de"), "first"


@pytest.fixture
def records() -> pd.DataFrame:
    """Two systems on two test sets with two seeds."""
    rows = [
        record(system, "news-en-de", test, bleu + spread, seed=seed, **tested)
        for system, bleu, tested in (("tiny", 30.0, {}), ("small", 33.0, against("tiny", 0.04)))
        for seed, spread in ((3, 0.0), (1, 0.4))
        for test in ("first", "second")
    ]
    return frame(*rows).assign(**{name: str(value) for name, value in MACHINE.items()})


def edited(records: pd.DataFrame, system: str = "small", **columns: Any) -> pd.DataFrame:
    """A copy with other values for a system on news-en-de, first, in both seeds."""
    other = records.copy()
    rows = (other.system == system) & (other.corpus == "news-en-de") & (other.test == "first")
    assert rows.sum() == 2
    for name, value in columns.items():
        other.loc[rows, name] = value
    return other


def verdicts(first: pd.DataFrame, second: pd.DataFrame) -> set[Verdict]:
    """Those of the edited system, after checking that all others are the same."""
    results = compared(first, second)
    assert len(results) == len(first)
    of_edited = {each.verdict for each in results if (each.cell[:2], each.first["test"]) == EDITED}
    assert sum(each.verdict != Verdict.SAME_BYTES for each in results) in (0, 2)
    return of_edited


def test_the_same_records_have_the_same_bytes(records: pd.DataFrame) -> None:
    assert verdicts(records, records.copy()) == {Verdict.SAME_BYTES}
    other = edited(records, training_sha256="cd" * 32)
    assert verdicts(records, other) == {Verdict.SAME_BYTES}


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"ter": None, "ter_low": None, "ter_high": None}, "score"),
        ({"p_holm": None}, "report"),
        ({"faults": None}, "score"),
    ],
)
def test_a_result_without_its_test_or_score_is_another(
    records: pd.DataFrame, changes: dict[str, Any], stage: str
) -> None:
    """In all rows, as in a file from which they were removed."""
    other = records.assign(**changes)
    differing = [each for each in compared(records, other) if each.verdict == Verdict.DIFFERENT]
    assert {each.stage for each in differing} == {stage}
    assert all({*each.columns} <= {*changes} for each in differing)
    assert all(each.verdict == Verdict.SAME_BYTES for each in compared(records, other, [*changes]))


def test_a_row_from_outside_is_not_a_trained_one(records: pd.DataFrame) -> None:
    other = edited(records, outside="an online system")
    assert verdicts(records, other) == verdicts(other, records) == {Verdict.DIFFERENT}
    (cause, *_) = next(e for e in compared(records, other) if e.columns).causes()
    assert cause == "one is a row from outside, the other was trained"
    assert verdicts(other, edited(records, outside="its new name")) == {Verdict.SAME_BYTES}


@pytest.mark.parametrize("shift", [0.5, 2.0, 6.0])
@pytest.mark.parametrize(
    ("first", "second"),
    [([30.1, 30.9], [30.3, 31.4]), ([30.1, 31.9, 29.5], [30.0, 30.2, 30.9]), ([5, 5, 6], [5] * 3)],
)
def test_noise_over_seeds_is_that_of_the_t_test(
    first: list[float], second: list[float], shift: float
) -> None:
    moved = [value + shift for value in second]
    difference = abs(pd.Series(moved).mean() - pd.Series(first).mean())
    inside = difference <= seeds_noise(pd.Series(first), pd.Series(moved))
    assert inside == (ttest_ind(first, moved).pvalue >= 0.05)


def test_noise_of_one_seed_is_that_of_the_literature() -> None:
    # 1.96 x 0.3 x sqrt(2) = 0.8316
    assert seeds_noise(pd.Series([30.0]), pd.Series([31.0])) == pytest.approx(0.8316, abs=1e-4)


@pytest.mark.parametrize(("more", "verdict"), [(0.8, 3), (0.9, 4), (-0.8, 3), (-0.9, 4)])
def test_other_translations_of_one_seed(records: pd.DataFrame, more: float, verdict: int) -> None:
    one = records[(records.seed == 1) & (records.system == "small") & (records.test == "first")]
    other = one.assign(hypotheses_sha256="ab" * 32, bleu=one.bleu + more)
    (result,) = compared(one, other)
    assert result.verdict == verdict and result.difference == pytest.approx(more)
    assert result.stage == "translate"


def test_other_translations_of_several_seeds(records: pd.DataFrame) -> None:
    rows = (records.system == "small") & (records.test == "first")
    seeds = records[rows].bleu.tolist()
    noise = seeds_noise(pd.Series(seeds), pd.Series(seeds))
    for more, verdict in ((0.9 * noise, Verdict.WITHIN_NOISE), (1.1 * noise, Verdict.DIFFERENT)):
        other = edited(
            records,
            hypotheses_sha256="ab" * 32,
            bleu=[score + more for score in seeds],
            training_sha256="cd" * 32,
        )
        assert verdicts(records, other) == {verdict}


def test_other_scores_of_the_same_translations_are_no_noise(records: pd.DataFrame) -> None:
    other = edited(records, bleu=records[records.system == "small"].bleu.iloc[0] + 0.01)
    assert verdicts(records, other) == {Verdict.DIFFERENT}


@pytest.mark.parametrize(
    ("column", "value", "stage", "cause"),
    [
        ("references_sha256", "ab" * 32, "split", ["test set"]),
        ("binary_sha256", "ab" * 32, "binarize", ["data"]),
        ("training_sha256", "ab" * 32, "train", ["code of the training"]),
        ("settings_sha256", "ab" * 32, "translate", ["settings"]),
        ("p", 0.001, "translate", []),
    ],
)
def test_the_first_stage_and_its_cause(
    records: pd.DataFrame, column: str, value: Any, stage: str, cause: list[str]
) -> None:
    other = edited(records, hypotheses_sha256="cd" * 32, **{column: value})
    (result, _) = (each for each in compared(records, other) if each.verdict)
    assert (result.stage, list(result.causes())) == (stage, cause)
    expected = Verdict.DIFFERENT if stage == "split" else Verdict.WITHIN_NOISE
    assert result.verdict == expected


def test_a_signature_and_versions_are_named_by_what_differs(records: pd.DataFrame) -> None:
    signature = records.bleu_signature.iloc[0]
    other = edited(
        records,
        bleu_signature=signature.replace("tok:13a", "tok:intl"),
        versions="Python 3.11.0, torch 2.1.0",
        device="Another CPU",
    )
    (result, _) = (each for each in compared(records, other) if each.verdict)
    assert result.verdict == Verdict.DIFFERENT and result.stage == "score"
    assert list(result.causes()) == ["signature tok:13a and tok:intl"]
    versions, machine = result.environment()
    assert versions == "torch 2.0.0 and torch 2.1.0"
    assert machine == "machine A CPU, 1 x 2 threads and Another CPU, 1 x 2 threads"


def test_tests_between_systems_count_only_if_both_have_the_same_systems(
    records: pd.DataFrame,
) -> None:
    other = edited(records, p=0.0123)
    (result, _) = (each for each in compared(records, other) if each.verdict)
    assert result.stage == "report" and result.verdict == Verdict.DIFFERENT
    fewer = other[other.system == "small"]
    assert {each.verdict for each in compared(records, fewer)} == {Verdict.SAME_BYTES}
