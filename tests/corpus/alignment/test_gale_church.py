"""The scores of beads by lengths of NLTK 3.10.4; test_lattice.py has its beads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import BEAD_SIZES
from documents import whole

LENGTHS = st.lists(st.integers(10, 90), min_size=1, max_size=8)


@given(source=LENGTHS, target=LENGTHS)
@settings(max_examples=30)
def test_scores_and_beads_are_nltks(source, target):
    # Loading it takes a second, so that collecting the tests does not.
    from nltk.translate.gale_church import LanguageIndependent, align_log_prob

    rows, columns = len(source) + 1, len(target) + 1
    score = LengthScorer.from_sentences(["x" * n for n in source], ["y" * n for n in target], 1.0)
    scores = score(whole(rows, columns), 0, rows).reshape(-1, rows, columns)
    for kind, (di, dj) in enumerate(BEAD_SIZES):
        for i in range(di, rows):
            for j in range(dj, columns):
                cost = align_log_prob(i, j, source, target, (di, dj), LanguageIndependent)
                if -scores[kind, i, j] < 25:  # beyond, NLTK's normal distribution is rounded
                    assert scores[kind, i, j] == pytest.approx(-cost, abs=1e-4)
