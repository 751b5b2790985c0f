"""Aligns the sentences of documents in two passes: by lengths, then by lengths and words.

The method comes from Moore (2002), "Fast and Accurate Sentence Alignment of Bilingual Corpora". The
first pass scores beads by the lengths of their sentences. The sentence pairs of which it is certain
teach word translations; the second pass scores beads by lengths and by these translations, and
searches only cells that the first pass found probable.

We align with code of our own because hunalign and vecalign are not on PyPI or need models, and the
packages for Gale and Church's method do not use words.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isqrt
from typing import NamedTuple, TypeAlias

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Band, Bead, Posteriors, best_path, forward_backward
from bleuprint.corpus.alignment.word_translation import (
    WordTranslations,
    encode_words,
    is_sampled,
    learn_word_translations,
)
from bleuprint.corpus.alignment.words import WordScorer, split_words
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import track

# A sentence pair of the first pass with a greater probability is used to learn word translations.
MIN_PAIR_PROBABILITY = 0.9
# Cells with a smaller probability in the first pass are not searched in the second pass.
MIN_CELL_PROBABILITY = 1e-6
# A band is too narrow if a cell at its edge has a greater probability than this.
MAX_EDGE_PROBABILITY = 1e-3
# A band is not widened beyond this number of cells, whose scores take 1 GB.
MAX_BAND_CELLS = 1 << 27
# The first band has this number of columns on each side of the diagonal, plus half the square root
# of the document's number of sentences.
_MIN_HALF_WIDTH = 16


class Document(NamedTuple):
    """A document in two languages.

    Attributes:
        source: The source sentences; there may be none.
        target: The target sentences; there may be none.
    """

    source: Sequence[str]
    target: Sequence[str]


_BandedDocument: TypeAlias = tuple[Document, Band]


def align(documents: Sequence[Document], workers: int) -> Iterator[list[Bead]]:
    """Find out which sentences of documents in two languages translate each other.

    The method comes from Moore (2002). A first pass compares the lengths of sentences, since long
    sentences have long translations. Word translations are learned from the sentence pairs of which
    it is certain. A second pass compares lengths and words; it searches only the alignments that
    the first pass found probable.

    All documents are in memory, and for the largest one, of n sentences, about n * sqrt(n) scores
    of 8 bytes each.

    Args:
        documents: The documents, each with its source and its target sentences.
        workers: The number of processes.

    Yields:
        The beads of each document, in order. A bead is a group of source and target sentences that
        translate each other, mostly one of each. Each sentence is in one bead.
    """
    ratio = length_ratio(documents)
    # Each worker process calls `_first_pass` once. It returns the function that aligns a document.
    first_pass = map_parts(partial(_first_pass, ratio), documents, workers)
    posteriors = list(track(first_pass, "align sentences", len(documents), "documents"))
    translations = _learn_from_certain_pairs(documents, posteriors)
    # Each document with its band, that is, with the alignments that are probable by lengths.
    banded_documents = []
    for document, posterior in zip(documents, posteriors, strict=True):
        banded_documents.append((document, posterior.band))
    second_pass = map_parts(partial(_second_pass, ratio, translations), banded_documents, workers)
    yield from track(second_pass, "align sentences", len(documents), "documents")


def length_ratio(documents: Sequence[Document]) -> float:
    """Return how many target characters correspond to one source character, on average.

    If all source or all target sentences are empty, this is 1.

    Args:
        documents: The documents with their source and target sentences.
    """
    source_length = 0
    target_length = 0
    for document in documents:
        source_length += sum(len(sentence) for sentence in document.source)
        target_length += sum(len(sentence) for sentence in document.target)
    if source_length == 0 or target_length == 0:
        return 1.0
    return target_length / source_length


def _first_pass(ratio: float) -> Callable[[Document], Posteriors]:
    """Return the function of the first pass; each worker process calls this once."""
    return partial(align_by_lengths, ratio)


def align_by_lengths(ratio: float, document: Document) -> Posteriors:
    """Compute which sentences of a document probably translate each other, by lengths alone.

    An alignment is a path through a table, whose cell (i, j) is the point after i source and j
    target sentences. To save time, only a band of cells near the diagonal is searched. The band is
    doubled until cells at its edges are improbable, since it then contains the right path; or until
    it would take too much memory.

    Args:
        ratio: How many target characters correspond to one source character.
        document: The source and the target sentences.
    """
    scorer = LengthScorer.from_sentences(document.source, document.target, ratio)
    rows = len(document.source) + 1
    columns = len(document.target) + 1
    # Longer documents have wider bands from the start: the path strays further from the diagonal.
    half_width = _MIN_HALF_WIDTH + isqrt(max(rows, columns)) // 2
    # A row of the band has 2 * half_width cells.
    half_width = min(half_width, MAX_BAND_CELLS // (2 * rows))
    while True:
        band = Band.around(scorer.centers, columns, half_width)
        posteriors = forward_backward(
            band, scorer, scorer.reversed, MIN_PAIR_PROBABILITY, MIN_CELL_PROBABILITY
        )
        is_wide_enough = posteriors.at_edge < MAX_EDGE_PROBABILITY or half_width >= columns
        cells_after_doubling = 2 * (2 * half_width) * rows
        if is_wide_enough or cells_after_doubling > MAX_BAND_CELLS:
            return posteriors
        half_width *= 2


def _learn_from_certain_pairs(
    documents: Sequence[Document], posteriors: Sequence[Posteriors]
) -> WordTranslations | None:
    """Learn word translations from the sentence pairs that are certain by their lengths.

    Args:
        documents: The documents.
        posteriors: For each document the certain pairs, as indices of source and target sentences.

    Returns:
        The word translations; None if no certain pair is short enough to learn from.
    """
    certain_pairs = []
    for document, posterior in zip(documents, posteriors, strict=True):
        for source_index, target_index in posterior.pairs:
            certain_pairs.append((document.source[source_index], document.target[target_index]))
    try:
        return learn_word_translations(_tokenize_sample(certain_pairs))
    except UserError:
        # No pair is certain, or all certain ones are too long. The second pass will compare lengths
        # alone.
        return None


def _tokenize_sample(
    pairs: Sequence[tuple[str, str]],
) -> Iterator[tuple[list[str], list[str]]]:
    """Split sentence pairs into words; only an evenly spaced sample if there are very many.

    Yields:
        The source words and the target words of a pair.
    """
    for index, (source, target) in enumerate(pairs):
        if is_sampled(index, len(pairs)):
            yield split_words(source), split_words(target)


def _second_pass(
    ratio: float, translations: WordTranslations | None
) -> Callable[[_BandedDocument], list[Bead]]:
    """Return the function of the second pass; each worker process calls this once."""
    return partial(_align_by_words, ratio, translations)


def _align_by_words(
    ratio: float, translations: WordTranslations | None, banded_document: _BandedDocument
) -> list[Bead]:
    """Find out which sentences of a document translate each other, by lengths and words.

    Args:
        ratio: How many target characters correspond to one source character.
        translations: The word translations; None to compare lengths alone.
        banded_document: The document; and its band: the alignments that are probable by lengths.
            Only these are searched.
    """
    document, band = banded_document
    length_scorer = LengthScorer.from_sentences(document.source, document.target, ratio)
    if translations is None:
        return best_path(band, length_scorer)
    source_vocabulary, target_vocabulary = translations.vocabularies
    word_scorer = WordScorer(
        lengths=length_scorer,
        source=[encode_words(source_vocabulary, split_words(line)) for line in document.source],
        target=[encode_words(target_vocabulary, split_words(line)) for line in document.target],
        translations=translations,
    )
    return best_path(band, word_scorer)
