"""Alignment of documents of the phrasebook, whose true beads are known."""

import numpy as np
import pytest

from bleuprint.corpus.alignment.align import Document, align, align_by_lengths
from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import BEAD_SIZES, best_path
from bleuprint.corpus.alignment.word_translation import encode_words, learn_word_translations
from bleuprint.corpus.alignment.words import WordScorer, split_words
from bleuprint.corpus.phrasebook import sentences
from documents import cut, f1, whole


@pytest.fixture(scope="module")
def pairs():
    return list(zip(sentences("train", "en"), sentences("train", "de"), strict=True))[:3000]


def test_beads_of_the_phrasebook_are_found_by_words_where_lengths_do_not_suffice(pairs):
    documents, truth = cut(pairs, length=40, rate=0.05, seed=1)
    assert f1(truth, align(documents, 1)) >= 0.98
    ratio = sum(len(b) for _, b in pairs) / sum(len(a) for a, _ in pairs)
    by_lengths = [
        best_path(align_by_lengths(ratio, text).band, LengthScorer.from_sentences(*text, ratio))
        for text in documents
    ]
    assert f1(truth, by_lengths) < 0.98


def test_one_big_document_and_two_files_in_the_other_order(pairs):
    (document,), truth = cut(pairs[:1500], length=1500, rate=0.1, seed=2)
    assert f1(truth, align([document], 1)) >= 0.98
    (turned,) = align([Document(document.target, document.source)], 1)
    back = [bead._replace(source=bead.target, target=bead.source) for bead in turned]
    assert f1(truth, [back]) >= 0.98


def test_a_gap_wider_than_the_band_widens_it(pairs):
    (document,), _ = cut(pairs[:1400], length=1400, rate=0.0, seed=1)
    gap = Document(document.source, [*document.target[:200], *document.target[260:]])
    (beads,) = align([gap], 1)
    found = [(bead.source[0], bead.target[0]) for bead in beads if bead.kind == "1-1"]
    assert found == [(i, i if i < 200 else i - 60) for i in range(1400) if not 200 <= i < 260]


def test_the_number_of_workers_changes_nothing(pairs):
    documents, _ = cut(pairs, length=50, rate=0.15, seed=3)
    assert list(align(documents, 1)) == list(align(documents, 3))


def test_scores_by_words_are_those_of_the_table_bead_by_bead(pairs):
    table = learn_word_translations([(split_words(a), split_words(b)) for a, b in pairs[:500]])
    (document,), _ = cut(pairs[500:507], length=7, rate=0.5, seed=4)
    ids = [
        [encode_words(numbers, split_words(sentence)) for sentence in side]
        for numbers, side in zip(table.vocabularies, document, strict=True)
    ]
    lengths = LengthScorer.from_sentences(*document, 1.1)
    rows, columns = (len(side) + 1 for side in document)
    band = whole(rows, columns)
    by_lengths = lengths(band, 0, rows).reshape(len(BEAD_SIZES), rows, columns)
    scores = WordScorer(lengths, *ids, table)(band, 0, rows)
    scores = scores.reshape(by_lengths.shape)
    for kind, (di, dj) in enumerate(BEAD_SIZES):
        for i in range(rows):
            for j in range(columns):
                if i < di or j < dj:
                    assert scores[kind, i, j] == -np.inf
                elif di and dj:
                    source = [w for s in document.source[i - di : i] for w in split_words(s)]
                    target = [w for s in document.target[j - dj : j] for w in split_words(s)]
                    forward, backward = _sums(table, source, target)
                    expected = by_lengths[kind, i, j] + (forward + backward) / 2
                    assert scores[kind, i, j] == pytest.approx(expected, rel=1e-5)
                else:
                    assert scores[kind, i, j] == pytest.approx(np.log(0.0099))


def _sums(table, source, target):
    """The log-likelihood ratios of all words of the target, and of the source, word by word."""
    s, t = (
        encode_words(n, side).tolist()
        for n, side in zip(table.vocabularies, (source, target), strict=True)
    )
    sums = []
    for given, found, evidence in (s, t, table.forward), (t, s, table.backward):
        links = evidence.linked if given is s else evidence.linked.T.tocsr()
        total = 0.0
        for word in found:
            ratio = evidence.null[word] + sum(
                evidence.prior_share[g] + links[g, word] for g in given
            )
            total += np.log(0.05 + 0.95 * ratio / (len(given) + 1))
        sums.append(total)
    return sums


def test_empty_single_and_very_unequal_documents():
    text = [f"Satz {n}" for n in range(200)]
    documents = [
        Document([], []),
        Document(["allein"], []),
        Document([], ["alone", "too"]),
        Document(["eins"], ["one"]),
        Document(["a" * 5000], text),
        Document(text, ["kurz"]),
    ]
    for some in (documents, documents[:1], documents[1:3], []):
        for document, beads in zip(some, align(some, 1), strict=True):
            for side, sentences_of in zip(("source", "target"), document, strict=True):
                places = [place for bead in beads for place in getattr(bead, side)]
                assert places == list(range(len(sentences_of)))


def test_words_of_scripts_without_spaces_are_characters():
    assert split_words("Ein 3-Bein, naïve!") == ["Ein", "3", "-", "Bein", ",", "naïve", "!"]
    assert split_words("東京はABC。") == ["東", "京", "は", "ABC", "。"]
    assert split_words(" \u2028\t") == []
