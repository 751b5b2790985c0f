"""Sentences of documents are aligned by lengths and words.

The documents are cut from parallel sentences of the phrasebook, so that the true beads are known. A
bead is a group of source sentences and the target sentences that translate them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bleuprint.corpus.alignment.align import Document, align, align_by_lengths
from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import BEAD_SIZES, best_path
from bleuprint.corpus.alignment.word_translation import encode_words, learn_word_translations
from bleuprint.corpus.alignment.words import WordScorer, split_words
from corpora import phrasebook_sentences, sources_of, targets_of
from documents import cut_into_documents, f1, full_band


@pytest.fixture(scope="module")
def pairs():
    """3,000 pairs of an English sentence and its German translation."""
    english = phrasebook_sentences("en", 3000)
    german = phrasebook_sentences("de", 3000)
    return list(zip(english, german, strict=True))


def test_alignment_by_words_is_more_accurate_than_by_lengths_alone(pairs):
    """A bead is a group of source sentences and the target sentences that translate them.

    `cut` returns documents of 40 sentence pairs with their true beads: 5% of the pairs lose, join
    or split a sentence on one side. `f1` is the harmonic mean of precision and recall of beads.
    """
    documents, true_beads = cut_into_documents(pairs, length=40, rate=0.05, seed=1)
    ratio = len("".join(targets_of(pairs))) / len("".join(sources_of(pairs)))

    beads = align(documents, workers=1)
    beads_by_lengths = []
    for document in documents:
        band = align_by_lengths(ratio, document).band
        scorer = LengthScorer.from_sentences(document.source, document.target, ratio)
        beads_by_lengths.append(best_path(band, scorer))

    required_f1 = 0.98
    assert f1(true_beads, beads) >= required_f1
    assert f1(true_beads, beads_by_lengths) < required_f1


def test_a_document_of_1500_sentences_is_aligned_with_an_f1_of_98_percent(pairs):
    """A long document is aligned as accurately as short ones.

    `cut` returns the document with its true beads: 10% of the pairs lose, join or split a sentence
    on one side. `f1` is the harmonic mean of precision and recall of beads.
    """
    documents, true_beads = cut_into_documents(pairs[:1500], length=1500, rate=0.1, seed=2)
    assert len(documents) == 1

    beads = align(documents, workers=1)

    assert f1(true_beads, beads) >= 0.98


def test_a_document_is_aligned_as_well_in_the_other_direction(pairs):
    """Source and target are swapped before the alignment, and swapped back in its beads.

    `cut` returns a document with its true beads: 10% of the pairs lose, join or split a sentence on
    one side. `f1` is the harmonic mean of precision and recall of beads.
    """
    documents, true_beads = cut_into_documents(pairs[:1500], length=1500, rate=0.1, seed=2)
    swapped_document = Document(documents[0].target, documents[0].source)

    swapped_beads = next(align([swapped_document], workers=1))

    beads = []
    for bead in swapped_beads:
        beads.append(bead._replace(source=bead.target, target=bead.source))
    assert f1(true_beads, [beads]) >= 0.98


def test_a_gap_of_60_sentences_is_found_although_it_is_wider_than_the_band(pairs):
    """60 sentences in a row have no translation; the pairs before and after them must be found.

    The search is limited to a band near the diagonal, and is repeated in a wider band if the best
    path reaches its edge.
    """
    source = sources_of(pairs[:1400])
    target = targets_of(pairs[:1400])
    del target[200:260]  # Source sentences 200 to 259 lose their translations.

    beads = next(align([Document(source, target)], workers=1))

    index_pairs = []
    for bead in beads:
        if bead.kind == "1-1":
            index_pairs.append((bead.source[0], bead.target[0]))
    before_gap = list(zip(range(200), range(200), strict=True))
    after_gap = list(zip(range(260, 1400), range(200, 1340), strict=True))
    assert index_pairs == before_gap + after_gap


def test_the_number_of_workers_does_not_change_the_beads(pairs):
    documents, _ = cut_into_documents(pairs, length=50, rate=0.15, seed=3)

    assert list(align(documents, workers=1)) == list(align(documents, workers=3))


@dataclass
class ScoredLattice:
    """The scores of all beads of a document of about seven sentences.

    Attributes:
        document: The document.
        translations: The word translations by which the beads are scored.
        length_scores: The scores by lengths, (bead sizes, rows, columns). A bead ends after `row`
            source sentences and `column` target sentences.
        word_scores: The scores by lengths and words, of the same shape.
    """

    document: Document
    translations: Any
    length_scores: np.ndarray
    word_scores: np.ndarray


def encode_sentences(vocabulary, sentences):
    """Return the word ids of each sentence."""
    return [encode_words(vocabulary, split_words(sentence)) for sentence in sentences]


@pytest.fixture(scope="module")
def lattice(pairs):
    """A document with all scores of its beads."""
    words = [(split_words(source), split_words(target)) for source, target in pairs[:500]]
    translations = learn_word_translations(words)
    documents, _ = cut_into_documents(pairs[500:507], length=7, rate=0.5, seed=4)
    document = documents[0]
    source_vocabulary, target_vocabulary = translations.vocabularies
    length_scorer = LengthScorer.from_sentences(document.source, document.target, 1.1)
    word_scorer = WordScorer(
        lengths=length_scorer,
        source=encode_sentences(source_vocabulary, document.source),
        target=encode_sentences(target_vocabulary, document.target),
        translations=translations,
    )
    rows = len(document.source) + 1
    columns = len(document.target) + 1
    band = full_band(rows, columns)
    shape = (len(BEAD_SIZES), rows, columns)
    return ScoredLattice(
        document=document,
        translations=translations,
        length_scores=length_scorer(band, 0, rows).reshape(shape),
        word_scores=word_scorer(band, 0, rows).reshape(shape),
    )


@pytest.mark.parametrize("size", BEAD_SIZES, ids=str)
def test_a_bead_that_would_begin_before_the_document_is_impossible(lattice, size):
    """A bead of size (2, 1) cannot end after one source sentence, since it contains two.

    `scores[row, column]` is the score of the bead that ends after `row` source sentences and
    `column` target sentences; impossible beads have the score -inf.
    """
    source_count, target_count = size

    scores = lattice.word_scores[BEAD_SIZES.index(size)]

    assert np.all(scores[:source_count, :] == -np.inf)
    assert np.all(scores[:, :target_count] == -np.inf)


@pytest.mark.parametrize("size", [(1, 0), (0, 1)], ids=str)
def test_a_bead_with_an_empty_side_scores_its_prior(lattice, size):
    """A bead of size (1, 0) is a source sentence without a translation: no words to compare.

    `scores[row, column]` is the score of the bead that ends after `row` source sentences and
    `column` target sentences.
    """
    source_count, target_count = size

    scores = lattice.word_scores[BEAD_SIZES.index(size)]

    # Before these cells, a bead of this size would begin before the document.
    possible_scores = scores[source_count:, target_count:]
    prior = 0.0099  # Gale and Church (1993), table 5: how often a bead has an empty side.
    assert possible_scores == pytest.approx(np.full(possible_scores.shape, np.log(prior)))


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 2), (2, 2)], ids=str)
def test_a_bead_scores_its_lengths_and_how_well_its_words_explain_each_other(lattice, size):
    """The score of a bead is its score by lengths, plus the mean log-likelihood ratio of its words.

    The bead at (row, column) ends after `row` source sentences and `column` target sentences. A
    size of (2, 1) means two source sentences and one target sentence.
    """
    source_count, target_count = size
    size_index = BEAD_SIZES.index(size)
    rows, columns = lattice.word_scores.shape[1:]

    for row in range(source_count, rows):
        for column in range(target_count, columns):
            source_words = []
            for sentence in lattice.document.source[row - source_count : row]:
                source_words += split_words(sentence)
            target_words = []
            for sentence in lattice.document.target[column - target_count : column]:
                target_words += split_words(sentence)
            length_score = lattice.length_scores[size_index, row, column]
            log_ratio = mean_log_ratio(lattice.translations, source_words, target_words)
            score = lattice.word_scores[size_index, row, column]
            assert score == pytest.approx(length_score + log_ratio, rel=1e-5)


def mean_log_ratio(translations, source_words, target_words):
    """Return the mean over both directions of log(p(words | other side) / p(words))."""
    source_vocabulary, target_vocabulary = translations.vocabularies
    source_ids = encode_words(source_vocabulary, source_words).tolist()
    target_ids = encode_words(target_vocabulary, target_words).tolist()
    forward = log_ratio_of_words(
        target_ids, source_ids, translations.forward, translations.forward.linked
    )
    backward = log_ratio_of_words(
        source_ids, target_ids, translations.backward, translations.backward.linked.T.tocsr()
    )
    return (forward + backward) / 2


def log_ratio_of_words(words, conditions, ratios, linked):
    """Return log(p(words | conditions) / p(words)) by IBM Model 1, word by word.

    Args:
        words: The ids of the words of one side.
        conditions: The ids of the words of the other side.
        ratios: The likelihood ratios of this direction.
        linked: The ratios of linked words, (conditions, words).
    """
    total = 0.0
    for word in words:
        ratio_sum = ratios.null[word]
        for condition in conditions:
            ratio_sum += ratios.prior_share[condition] + linked[condition, word]
        # Each word may be unexplained with a probability of 0.05. NULL is one more condition.
        total += np.log(0.05 + 0.95 * ratio_sum / (len(conditions) + 1))
    return total


SENTENCES = [f"Satz {number}" for number in range(200)]
EMPTY = Document([], [])
ONLY_SOURCE = Document(["allein"], [])
ONLY_TARGET = Document([], ["alone", "too"])
SINGLE_PAIR = Document(["eins"], ["one"])
LONG_TARGET = Document(["a" * 5000], SENTENCES)
LONG_SOURCE = Document(SENTENCES, ["kurz"])


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([], id="no documents"),
        pytest.param([EMPTY], id="empty document"),
        pytest.param([ONLY_SOURCE, ONLY_TARGET], id="documents with one side"),
        pytest.param(
            [EMPTY, ONLY_SOURCE, ONLY_TARGET, SINGLE_PAIR, LONG_TARGET, LONG_SOURCE],
            id="documents with 0, 1 and 200 sentences",
        ),
    ],
)
def test_each_sentence_is_in_one_bead_even_if_sides_differ_much(documents):
    """A bead is a group of source sentences and the target sentences that translate them.

    LONG_TARGET is a document of one source sentence and 200 target sentences; LONG_SOURCE is the
    reverse.
    """
    beads_by_document = list(align(documents, workers=1))

    assert len(beads_by_document) == len(documents)
    for document, beads in zip(documents, beads_by_document, strict=True):
        source_indices = []
        target_indices = []
        for bead in beads:
            source_indices += bead.source
            target_indices += bead.target
        assert source_indices == list(range(len(document.source)))
        assert target_indices == list(range(len(document.target)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "Ein 3-Bein, naïve!",
            ["Ein", "3", "-", "Bein", ",", "naïve", "!"],
            id="words, numbers and punctuation",
        ),
        pytest.param(
            "東京はABC。",
            ["東", "京", "は", "ABC", "。"],
            id="each character of a script without spaces",
        ),
        pytest.param(" \u2028\t", [], id="white space"),
    ],
)
def test_split_words_splits_text_for_word_translations(text, words):
    assert split_words(text) == words
