"""The scores of beads by lengths, and the beads, of NLTK 3.10.4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.gale_church import LanguageIndependent, align_blocks, align_log_prob

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import KINDS, Band, best_path

LENGTHS = st.lists(st.integers(10, 90), min_size=1, max_size=8)


@given(source=LENGTHS, target=LENGTHS)
@settings(deadline=None, max_examples=30)
def test_scores_and_beads_are_nltks(source, target):
    rows, columns = len(source) + 1, len(target) + 1
    band = Band(np.zeros(rows, np.int64), np.full(rows, columns))
    score = LengthScorer.of(["x" * n for n in source], ["y" * n for n in target], 1.0)
    scores = score(band, 0, rows).reshape(-1, rows, columns)
    for kind, (di, dj) in enumerate(KINDS):
        for i in range(di, rows):
            for j in range(dj, columns):
                cost = align_log_prob(i, j, source, target, (di, dj), LanguageIndependent)
                if -scores[kind, i, j] < 25:  # beyond, NLTK's normal distribution is rounded
                    assert scores[kind, i, j] == pytest.approx(-cost, abs=1e-4)
    beads = best_path(band, score)
    links = [(i, j) for bead in beads for i in bead.source for j in bead.target]
    theirs = align_blocks(source, target)
    if sorted(links) != sorted(theirs):  # equally good, or else wrong
        assert _cost(links, source, target) == pytest.approx(
            _cost(theirs, source, target), abs=1e-4
        )


def _cost(links, source, target):
    """The sum of NLTK's costs of the beads that links make."""
    sides = {}
    for i, j in links:
        bead = next((b for b in sides.values() if i in b[0] or j in b[1]), ({*()}, {*()}))
        bead[0].add(i)
        bead[1].add(j)
        sides[id(bead)] = bead
    beads = list(sides.values())
    linked = [{place for bead in beads for place in bead[side]} for side in (0, 1)]
    beads += [({i}, {*()}) for i in range(len(source)) if i not in linked[0]]
    beads += [({*()}, {j}) for j in range(len(target)) if j not in linked[1]]
    return sum(
        align_log_prob(
            max(b[0], default=-1) + 1,
            max(b[1], default=-1) + 1,
            source,
            target,
            (len(b[0]), len(b[1])),
            LanguageIndependent,
        )
        for b in beads
    )
