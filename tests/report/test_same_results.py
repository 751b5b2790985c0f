"""Which results two reports share, and from which stage on the other ones differ.

`bleuprint verify` compares the results of a run with committed ones in this way.
"""

import pytest

from bleuprint.report.same_results import compare_records
from result_rows import changed, compared_with, metric_values, record, records_from_rows

# What the records say of the machine that trained, by the name of the column.
MACHINE = {
    "versions": "Python 3.11.0, torch 2.0.0",
    "device": "A CPU",
    "processes": "1",
    "threads": "2",
}


@pytest.fixture
def records():
    """Return the records of tiny and small on the test sets first and second with two seeds."""
    rows = []
    for system, bleu in (("tiny", 30.0), ("small", 33.0)):
        test = compared_with("tiny", p=0.04) if system == "small" else {}
        for seed, seed_bleu in ((3, bleu), (1, bleu + 0.4)):
            for test_set in ("first", "second"):
                rows.append(record(system, "news-en-de", test_set, seed_bleu, seed=seed, **test))
    return changed(records_from_rows(*rows), **MACHINE)


def change_small(records, **values):
    """Return a copy of records with other values for small on the test set first."""
    return changed(records, {"system": "small", "corpus": "news-en-de", "test": "first"}, **values)


def differing_results(first, second):
    """Return the results of small on the test set first that differ, one for each seed.

    All other results must be the same.
    """
    results, missing = compare_records(first, second)
    assert len(results) == len(first.runs)
    assert not missing
    differing = []
    for result in results:
        if not result.is_same:
            differing.append(result)
            assert result.run[:2] == ("small", "news-en-de")
            assert result.first["test"] == "first"
    assert len(differing) in (0, 2)
    return differing


@pytest.mark.parametrize("metric", ["ter", "bleu"])
def test_another_score_of_the_same_translations_differs_from_the_stage_score_on(records, metric):
    """Two reports agree up to the translations: only the stage `score` can be the cause."""
    changed_records = change_small(records, **{metric: 33.01})

    for result in differing_results(records, changed_records):
        assert result.first_differing_stage == "score"
        assert result.differing_names == (metric,)


@pytest.mark.parametrize("is_first_report_external", [False, True])
def test_an_external_system_is_not_the_same_as_a_trained_one(records, is_first_report_external):
    """In one report, `small` was trained; in the other one, it is an online service."""
    external = change_small(records, about="an online system")
    first, second = (external, records) if is_first_report_external else (records, external)

    result, _other_seed = differing_results(first, second)

    first_cause, *_ = result.causes()
    assert first_cause == "one is an external system, the other was trained"


def test_the_description_of_an_external_system_changes_no_result(records):
    external = change_small(records, about="an online system")
    described_anew = change_small(records, about="its new name")

    assert differing_results(external, described_anew) == []


@pytest.mark.parametrize(
    ("column", "stage", "cause"),
    [
        pytest.param("references_sha256", "split", "test set", id="references"),
        pytest.param("binary_sha256", "binarize", "data", id="training data"),
        pytest.param("training_sha256", "train", "code of the training", id="training"),
        pytest.param("settings_sha256", "translate", "settings", id="settings"),
    ],
)
def test_other_translations_differ_from_the_first_stage_whose_fingerprint_differs(
    records, column, stage, cause
):
    """A report stores the hash of what each stage wrote or read.

    The translations differ, and one hash of an earlier stage: this stage is where to look.
    """
    changed_records = change_small(records, **{"hypotheses_sha256": "cd" * 32, column: "ab" * 32})

    result, _other_seed = differing_results(records, changed_records)

    assert result.first_differing_stage == stage
    assert list(result.causes()) == [cause]


def test_a_signature_is_reported_by_the_part_that_differs(records):
    """A signature such as `nrefs:1|tok:13a|version:2.6.0` says how a score was computed."""
    (signature,) = set(metric_values(records, column="signature"))
    changed_records = changed(
        records,
        {"system": "small", "test": "first", "metric": "bleu"},
        signature=signature.replace("tok:13a", "tok:intl"),
    )

    result, _other_seed = differing_results(records, changed_records)

    assert result.first_differing_stage == "score"
    assert list(result.causes()) == ["signature tok:13a and tok:intl"]


