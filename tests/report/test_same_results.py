"""Which results two reports share, and from which stage on the other ones differ."""

import pytest

from bleuprint.report.same_results import compare_records
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
    """The results that differ, after checking that all other results are the same."""
    results, left_out = compare_records(first, second)
    assert len(results) == len(first.runs) and not left_out
    found = [result for result in results if not result.is_same]
    assert {(result.run[:2], result.first["test"]) for result in found} <= {EDITED}
    assert len(found) in (0, 2)  # one for each seed
    return found


@pytest.mark.parametrize("metric", ["ter", "bleu"])
def test_another_score_of_the_same_translations_is_of_the_stage_score(records, metric):
    found = differing(records, edited(records, **{metric: 33.01}))
    assert [(each.first_differing_stage, each.differing_names) for each in found] == 2 * [
        ("score", (metric,))
    ]


def test_a_row_from_outside_is_not_a_trained_one(records):
    other = edited(records, about="an online system")
    for first, second in ((records, other), (other, records)):
        result, _ = differing(first, second)
        (cause, *_) = result.causes()
        assert cause == "one is an external system, the other was trained"
    assert differing(other, edited(records, about="its new name")) == []


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
    assert (result.first_differing_stage, list(result.causes())) == (stage, cause)


def test_a_signature_and_versions_are_named_by_what_differs(records):
    (signature,) = {*values(records, column="signature")}
    other = edited(records, versions="Python 3.11.0, torch 2.1.0", device="Another CPU")
    of_bleu = {"system": "small", "test": "first", "metric": "bleu"}
    other = changed(other, of_bleu, signature=signature.replace("tok:13a", "tok:intl"))
    result, _ = differing(records, other)
    assert result.first_differing_stage == "score"
    assert list(result.causes()) == ["signature tok:13a and tok:intl"]
    versions, machine = result.environment(is_portable=True)
    assert versions == "torch 2.0.0 and torch 2.1.0"
    assert machine == "machine A CPU, 1 x 2 threads and Another CPU, 1 x 2 threads"
    native = f"{machine}: native arithmetic rounds differently on each"
    assert list(result.environment(is_portable=False)) == [versions, native]


def test_other_versions_of_the_scorer_are_named(records):
    other = edited(records, bleu=34.0, scored_with="torch 2.0.0, sacrebleu 2.7.0")
    result, _ = differing(records, other)
    assert list(result.causes()) == ["scored with sacrebleu 2.6.0 and sacrebleu 2.7.0"]


def test_a_machine_that_one_side_does_not_know_is_no_cause(records):
    unknown = dict.fromkeys(MACHINE)
    other = edited(records, hypotheses_sha256="cd" * 32, **unknown)
    result, _ = differing(records, other)
    assert list(result.environment(is_portable=False)) == []


def test_code_is_a_cause_if_neither_settings_nor_data_are(records):
    changed_training = {"hypotheses_sha256": "cd" * 32, "training_sha256": "ab" * 32}
    other = edited(records, settings_sha256="ef" * 32, binary_sha256="12" * 32, **changed_training)
    result, _ = differing(records, other)
    assert list(result.causes()) == ["settings", "data"]
