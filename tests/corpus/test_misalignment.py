"""Lines that do not fit each other are found; true translations are not reported.

The error rates on published text (docs/corpora.md) were measured by hand. These tests use the
phrasebook, into whose text they put errors.
"""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm, rankdata

from bleuprint.corpus import misalignment, pair_scores
from bleuprint.corpus.misalignment import Misfit, PairClues, describe_misfits, find_misfits
from bleuprint.text.parallel import Pair
from corpora import phrasebook_sentences

# 3,000 sentences each; the nth sentences translate each other.
GERMAN_SENTENCES = phrasebook_sentences("de", 3000)
ENGLISH_SENTENCES = phrasebook_sentences("en", 3000)


def rotate_block(lines, first, size, offset):
    """Return lines of which each line of a block is some lines later.

    Lines that leave the block at its end come in at its start.

    Args:
        lines: The lines.
        first: The number of the block's first line, counted from 1.
        size: The number of lines of the block.
        offset: By how many lines they move; earlier if it is negative.
    """
    start = first - 1
    stop = start + size
    block = lines[start:stop]
    return [*lines[:start], *block[-offset:], *block[:-offset], *lines[stop:]]


@pytest.mark.parametrize(("offset", "expected"), [(1, "aebcdf"), (-1, "acdebf")])
def test_rotate_block_moves_lines_within_the_block(offset, expected):
    lines = list("abcdef")

    assert rotate_block(lines, first=2, size=4, offset=offset) == list(expected)


def test_no_misfit_is_found_in_translations():
    assert find_misfits(GERMAN_SENTENCES, ENGLISH_SENTENCES) == []


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
@pytest.mark.parametrize(
    ("first", "size"), [(1, 72), (301, 72), (401, 100), (851, 150), (901, 100)]
)
def test_a_block_that_moved_by_a_line_or_two_is_found(first, size, offset):
    """A lost line shifts all lines up to the next repair: sources get the wrong translations.

    Here, the English lines of a block are shifted by `offset`; all other lines translate each
    other. The place that is found may be 12 lines off.
    """
    german = GERMAN_SENTENCES[:1000]
    english = rotate_block(ENGLISH_SENTENCES[:1000], first, size, offset)
    last = first + size - 1

    misfits = find_misfits(german, english)

    assert len(misfits) == 1
    assert misfits[0].offset == offset
    assert abs(misfits[0].first - first) <= 12
    assert abs(misfits[0].last - last) <= 12


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
def test_a_text_that_moved_as_a_whole_is_found(offset):
    """All English sentences are shifted by `offset` against the German ones that they translate.

    The place that is found may be ten lines off.
    """
    german = GERMAN_SENTENCES[:500]
    english = rotate_block(ENGLISH_SENTENCES[:500], first=1, size=500, offset=offset)

    misfits = find_misfits(german, english)

    assert len(misfits) == 1
    assert misfits[0].offset == offset
    assert misfits[0].first <= 10
    assert misfits[0].last >= 490


def test_two_blocks_that_moved_are_listed_in_the_order_of_lines():
    """Lines 201 to 400 move by two lines, lines 1001 to 1200 by one line in the other direction."""
    german = GERMAN_SENTENCES[:1500]
    english = rotate_block(ENGLISH_SENTENCES[:1500], first=1001, size=200, offset=-1)
    english = rotate_block(english, first=201, size=200, offset=2)

    misfits = find_misfits(german, english)

    assert [misfit.offset for misfit in misfits] == [2, -1]


def test_a_block_in_reversed_order_is_found_as_unrelated_text():
    """In lines 801 to 1200, no shift makes the sentences fit, so that the offset is None."""
    german = GERMAN_SENTENCES[:2000]
    english = ENGLISH_SENTENCES[:2000]
    english[800:1200] = reversed(english[800:1200])

    misfits = find_misfits(german, english)

    assert len(misfits) == 1
    assert misfits[0].offset is None
    assert abs(misfits[0].first - 801) <= 20
    assert abs(misfits[0].last - 1200) <= 20