@pytest.fixture
def result_of_another_machine(records):
    """Return a result that differs from one of another machine with another PyTorch."""
    changed_records = change_small(
        records,
        hypotheses_sha256="cd" * 32,
        versions="Python 3.11.0, torch 2.1.0",
        device="Another CPU",
    )
    result, _ = differing_results(records, changed_records)
    return result


def test_versions_and_machines_that_differ_are_reported(result_of_another_machine):
    versions, machine = result_of_another_machine.environment(is_portable=True)

    assert versions == "torch 2.0.0 and torch 2.1.0"
    assert machine == "machine A CPU, 1 x 2 threads and Another CPU, 1 x 2 threads"


def test_another_machine_is_a_cause_of_other_results(result_of_another_machine):
    """Native arithmetic depends on the CPU; the other kind, portable, gives equal results on all.

    The translations differ, and so do PyTorch and the CPU.
    """
    _versions, machine = result_of_another_machine.environment(is_portable=False)

    assert machine == (
        "machine A CPU, 1 x 2 threads and Another CPU, 1 x 2 threads: native arithmetic rounds "
        "differently on each"
    )


def test_other_versions_of_the_scorer_are_a_cause(records):
    """The record says sacreBLEU 2.6.0. The same PyTorch is not mentioned as a cause."""
    changed_records = change_small(records, bleu=34.0, scored_with="torch 2.0.0, sacrebleu 2.7.0")

    result, _other_seed = differing_results(records, changed_records)

    assert list(result.causes()) == ["scored with sacrebleu 2.6.0 and sacrebleu 2.7.0"]


def test_a_machine_that_one_report_does_not_know_is_not_reported(records):
    """Machine and versions are in costs.csv; the other report is results.json alone."""
    facts_of_machine = dict.fromkeys(["versions", "device", "processes", "threads"])
    changed_records = change_small(records, hypotheses_sha256="cd" * 32, **facts_of_machine)

    result, _other_seed = differing_results(records, changed_records)

    assert list(result.environment(is_portable=False)) == []


def test_code_is_no_cause_if_settings_and_data_differ(records):
    """The fingerprint of a training depends on its code, settings and data.

    It differs here, and so do the hashes of settings and data, which explain it.
    """
    changed_records = change_small(
        records,
        hypotheses_sha256="cd" * 32,
        training_sha256="ab" * 32,
        settings_sha256="ef" * 32,
        binary_sha256="12" * 32,
    )

    result, _other_seed = differing_results(records, changed_records)

    assert list(result.causes()) == ["settings", "data"]


@pytest.fixture
def compared_runs():
    """Return how results of two reports differ, after the file of the external system a changed."""
    old = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record(
            "a",
            "news-en-de",
            "first",
            33.0,
            about="A",
            hypotheses_sha256="1" * 64,
            **compared_with("tiny", p=0.01),
        ),
    )
    new = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record(
            "a",
            "news-en-de",
            "first",
            33.1,
            about="A",
            hypotheses_sha256="2" * 64,
            **compared_with("tiny", p=0.01),
        ),
    )
    (tiny, external), _ = compare_records(old, new)
    return {"tiny": tiny, "external": external}


def test_another_file_of_translations_differs_from_the_stage_translate_on(compared_runs):
    """The translations of the external system `a` are a file, which the stage translate copies."""
    external = compared_runs["external"]

    assert not external.is_same
    assert external.first_differing_stage == "translate"
    assert external.score_stage == "score@a-news-en-de-1"


def test_another_file_of_translations_leaves_trained_systems_the_same(compared_runs):
    assert compared_runs["tiny"].is_same
    assert compared_runs["tiny"].score_stage == "score@tiny-news-en-de-1"
