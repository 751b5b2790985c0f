"""The search through a lattice equals a comparison of all paths, one by one.

A path is an alignment of two documents: a sequence of beads, of which each contains 0 to 2 source
sentences and 0 to 2 target sentences.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Band, Bead, best_path, forward_backward
from documents import full_band

# How often beads of each size occur: Gale and Church (1993), table 5.
PRIORS = {(1, 0): 0.0099, (0, 1): 0.0099, (1, 1): 0.89, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}
# The lengths of up to four sentences, in characters.
SENTENCE_LENGTHS = st.lists(st.integers(1, 90), max_size=4)
# The number of target characters for each source character.
LENGTH_RATIOS = st.sampled_from([1.0, 0.7, 1.3])


def bead_score(source_length, target_length, ratio):
    """Return the score of a bead by its lengths, without its prior, by the formula of the paper."""
    mean_length = (source_length + target_length / ratio) / 2
    delta = (source_length * ratio - target_length) / math.sqrt(6.8 * mean_length)
    return math.log(math.erfc(abs(delta) / math.sqrt(2)))


def all_paths(source_lengths, target_lengths, ratio, source_start=0, target_start=0):
    """Yield every sequence of beads from a cell to the end of both documents, with its score.

    Args:
        source_lengths: The lengths of the source sentences.
        target_lengths: The lengths of the target sentences.
        ratio: The number of target characters for each source character.
        source_start: The index of the first source sentence of the first bead.
        target_start: The index of its first target sentence.
    """
    if source_start == len(source_lengths) and target_start == len(target_lengths):
        yield 0.0, []
    for (source_count, target_count), prior in PRIORS.items():
        source_stop = source_start + source_count
        target_stop = target_start + target_count
        if source_stop > len(source_lengths) or target_stop > len(target_lengths):
            continue
        source_length = sum(source_lengths[source_start:source_stop])
        target_length = sum(target_lengths[target_start:target_stop])
        score = math.log(prior) + bead_score(source_length, target_length, ratio)
        bead = Bead(range(source_start, source_stop), range(target_start, target_stop))
        remaining_paths = all_paths(source_lengths, target_lengths, ratio, source_stop, target_stop)
        for remaining_score, remaining_beads in remaining_paths:
            yield score + remaining_score, [bead, *remaining_beads]


def length_scorer(source_lengths, target_lengths, ratio=1.0):
    """Return the scorer of two documents with sentences of these lengths."""
    source = ["x" * length for length in source_lengths]
    target = ["y" * length for length in target_lengths]
    return LengthScorer.from_sentences(source, target, ratio)


@given(source_lengths=SENTENCE_LENGTHS, target_lengths=SENTENCE_LENGTHS, ratio=LENGTH_RATIOS)
@settings(max_examples=50)
def test_the_best_path_has_the_highest_score_of_all_paths(source_lengths, target_lengths, ratio):
    """A path is a sequence of beads, which are groups of sentences that translate each other.

    `all_paths` yields every possible path of the two documents with its score.
    """
    scorer = length_scorer(source_lengths, target_lengths, ratio)
    all_cells = full_band(len(source_lengths) + 1, len(target_lengths) + 1)

    best_beads = best_path(all_cells, scorer)

    score_of_best_path = None
    scores = []
    for score, beads in all_paths(source_lengths, target_lengths, ratio):
        scores.append(score)
        if beads == best_beads:
            score_of_best_path = score
    assert score_of_best_path == pytest.approx(max(scores), rel=1e-9, abs=1e-9)


@given(source_lengths=SENTENCE_LENGTHS, target_lengths=SENTENCE_LENGTHS, ratio=LENGTH_RATIOS)
@settings(max_examples=50)
def test_certain_pairs_have_a_high_probability_over_all_paths(
    source_lengths, target_lengths, ratio
):
    """A pair of sentences is certain if the paths that align it have over 0.4 of all probability.

    `all_paths` yields every possible path with its log-probability, from which the expected pairs
    are summed. `forward_backward` computes the same without listing paths.
    """
    probabilities = dict.fromkeys(np.ndindex(len(source_lengths), len(target_lengths)), 0.0)
    total = 0.0
    for score, beads in all_paths(source_lengths, target_lengths, ratio):
        total += math.exp(score)
        for bead in beads:
            if bead.kind == "1-1":
                probabilities[bead.source[0], bead.target[0]] += math.exp(score)
    expected_pairs = []
    for pair, weight in probabilities.items():
        # Skip examples in which rounding decides whether a pair is above the limit.
        assume(abs(weight / total - 0.4) > 1e-6)
        if weight / total > 0.4:
            expected_pairs.append(pair)

    scorer = length_scorer(source_lengths, target_lengths, ratio)
    all_cells = full_band(len(source_lengths) + 1, len(target_lengths) + 1)
    posteriors = forward_backward(
        all_cells, scorer, scorer.reversed, min_pair_probability=0.4, min_cell_probability=0.0
    )

    assert posteriors.pairs == expected_pairs


@pytest.fixture
def scorer_with_lost_sentence():
    """The scorer of 400 source sentences, and of as many targets but for sentence 150."""
    source_lengths = [20 + 13 * index % 57 for index in range(400)]
    target_lengths = [length + 3 for length in source_lengths]
    del target_lengths[150]
    return length_scorer(source_lengths, target_lengths)


def test_the_best_path_is_the_same_in_a_narrow_band_that_contains_it(scorer_with_lost_sentence):
    """A band limits the search to cells near the diagonal, which saves time and memory.

    The scorer compares 400 source sentences with 399 targets: only target 150 is missing, so that
    the best path stays near the diagonal.
    """
    scorer = scorer_with_lost_sentence
    wide_band = Band.around(scorer.centers, columns=400, half_width=400)
    narrow_band = Band.around(scorer.centers, columns=400, half_width=30)

    beads = best_path(narrow_band, scorer)

    assert beads == best_path(wide_band, scorer)


def test_certain_pairs_are_the_same_in_a_narrow_band_that_contains_them(scorer_with_lost_sentence):
    """A band limits the search to cells near the diagonal, which saves time and memory.

    The scorer compares 400 source sentences with 399 targets: only target 150 is missing, so that
    all probable paths stay near the diagonal.
    """
    scorer = scorer_with_lost_sentence
    wide_band = Band.around(scorer.centers, columns=400, half_width=400)
    narrow_band = Band.around(scorer.centers, columns=400, half_width=30)

    wide = forward_backward(
        wide_band, scorer, scorer.reversed, min_pair_probability=0.9, min_cell_probability=1e-6
    )
    narrow = forward_backward(
        narrow_band, scorer, scorer.reversed, min_pair_probability=0.9, min_cell_probability=1e-6
    )

    assert narrow.pairs == wide.pairs
    # The probability of the paths that touch the edges of the band.
    assert narrow.at_edge < 1e-6


def test_the_band_of_probable_cells_contains_the_best_path(scorer_with_lost_sentence):
    """`forward_backward` returns the band of probable cells, in which a second search is faster.

    The scorer compares 400 source sentences with 399 targets: only target 150 is missing.
    """
    scorer = scorer_with_lost_sentence
    wide_band = Band.around(scorer.centers, columns=400, half_width=400)
    narrow_band = Band.around(scorer.centers, columns=400, half_width=30)

    posteriors = forward_backward(
        narrow_band, scorer, scorer.reversed, min_pair_probability=0.9, min_cell_probability=1e-6
    )

    assert best_path(posteriors.band, scorer) == best_path(wide_band, scorer)


def test_a_probable_path_along_the_edge_of_a_band_is_reported():
    """`at_edge` is the probability of the paths that touch the band's edge.

    If it is high, the right path may lie outside of the band, and the caller widens the band.
    """
    equal_lengths = [30] * 60
    scorer = length_scorer(equal_lengths, equal_lengths)
    # Row n of the band has the columns n to n + 11. The most probable path pairs equal indices:
    # the diagonal, which is the left edge of this band.
    starts = np.arange(61)
    band = Band(starts, np.minimum(starts + 12, 61))

    posteriors = forward_backward(
        band, scorer, scorer.reversed, min_pair_probability=0.9, min_cell_probability=1e-6
    )

    assert posteriors.at_edge > 0.1


def test_a_narrow_band_has_a_path_even_if_the_diagonal_is_steep():
    """The diagonal of 5 source and 600 target sentences jumps by 120 columns per row.

    A band of half width 1 around it would have gaps, so that the search would find no path, unless
    the band is widened where the diagonal jumps.
    """
    scorer = length_scorer([500, 3, 3, 900, 2], [1, 2, 3] * 200)
    band = Band.around(scorer.centers, columns=601, half_width=1)

    target_indices = []
    for bead in best_path(band, scorer):
        target_indices += bead.target

    assert target_indices == list(range(600))