def test_a_shuffled_text_is_found_as_unrelated_from_its_first_to_its_last_line():
    """Before they are shuffled, the English sentences translate the German ones.

    No shift makes the sentences fit, so that the offset is None.
    """
    german = GERMAN_SENTENCES[:800]
    shuffled_english = random.Random(3).sample(ENGLISH_SENTENCES[:800], 800)

    misfits = find_misfits(german, shuffled_english)

    assert misfits == [Misfit(first=1, last=800, offset=None)]


def random_words(generator, count):
    """Return random words of 4 to 11 letters."""
    letters = "abcdefghijklmnoprstuvwz"
    return ["".join(generator.choices(letters, k=generator.randint(4, 11))) for _ in range(count)]


def test_lines_of_one_word_are_not_reported_although_their_lengths_are_unrelated():
    """Menus of programs are such texts: the length of a word says little about its translation."""
    generator = random.Random(5)
    source = random_words(generator, 400)
    target = random_words(generator, 400)

    assert find_misfits(source, target) == []


def test_equal_numbers_show_which_lines_moved():
    """All lines have the same words and lengths; only their numbers tell them apart."""
    numbers = random.Random(7).sample(range(1000, 9999), 300)
    source = [f"Zeile {number}" for number in numbers]
    target = [f"{number} is it" for number in numbers]
    moved_target = rotate_block(target, first=101, size=60, offset=1)  # Lines 101 to 160.

    misfits_of_aligned_text = find_misfits(source, target)
    misfits = find_misfits(source, moved_target)

    assert misfits_of_aligned_text == []
    assert len(misfits) == 1
    assert misfits[0].offset == 1
    assert abs(misfits[0].first - 101) <= 3
    assert abs(misfits[0].last - 160) <= 3


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["Ja."] * 300, id="equal lines"),
        pytest.param([""] * 300, id="empty lines"),
        pytest.param(["Ja.", "Nein."] * 150, id="alternating lines"),
    ],
)
def test_no_misfit_is_found_in_lines_that_repeat(lines):
    assert find_misfits(lines, ["Yes."] * 300) == []
    assert find_misfits(lines, lines) == []


def test_a_text_of_fewer_than_50_lines_is_not_judged():
    unrelated_english = ENGLISH_SENTENCES[49:98]

    assert find_misfits(GERMAN_SENTENCES[:49], unrelated_english) == []
    assert find_misfits([], []) == []


def test_a_text_with_too_many_pairs_to_compare_words_is_judged_by_lengths():
    """Comparing words needs memory for each pair; here, it has room for 700 of 3,000 pairs.

    English lines 2001 to 2300 are shifted by one line; all other lines translate each other.
    """
    english = rotate_block(ENGLISH_SENTENCES, first=2001, size=300, offset=1)
    pairs = list(map(Pair, GERMAN_SENTENCES, english))
    clues = PairClues(max_pairs_with_words=700)

    # PairClues passes the pairs through while it collects their clues.
    assert list(clues.collect(pairs)) == pairs
    misfits = clues.misfits()

    assert len(misfits) == 1
    assert misfits[0].offset == 1
    assert abs(misfits[0].first - 2001) <= 20


def test_line_numbers_of_a_text_that_is_judged_in_parts_count_from_its_start(monkeypatch):
    """The text has 3,000 lines and is judged in parts of 1,000, to limit memory.

    English lines 1301 to 1600, in the second part, are shifted by one line; all other lines
    translate each other.
    """
    monkeypatch.setattr(misalignment, "_MAX_PAIRS_PER_PART", 1000)
    english = rotate_block(ENGLISH_SENTENCES, first=1301, size=300, offset=1)
    pairs = list(map(Pair, GERMAN_SENTENCES, english))
    clues = PairClues()

    # PairClues passes the pairs through while it collects their clues.
    assert list(clues.collect(pairs)) == pairs
    misfits = clues.misfits()

    assert len(misfits) == 1
    assert misfits[0].offset == 1
    assert abs(misfits[0].first - 1301) <= 20
    assert abs(misfits[0].last - 1600) <= 20


LATER = Misfit(first=1, last=1200, offset=1)
EARLIER = Misfit(first=1300, last=1400, offset=-2)
UNRELATED = Misfit(first=1500, last=1600, offset=None)
FOURTH = Misfit(first=1700, last=1800, offset=1)


