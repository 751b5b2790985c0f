"""Lattices against all their paths one by one, and by NLTK's examples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Band, Bead, best_path, forward_backward
from documents import whole

PRIORS = {(1, 0): 0.0099, (0, 1): 0.0099, (1, 1): 0.89, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}
LENGTHS = st.lists(st.integers(1, 90), max_size=4)


def score_of(source, target, ratio):
    """A bead's score by its lengths, from the formula in the paper."""
    mean = (source + target / ratio) / 2
    delta = (source * ratio - target) / math.sqrt(6.8 * mean)
    return math.log(math.erfc(abs(delta) / math.sqrt(2)))


def paths(source, target, ratio, i=0, j=0):
    """Every sequence of beads, with its score."""
    if (i, j) == (len(source), len(target)):
        yield 0.0, []
    for (di, dj), prior in PRIORS.items():
        if i + di <= len(source) and j + dj <= len(target):
            own = score_of(sum(source[i : i + di]), sum(target[j : j + dj]), ratio)
            bead = Bead(range(i, i + di), range(j, j + dj))
            for rest, beads in paths(source, target, ratio, i + di, j + dj):
                yield math.log(prior) + own + rest, [bead, *beads]


def scorer(source, target, ratio=1.0):
    return LengthScorer.from_sentences(
        ["x" * length for length in source], ["y" * n for n in target], ratio
    )


@given(source=LENGTHS, target=LENGTHS, ratio=st.sampled_from([1.0, 0.7, 1.3]))
@settings(max_examples=50)
def test_the_best_path_and_posteriors_are_those_of_all_paths(source, target, ratio):
    every = list(paths(source, target, ratio))
    weights = [math.exp(score) for score, _ in every]
    band, score = whole(len(source) + 1, len(target) + 1), scorer(source, target, ratio)
    best = best_path(band, score)
    found = next(s for s, beads in every if beads == best)
    assert found == pytest.approx(max(s for s, _ in every), rel=1e-9, abs=1e-9)
    pairs = {
        (i, j): sum(
            weight
            for weight, (_, beads) in zip(weights, every, strict=True)
            if Bead(range(i, i + 1), range(j, j + 1)) in beads
        )
        / sum(weights)
        for i in range(len(source))
        for j in range(len(target))
    }
    if all(abs(probability - 0.4) > 1e-6 for probability in pairs.values()):
        certain = forward_backward(band, score, score.reversed, 0.4, 0.0).pairs
        assert certain == [p for p, share in pairs.items() if share > 0.4]


def test_a_band_that_holds_the_path_changes_nothing():
    source = [20 + 13 * n % 57 for n in range(400)]
    target = [length + 3 for n, length in enumerate(source) if n != 150]
    score = scorer(source, target)
    wide, narrow = (Band.around(score.centers, 400, half) for half in (400, 30))
    assert best_path(narrow, score) == best_path(wide, score)
    both = [forward_backward(band, score, score.reversed, 0.9, 1e-6) for band in (wide, narrow)]
    assert both[0].pairs == both[1].pairs
    assert both[1].at_edge < 1e-6
    # the pruned band still holds the best path
    assert best_path(both[1].band, score) == best_path(wide, score)


def test_a_path_along_the_edge_of_a_band_is_noticed():
    source = [30] * 60
    score = scorer(source, source)
    shifted = Band(np.arange(61), np.minimum(np.arange(61) + 12, 61))
    assert forward_backward(shifted, score, score.reversed, 0.9, 1e-6).at_edge > 0.1


def test_every_band_around_a_diagonal_holds_a_path():
    source, target = [500, 3, 3, 900, 2], [1, 2, 3] * 200
    score = scorer(source, target)
    band = Band.around(score.centers, len(target) + 1, 1)
    assert [place for bead in best_path(band, score) for place in bead.target] == list(range(600))
