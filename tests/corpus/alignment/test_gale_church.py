"""The scores of beads by lengths equal those of NLTK; test_lattice.py checks the beads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import BEAD_SIZES
from documents import full_band

# The lengths of the sentences of a document, in characters.
SENTENCE_LENGTHS = st.lists(st.integers(10, 90), min_size=1, max_size=8)


@pytest.mark.parametrize("size", BEAD_SIZES, ids=str)
@given(source_lengths=SENTENCE_LENGTHS, target_lengths=SENTENCE_LENGTHS)
@settings(max_examples=30)
def test_the_score_of_a_bead_is_the_negative_cost_of_nltk(size, source_lengths, target_lengths):
    """NLTK implements the same formula of Gale and Church; its cost is a negative log-probability.

    The size of a bead, such as (2, 1), is its number of source and of target sentences.
    """
    # Loading NLTK takes a second, which collecting the tests should not take.
    from nltk.translate.gale_church import LanguageIndependent, align_log_prob

    source_count, target_count = size
    rows = len(source_lengths) + 1
    columns = len(target_lengths) + 1
    scorer = LengthScorer.from_sentences(
        ["x" * length for length in source_lengths],
        ["y" * length for length in target_lengths],
        1.0,
    )

    # scores[size, row, column]: of the bead that ends after `row` source sentences and `column`
    # target sentences. `whole` is the band of all rows and columns.
    scores = scorer(full_band(rows, columns), 0, rows).reshape(len(BEAD_SIZES), rows, columns)

    for row in range(source_count, rows):
        for column in range(target_count, columns):
            cost = align_log_prob(
                row, column, source_lengths, target_lengths, size, LanguageIndependent
            )
            score = scores[BEAD_SIZES.index(size), row, column]
            # NLTK rounds the normal distribution of very unlikely beads.
            if score > -25:
                assert score == pytest.approx(-cost, abs=1e-4)