@pytest.mark.parametrize(
    ("misfits", "description"),
    [
        pytest.param(
            [LATER],
            "lines 1 to 1,200 fit the target 1 line later",
            id="one range",
        ),
        pytest.param(
            [LATER, EARLIER, UNRELATED],
            "lines 1 to 1,200 fit the target 1 line later, "
            "lines 1,300 to 1,400 fit the target 2 lines earlier, "
            "lines 1,500 to 1,600 do not fit at all",
            id="three ranges",
        ),
        pytest.param(
            [LATER, EARLIER, UNRELATED, FOURTH],
            "lines 1 to 1,200 fit the target 1 line later, "
            "lines 1,300 to 1,400 fit the target 2 lines earlier, "
            "lines 1,500 to 1,600 do not fit at all, and 1 more",
            id="four ranges, of which three are described",
        ),
    ],
)
def test_ranges_are_described_in_words(misfits, description):
    assert describe_misfits(misfits) == description


def test_length_scores_are_log_likelihood_ratios_of_normal_distributions():
    """How much likelier are two lengths in a translation than in two unrelated sentences?

    SciPy gives the expected densities: two correlated normal variables for translations, two
    independent ones by chance.
    """
    source = np.array([-1.3, 0.0, 0.4, 2.0])
    target = np.array([-0.9, 1.1, 0.4, -2.0])
    correlation = 0.7

    scores = pair_scores._length_scores(source, target, correlation)

    as_translations = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    by_chance = norm.logpdf(source) + norm.logpdf(target)
    expected = as_translations.logpdf(np.column_stack([source, target])) - by_chance
    assert scores == pytest.approx(expected)


def test_normal_scores_are_normal_quantiles_of_ranks():
    """The nth shortest of N sentences gets the quantile (n - 0.5) / N of the normal distribution.

    Ranks make lengths comparable between languages; SciPy gives the expected quantiles.
    """
    lengths = np.array([5, 3, 5, 9, 1, 5, 3], float)

    scores = pair_scores.normal_scores(lengths)

    assert scores == pytest.approx(norm.ppf((rankdata(lengths) - 0.5) / len(lengths)))


def test_word_scores_are_log_likelihood_ratios():
    """A word, such as a name, is in 10% of the sources and 5% of the targets; half are copied.

    The score of a pair depends on whether both sides contain the word, or only one of them.
    """
    scores = pair_scores._word_scores(
        source_frequency=0.1, target_frequency=0.05, source_copied=0.5, target_copied=0.5
    )

    log_ratio_from_source = np.log(0.5 / 0.05)  # P(in target | in source) / P(in target)
    log_ratio_from_target = np.log(0.5 / 0.1)  # P(in source | in target) / P(in source)
    assert scores.both == pytest.approx((log_ratio_from_source + log_ratio_from_target) / 2)
    assert scores.source == pytest.approx(np.log((1 - 0.5) / (1 - 0.05)))
    assert scores.target == pytest.approx(np.log((1 - 0.5) / (1 - 0.1)))


def test_a_word_that_is_copied_as_often_as_by_chance_has_score_0():
    """A word is in half of the sources and 60% of the targets; no pair may be favored by it.

    60% is also the share of targets that contain it if the source does.
    """
    scores = pair_scores._word_scores(
        source_frequency=0.5, target_frequency=0.6, source_copied=0.6, target_copied=0.5
    )

    assert scores.both == 0
    assert scores.source == 0
    assert scores.target == 0


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_the_best_range_has_the_largest_sum_of_all_ranges(values):
    """The lines that do not fit are found as the range with the largest sum of scores.

    The expected sum is the maximum over all ranges, tried one by one.
    """
    best_range = misalignment._best_range(np.array(values, float))

    sums = [0]  # The empty range.
    for start in range(len(values)):
        for stop in range(start + 1, len(values) + 1):
            sums.append(sum(values[start:stop]))
    assert best_range.total == max(sums)
    assert sum(values[best_range.start : best_range.stop]) == best_range.total
