"""Aligns the sentences of documents: by their lengths, then by lengths and words (Moore 2002).

The pairs of which the first pass is certain teach the word translations of the second, which
searches only the cells that the first did not find improbable.

Own code: hunalign and vecalign are not on PyPI or need models, and the packages for Gale and
Church's method know no words.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import isqrt
from typing import Any, NamedTuple, TypeVar

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Band, Bead, Posteriors, best_path, posteriors
from bleuprint.corpus.alignment.word_translation import (
    WordTranslations,
    is_drawn,
    learn,
    word_ids,
)
from bleuprint.corpus.alignment.words import WordScorer, words
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
# Documents that a worker is given at once.
_AT_ONCE = 32

R = TypeVar("R")


class Document(NamedTuple):
    """The sentences of a document in both languages; a side may be empty."""

    source: Sequence[str]
    target: Sequence[str]


def align(documents: Sequence[Document], workers: int) -> Iterator[list[Bead]]:
    """The beads of each document, which hold each of its sentences once, in order.

    All documents are in memory, and of the largest one 8 bytes a cell of the band searched, which
    has about the square root of the number of its sentences on each side of the diagonal.
    """
    ratio = _ratio(documents)
    passed = list(_each(partial(align_by_lengths, ratio=ratio), workers, documents))
    bands = [posterior.band for posterior in passed]
    yield from _each(partial(_best, ratio, _learn(documents, passed)), workers, documents, bands)


def _each(
    function: Callable[..., R], workers: int, documents: Sequence[Document], *others: Sequence[Any]
) -> Iterator[R]:
    """What a function returns for each document, and for what `others` have of it."""
    arguments = [*zip(documents, *others, strict=True)]
    starts = range(0, len(arguments), _AT_ONCE)
    parts = (arguments[start : start + _AT_ONCE] for start in starts)
    found = chain.from_iterable(map_parts(partial(partial, _all, function), parts, workers))
    yield from track(found, "align sentences", len(documents), "documents")


def _all(function: Callable[..., R], part: Sequence[tuple[Any, ...]]) -> list[R]:
    return [function(*arguments) for arguments in part]


def _ratio(documents: Sequence[Document]) -> float:
    """Target characters a source character; 1 if a side has none."""
    source, target = (
        sum(len(sentence) for document in documents for sentence in document[side])
        for side in (0, 1)
    )
    return target / source if source and target else 1.0


def align_by_lengths(document: Document, ratio: float) -> Posteriors:
    """The posterior probabilities by lengths, in a band that is widened if it is too narrow."""
    score = LengthScorer.of(document.source, document.target, ratio)
    rows, columns = len(document.source) + 1, len(document.target) + 1
    half = min(16 + isqrt(max(rows, columns)) // 2, MAX_CELLS // (2 * rows))
    while True:
        band = Band.around(score.centers, columns, half)
        found = posteriors(band, score, CERTAIN, IMPROBABLE)
        if found.at_edge < AT_EDGE or half >= columns or 4 * half * rows > MAX_CELLS:
            return found
        half *= 2


def _learn(documents: Sequence[Document], passed: Sequence[Posteriors]) -> WordTranslations | None:
    """The word translations in the pairs that are certain; None if there are none."""
    total = sum(len(posterior.pairs) for posterior in passed)
    places = (
        (document, pair)
        for document, posterior in zip(documents, passed, strict=True)
        for pair in posterior.pairs.tolist()
    )
    tokens = (
        (words(document.source[source]), words(document.target[target]))
        for number, (document, (source, target)) in enumerate(places)
        if is_drawn(number, total)
    )
    try:
        return learn(tokens)
    except UserError:
        return None


def _best(
    ratio: float, table: WordTranslations | None, document: Document, band: Band
) -> list[Bead]:
    lengths = LengthScorer.of(*document, ratio)
    if table is None:
        return best_path(band, lengths)
    source, target = (
        [word_ids(numbers, words(sentence)) for sentence in side]
        for numbers, side in zip(table.numbers, document, strict=True)
    )
    return best_path(band, WordScorer(lengths, source, target, table))
