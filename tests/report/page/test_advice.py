"""What the page advises, on figures made by hand, at and around each threshold."""

from typing import Any

import pytest

import result_rows
from bleuprint.report.page import advice
from bleuprint.report.system_results import system_results
from bleuprint.training.history import Validation


def validations(*losses: float) -> list[Validation]:
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
def test_validation_loss(losses: tuple[float, ...], falling: bool, turned: bool) -> None:
    assert (advice.still_falling(validations(*losses)) is not None) == falling
    assert (advice.turned(validations(*losses)) is not None) == turned


def test_evidence_has_the_figures() -> None:
    found = advice.still_falling(validations(2.0, 1.5))
    assert found == (
        "validation loss fell from 2.000 (update 100) to 1.500 at the end (update 200)"
    )
    found = advice.turned(validations(2.0, 1.0, 1.5))
    assert found == (
        "validation loss was lowest at update 200 (1.000) and ended at 1.500 (update 300)"
    )
    assert advice.length_off(0.95) == "5.0% too short"
    assert advice.length_off(1.04) == "4.0% too long"
    assert advice.length_off(0.98) is advice.length_off(1.029) is None


def advised(*rows: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The evidence of each advice on the records, by its title."""
    return {
        one.title: one.evidence
        for one in advice.advice(system_results(result_rows.frame(*rows)), ())
    }


def row(system: str, bleu: float, p: float | None = None, **changes: Any) -> dict[str, Any]:
    tested = {} if p is None else result_rows.against("base", p)
    return result_rows.record(system, "news-en-de", "t", bleu, **tested, **changes)


def test_what_scores_alone_advise() -> None:
    seeds = "Train with several seeds"
    base = row("base", 20.0)
    assert list(advised(base, row("big", 22.0, 0.01))) == [seeds]
    assert next(iter(advised(base, row("big", 22.0, 0.05)))).startswith("Get more evidence")
    scores = {1: 22.0, 2: 22.1, 3: 21.9}
    for number, expected in ((2, [seeds]), (3, [])):
        several = list(scores.items())[:number]
        rows = [row("base", 20.0, seed=seed) for seed, _ in several]
        rows += [row("big", score, 0.01, seed=seed) for seed, score in several]
        assert list(advised(*rows)) == expected


def test_a_system_that_has_not_learned_gets_no_other_advice() -> None:
    found = advised(row("base", 1.7, length_ratio=1.5), row("big", 4.9, 0.4))
    assert list(found) == ["Find out why it has not learned to translate"]
    (evidence,) = found.values()
    assert evidence[0].startswith("base, news-en-de, t: BLEU 1.7") and len(evidence) == 2
    found = advised(row("base", 5.0), row("big", 4.9, 0.4))
    assert list(found)[1:] == ["Train with several seeds"]


def test_evidence_of_several_seeds_says_which() -> None:
    found = advised(*(row("base", 20.0, seed=seed, length_ratio=1.1) for seed in (4, 5)))
    expected = ("base, news-en-de, t, seed 4: 10.0% too long",)
    assert found["Correct the length of the translations"] == expected


def test_the_setting_of_the_length_of_a_training_is_named() -> None:
    results = system_results(result_rows.frame(row("base", 20.0)))
    found, _ = advice.advice(results, [("base", validations(2.0, 1.5))])
    assert "raise train.max_updates or train.max_epochs." in found.why
