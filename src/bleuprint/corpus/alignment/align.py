"""Aligns the sentences of documents: by their lengths, then by lengths and words (Moore 2002).

The pairs of which the first pass is certain teach the word translations of the second, which
searches only the cells that the first did not find improbable.

Own code: hunalign and vecalign are not on PyPI or need models, and the packages for Gale and
Church's method know no words.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import isqrt
from typing import NamedTuple

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Band, Bead, Posteriors, best_path, forward_backward
from bleuprint.corpus.alignment.word_translation import (
    WordTranslations,
    is_sampled,
    learn_word_translations,
    word_ids,
)
from bleuprint.corpus.alignment.words import WordScorer, split_words
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import track

# Posterior probabilities: of a pair to learn from; of a cell that the second pass leaves out; and
# at the edge of a band that is too narrow.
CERTAIN = 0.9
IMPROBABLE = 1e-6
AT_EDGE = 1e-3
# A band is not widened beyond: 1 GB.
MAX_CELLS = 1 << 27


class Document(NamedTuple):
    """The sentences of a document in both languages; a side may be empty."""

    source: Sequence[str]
    target: Sequence[str]


def align(documents: Sequence[Document], workers: int) -> Iterator[list[Bead]]:
    """The beads of each document, which hold each of its sentences once, in order.

    All documents are in memory, and of the largest one 8 bytes a cell of the band searched, which
    has about the square root of the number of its sentences on each side of the diagonal.
    """
    source, target = (sum(len(s) for text in documents for s in text[side]) for side in (0, 1))
    ratio = target / source if source and target else 1.0  # target characters a source character
    progress = ("align sentences", len(documents), "documents")
    passed = map_parts(partial(partial, align_by_lengths, ratio), documents, workers)
    found = list(track(passed, *progress))
    best = partial(partial, _best, ratio, _learn(documents, found))
    bands = [posterior.band for posterior in found]
    yield from track(map_parts(best, zip(documents, bands, strict=True), workers), *progress)


def align_by_lengths(ratio: float, document: Document) -> Posteriors:
    """The posterior probabilities by lengths, in a band that is widened if it is too narrow."""
    score = LengthScorer.from_sentences(*document, ratio)
    rows, columns = len(document.source) + 1, len(document.target) + 1
    half = min(16 + isqrt(max(rows, columns)) // 2, MAX_CELLS // (2 * rows))
    while True:
        band = Band.around(score.centers, columns, half)
        found = forward_backward(band, score, score.reversed, CERTAIN, IMPROBABLE)
        if found.at_edge < AT_EDGE or half >= columns or 4 * half * rows > MAX_CELLS:
            return found
        half *= 2


def _learn(documents: Sequence[Document], passed: Sequence[Posteriors]) -> WordTranslations | None:
    """The word translations in the pairs that are certain; None if there are none."""
    pairs = [
        (text.source[i], text.target[j])
        for text, posterior in zip(documents, passed, strict=True)
        for i, j in posterior.pairs
    ]
    drawn = (pair for number, pair in enumerate(pairs) if is_sampled(number, len(pairs)))
    try:
        return learn_word_translations(
            (split_words(source), split_words(target)) for source, target in drawn
        )
    except UserError:
        return None


def _best(ratio: float, table: WordTranslations | None, part: tuple[Document, Band]) -> list[Bead]:
    document, band = part
    lengths = LengthScorer.from_sentences(*document, ratio)
    if table is None:
        return best_path(band, lengths)
    source, target = (
        [word_ids(numbers, split_words(sentence)) for sentence in side]
        for numbers, side in zip(table.numbers, document, strict=True)
    )
    return best_path(band, WordScorer(lengths, source, target, table))
