"""Lines that do not fit each other are found, and true translations are not accused.

The rates on published text (docs/corpora.md) were measured by hand; here the text is the embedded
one, and lists whose faults were put in.
"""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm, rankdata

from bleuprint.corpus import misalignment, pair_scores
from bleuprint.corpus.misalignment import Misfit, PairClues, describe_misfits, find_misfits
from bleuprint.corpus.phrasebook import sentences
from bleuprint.text.parallel import Pair

GERMAN, ENGLISH = (list(sentences("train", language))[:3000] for language in ("de", "en"))


def with_block_moved(lines, first, size, offset):
    """A block of lines, from 1, each `offset` lines later; what falls out comes in at its start."""
    start = first - 1
    block = lines[start : start + size]
    return [*lines[:start], *block[-offset:], *block[:-offset], *lines[start + size :]]


def test_a_block_is_moved_as_the_tests_mean_it():
    assert with_block_moved(list("abcdef"), 2, 4, 1) == list("aebcdf")
    assert with_block_moved(list("abcdef"), 2, 4, -1) == list("acdebf")


def test_translations_fit():
    assert find_misfits(GERMAN, ENGLISH) == []


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
@pytest.mark.parametrize(
    ("first", "size"), [(1, 72), (301, 72), (401, 100), (851, 150), (901, 100)]
)
def test_a_block_that_is_moved_by_a_line_or_two_is_found(first, size, offset):
    english = with_block_moved(ENGLISH[:1000], first, size, offset)
    (found,) = find_misfits(GERMAN[:1000], english)
    assert found.offset == offset
    assert abs(found.first - first) <= 12
    assert abs(found.last - (first + size - 1)) <= 12


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
def test_a_text_that_is_moved_as_a_whole_is_found(offset):
    english = with_block_moved(ENGLISH[:500], 1, 500, offset)
    (found,) = find_misfits(GERMAN[:500], english)
    assert found.offset == offset
    assert found.first <= 10
    assert found.last >= 490


def test_two_blocks_are_found_in_order():
    english = with_block_moved(ENGLISH[:1500], 1001, 200, -1)
    english = with_block_moved(english, 201, 200, 2)
    assert [each.offset for each in find_misfits(GERMAN[:1500], english)] == [2, -1]


def test_other_text_is_found():
    english = list(ENGLISH[:2000])
    english[800:1200] = english[800:1200][::-1]
    (found,) = find_misfits(GERMAN[:2000], english)
    assert found.offset is None
    assert abs(found.first - 801) <= 20
    assert abs(found.last - 1200) <= 20


def test_a_text_of_other_sentences_is_found_as_a_whole():
    shuffled = random.Random(3).sample(ENGLISH[:800], 800)
    assert find_misfits(GERMAN[:800], shuffled) == [Misfit(1, 800, None)]


def menu_entries(count):
    """Pairs of one word each, whose lengths have nothing in common, as those of menus do."""
    letters = random.Random(5)

    def word():
        return "".join(letters.choices("abcdefghijklmnoprstuvwz", k=letters.randint(4, 11)))

    return [word() for _ in range(count)], [word() for _ in range(count)]


def test_entries_of_menus_are_not_accused():
    assert find_misfits(*menu_entries(400)) == []


def test_moved_lines_are_found_by_numbers_alone():
    numbers = random.Random(7).sample(range(1000, 9999), 300)
    source, target = [f"Zeile {number}" for number in numbers], [f"{n} is it" for n in numbers]
    assert find_misfits(source, target) == []
    (found,) = find_misfits(source, with_block_moved(target, 101, 60, 1))
    assert found.offset == 1
    assert abs(found.first - 101) <= 3
    assert abs(found.last - 160) <= 3


@pytest.mark.parametrize("lines", [["Ja."] * 300, [""] * 300, ["Ja.", "Nein."] * 150])
def test_lines_that_repeat_say_nothing(lines):
    assert find_misfits(lines, ["Yes."] * 300) == []
    assert find_misfits(lines, lines) == []


def test_a_short_text_is_not_judged():
    assert find_misfits(GERMAN[:49], ENGLISH[49:98]) == []
    assert find_misfits([], []) == []


def test_pairs_pass_through_and_long_texts_are_judged_by_lengths():
    pairs = list(map(Pair, GERMAN, with_block_moved(ENGLISH, 2001, 300, 1)))
    clues = PairClues(max_pairs_with_words=700)
    assert list(clues.collect(pairs)) == pairs
    (found,) = clues.misfits()
    assert found.offset == 1
    assert abs(found.first - 2001) <= 20


def test_long_texts_are_judged_part_by_part(monkeypatch):
    monkeypatch.setattr(misalignment, "_MAX_PAIRS_PER_PART", 1000)
    pairs = list(map(Pair, GERMAN, with_block_moved(ENGLISH, 1301, 300, 1)))
    clues = PairClues()
    assert list(clues.collect(pairs)) == pairs
    (found,) = clues.misfits()
    assert found.offset == 1
    assert abs(found.first - 1301) <= 20
    assert abs(found.last - 1600) <= 20


def test_ranges_are_described():
    found = [Misfit(1, 1200, 1), Misfit(1300, 1400, -2), Misfit(1500, 1600, None)]
    first = "lines 1 to 1,200 fit the target 1 line later"
    second = "lines 1,300 to 1,400 fit the target 2 lines earlier"
    third = "lines 1,500 to 1,600 do not fit at all"
    assert describe_misfits(found[:1]) == first
    assert describe_misfits(found) == f"{first}, {second}, {third}"
    assert (
        describe_misfits([*found, Misfit(1700, 1800, 1)])
        == f"{first}, {second}, {third}, and 1 more"
    )


def test_scores_of_lengths_are_those_of_scipy():
    source, target = np.array([-1.3, 0.0, 0.4, 2.0]), np.array([-0.9, 1.1, 0.4, -2.0])
    joint = multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]])
    expected = (
        joint.logpdf(np.column_stack([source, target])) - norm.logpdf(source) - norm.logpdf(target)
    )
    assert pair_scores._length_scores(source, target, 0.7) == pytest.approx(expected)


def test_normal_scores_are_those_of_scipy():
    lengths = np.array([5, 3, 5, 9, 1, 5, 3], float)
    expected = norm.ppf((rankdata(lengths) - 0.5) / 7)
    assert pair_scores.normal_scores(lengths) == pytest.approx(expected)


def test_scores_of_a_word_worked_by_hand():
    # in a tenth of the sources and a twentieth of the targets; half are copied
    scores = pair_scores._word_scores(
        source_frequency=0.1, target_frequency=0.05, source_copied=0.5, target_copied=0.5
    )
    assert scores.both == pytest.approx((np.log(0.5 / 0.05) + np.log(0.5 / 0.1)) / 2)
    assert scores.source == pytest.approx(np.log(0.5 / 0.95))
    assert scores.target == pytest.approx(np.log(0.5 / 0.9))
    # in as many targets as by chance: it says nothing
    same = pair_scores._word_scores(
        source_frequency=0.5, target_frequency=0.6, source_copied=0.6, target_copied=0.5
    )
    assert (same.both, same.source, same.target) == (0, 0, 0)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_the_best_range_is_that_of_all_ranges(values):
    best = misalignment._best_range(np.array(values, float))
    sums = [sum(values[i:j]) for i in range(len(values)) for j in range(i + 1, len(values) + 1)]
    assert best.total == max(0, *sums)
    assert sum(values[best.start : best.stop]) == best.total
