"""What the page advises, on figures made by hand, at and around each threshold."""

import dataclasses

import pytest

import result_trees as trees
from bleuprint.report.page import advice
from bleuprint.report.page.history import Validation
from bleuprint.report.records import Length
from bleuprint.report.system_results import standings
from bleuprint.scoring.breakdown import ByCount, ByLength


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


def test_long_sentences_are_weighed_by_lines() -> None:
    short = ByLength("1-10", 30, 40.0), ByLength("11-20", 10, 20.0)  # mean 35
    # 0.75 x 35 is 26.25
    worse = [*short, ByLength("31-40", 20, 30.0), ByLength("41-50", 20, 22.0)]  # mean 26
    assert advice.long_worse(worse) == "BLEU 26.0 from 31 tokens on, 35.0 up to 20"
    assert advice.long_worse([*short, ByLength("31-40", 40, 26.25)]) is None
    few = [*short, ByLength("over 50", 29, 1.0)]
    assert advice.long_worse(few) is None and advice.long_worse(short) is None


def test_rare_words_are_counted_together() -> None:
    frequent = ByCount("100+", 1000, 800, 0.8)
    rare = ByCount("0", 20, 0, 0.0), ByCount("5-9", 40, 30, 0.75)  # 30 of 60
    found = advice.rare_worse([*rare, frequent])
    assert found == "50% of the rare words are found, 80% of the frequent ones"
    assert advice.rare_worse([ByCount("2-4", 60, 37, 0.617), frequent]) is None  # above 60%
    assert advice.rare_worse([ByCount("2-4", 49, 0, 0.0), frequent]) is None
    assert advice.rare_worse(None) is None


def titles(*records: trees.Record) -> list[str]:
    return [one.title for one in advice.on_records(standings(records))]


def test_what_scores_alone_advise() -> None:
    good = {"by_length": (), "by_count": None}
    base = trees.record("base", "news-en-de", "t", 20.0, **good)
    sure = trees.record("big", "news-en-de", "t", 22.0, paired=trees.against("base", 0.01), **good)
    seeds = "Train with several seeds"
    assert titles(base, sure) == [seeds]
    unsure = dataclasses.replace(sure, paired=trees.against("base", 0.05))
    assert titles(base, unsure)[0].startswith("Get more evidence")
    other = dataclasses.replace(sure, decode={**sure.decode, "engine": "ctranslate2"})
    assert titles(base, other) == [seeds, "Translate all systems alike"]
    several = {
        seed: [base, dataclasses.replace(sure, bleu=dataclasses.replace(sure.bleu, score=score))]
        for seed, score in ((1, 22.0), (2, 22.1), (3, 21.9))
    }
    for count, expected in ((2, ["Train with more seeds"]), (3, [])):
        used = list(several.items())[:count]
        found = [dataclasses.replace(of[i], seed=seed) for i in (0, 1) for seed, of in used]
        assert titles(*found) == expected


def test_systems_that_translate_alike() -> None:
    """No difference to look for: they are not called undecided, too."""
    good = {"by_length": (), "by_count": None}
    base = trees.record("base", "news-en-de", "t", 20.0, **good)
    same = trees.record("big", "news-en-de", "t", 20.0, paired=trees.against("base", 1.0), **good)
    found = list(advice.on_records(standings([base, same])))
    assert [one.title for one in found] == [
        "Check why systems translate alike",
        "Train with several seeds",
    ]
    assert found[0].evidence == ("big, news-en-de, t: the same translations as base",)
    other = dataclasses.replace(same, data=dataclasses.replace(same.data, hypotheses="0" * 64))
    assert titles(base, other)[0].startswith("Get more evidence")


def test_evidence_of_several_seeds_says_which() -> None:
    long = Length(1100, 1000, 1.1)
    seeds = [
        trees.record("base", "news-en-de", "t", 20.0, seed=seed, length=long, by_count=None)
        for seed in (4, 5)
    ]
    found = {one.title: one.evidence for one in advice.on_records(standings(seeds))}
    said = ("base, news-en-de, t, seed 4: 10.0% too long",)
    assert found["Correct the length of the translations"] == said


def test_what_makes_a_training_longer_is_named() -> None:
    (found,) = advice.on_histories([("base", validations(2.0, 1.5))], "train.max_epochs")
    assert "raise train.max_epochs." in found.why
