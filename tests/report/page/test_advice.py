"""What the page advises, on figures made by hand, at and around each threshold."""

import pytest

import result_rows
from bleuprint.report.page import advice
from bleuprint.report.system_results import system_results
from bleuprint.training.history import Validation


def validations(*losses):
    return [Validation(100 * i, loss, 0.0) for i, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    ("losses", "falling", "turned"),
    [
        ((), False, False),
        ((2.0,), False, False),
        ((2.0, 1.5), True, False),
        ((2.0, 1.99), False, False),  # half a percent
        ((2.0, 1.98), True, False),  # one
        ((9.0, *(2.0 - i / 100 for i in range(8))), True, False),  # one over the last quarter
        ((9.0, *(2.0 - i / 1000 for i in range(8))), False, False),
        ((1.0, 2.0, 1.5), False, True),  # falls, but has been lower
        ((2.0, 1.0, 1.019), False, False),
        ((2.0, 1.0, 1.02), False, True),
    ],
)
def test_validation_loss(losses, falling, turned):
    assert (advice.still_falling(validations(*losses)) is not None) == falling
    assert (advice.turned(validations(*losses)) is not None) == turned


def test_evidence_has_the_figures():
    found = advice.still_falling(validations(2.0, 1.5))
    assert found == (
        "validation loss fell from 2.000 (update 100) to 1.500 at the end (update 200)"
    )
    found = advice.turned(validations(2.0, 1.0, 1.5))
    assert found == (
        "validation loss was lowest at update 200 (1.000) and ended at 1.500 (update 300)"
    )


def advised(*rows):
    """The evidence of each advice on the records, by its first words."""
    found = advice.advice(system_results(result_rows.frame(*rows)), {})
    return {why.partition(":")[0].partition(" (")[0]: evidence for why, evidence in found}


def row(system, bleu, p=None, **changes):
    tested = {} if p is None else result_rows.against("base", p)
    return result_rows.record(system, "news-en-de", "t", bleu, **tested, **changes)


SEEDS = "Train with three seeds or more"


@pytest.mark.parametrize(("number", "expected"), [(1, [SEEDS]), (2, [SEEDS]), (3, [])])
def test_what_scores_alone_advise(number, expected):
    rows = [row("base", 20.0, seed=seed) for seed in range(number)]
    rows += [row("big", 22.0 + seed / 10, 0.01, seed=seed) for seed in range(number)]
    assert list(advised(*rows)) == expected


def test_a_system_that_has_not_learned_gets_no_other_advice():
    found = advised(row("base", 1.7), row("big", 4.9, 0.4))
    assert list(found) == ["Find out why it has not learned to translate"]
    (evidence,) = found.values()
    assert evidence[0].startswith("base, news-en-de, t: BLEU 1.7") and len(evidence) == 2
    assert list(advised(row("base", 5.0), row("big", 4.9, 0.4)))[1:] == [SEEDS]


def test_the_setting_of_the_length_of_a_training_is_named():
    results = system_results(result_rows.frame(row("base", 20.0)))
    (why, evidence), _ = advice.advice(results, {"base": validations(2.0, 1.5)})
    assert why.startswith("Train longer (train.max_updates or train.max_epochs)")
    assert evidence[0].startswith("base: validation loss fell")
