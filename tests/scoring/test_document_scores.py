"""Scores by document against sacreBLEU on text written out, and resamples drawn by hand."""

import random

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF

import result_trees as trees
from bleuprint.scoring.metric import parse_statistics
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.score import by_document
from bleuprint.scoring.significance import paired_test
from measuring import measure, of_documents, texts_of

WORDS = [f"w{number}" for number in range(50)]


def made(documents, lines):
    """Hypotheses, references and documents of `lines` lines each.

    A quarter to all of a document's words are right.
    """
    rng = random.Random(7)
    shares = [rng.uniform(0.25, 1) for _ in range(documents * lines)]
    hypotheses, references, ids = [], [], []
    for document in range(documents):
        for _ in range(lines):
            words = rng.choices(WORDS, k=12)
            references.append(" ".join(words))
            hypotheses.append(
                " ".join(w if rng.random() < shares[document] else "x" for w in words)
            )
            ids.append(f"d{document}")
    return hypotheses, references, ids


def test_dbleu_is_sacrebleus_of_documents_in_one_line():
    hypotheses, references, ids = made(5, 4)
    joined = [
        [" ".join(side[4 * d : 4 * d + 4]) for d in range(5)] for side in (hypotheses, references)
    ]
    # the order of lines in the file does not count, as long as it is kept within documents
    turned = [line for start in range(4) for line in range(start, 20, 4)]
    texts = ([text[line] for line in turned] for text in (hypotheses, references))
    found = measure("dbleu", texts_of(*texts, "en", [ids[line] for line in turned]))
    metric = BLEU(references=[joined[1]], trg_lang="en")
    expected = metric.corpus_score(joined[0], None, n_bootstrap=1000)
    assert found["value"] == pytest.approx(expected.score, abs=1e-6)
    interval = found["ci_low"], found["ci_high"]
    assert interval == pytest.approx(
        (expected._mean - expected._ci, expected._mean + expected._ci), abs=1e-4
    )
    assert found["signature"] == metric.get_signature().format()


def test_dbleu_does_not_see_where_sentences_of_a_document_end():
    texts = texts_of(["a b c", "d e f g"], ["a b c d e", "f g"], "en", ["one", "one"])
    assert measure("dbleu", texts)["value"] == pytest.approx(100)
    assert measure("bleu", texts)["value"] < 60


@pytest.mark.parametrize(("key", "metric"), [("bleu", BLEU()), ("chrf2", CHRF())])
def test_the_interval_is_that_of_texts_of_drawn_documents(key, metric):
    """Each resample is written out document by document and scored as a text of its own."""
    hypotheses, references, ids = made(6, 3)
    interval = of_documents(key, texts_of(hypotheses, references, "en", ids))
    scores = []
    for drawn in np.random.default_rng(12345).choice(6, size=(1000, 6), replace=True):
        lines = [3 * document + line for document in drawn for line in range(3)]
        texts = [hypotheses[n] for n in lines], [[references[n] for n in lines]]
        scores.append(metric.corpus_score(*texts).score)
    half = (sorted(scores)[974] - sorted(scores)[25]) / 2
    expected = np.mean(scores) - half, np.mean(scores) + half
    assert (interval["ci_low"], interval["ci_high"]) == pytest.approx(expected, abs=1e-3)


def test_one_document_has_no_interval():
    """All resamples of a single document are equal: its interval would have no width."""
    hypotheses, references, _ = made(1, 4)
    texts = texts_of(hypotheses, references, "en", ["one"] * 4)
    bleu = METRICS["bleu"]
    assert list(by_document(bleu, bleu.count(texts), texts)) == []
    two_documents = texts_of(hypotheses, references, "en", ["one", "one", "two", "two"])
    (interval,) = by_document(bleu, bleu.count(two_documents), two_documents)
    assert interval["units"] == 2
    assert interval["ci_low"] < interval["ci_high"]


def test_lines_that_are_documents_have_the_interval_of_lines():
    hypotheses, references, _ = made(5, 4)
    texts = texts_of(hypotheses, references, "en", [str(line) for line in range(20)])
    assert of_documents("ter", texts) == {**measure("ter", texts), "group": "document"}


def test_paired_tests_by_document_are_those_of_documents_drawn_and_swapped(monkeypatch):
    trees.few_samples(monkeypatch)
    hypotheses, references, ids = made(8, 3)
    other = [line.replace("x", "x y") for line in hypotheses]
    other[:9] = references[:9]  # better in three documents, worse in the others
    sides = [of_documents("chrf2", texts_of(s, references, "en", ids)) for s in (hypotheses, other)]
    found = paired_test(METRICS["chrf2"], *map(parse_statistics, sides))
    metric, deltas, swapped = CHRF(), [], []

    def difference(one, two, lines):
        expected = [[references[n] for n in lines]]
        scores = [metric.corpus_score([s[n] for n in lines], expected).score for s in (one, two)]
        return scores[1] - scores[0]

    drawing = np.random.default_rng(12345)
    for drawn in drawing.choice(8, size=(200, 8), replace=True):
        lines = [3 * document + line for document in drawn for line in range(3)]
        deltas.append(difference(hypotheses, other, lines))
    observed = abs(difference(hypotheses, other, list(range(24))))
    centered = np.abs(deltas) - np.mean(np.abs(deltas))
    assert found.bootstrap == pytest.approx((np.sum(centered > observed) + 1) / 201, abs=0.006)
    assert found.standard_error == pytest.approx(np.std(deltas, ddof=1), abs=1e-3)
    # of 256 ways to swap 8 documents, each with a probability of 1/256
    for swap in range(256):
        pairs = [(hypotheses, other)[:: -1 if swap >> n // 3 & 1 else 1] for n in range(24)]
        one, two = ([pair[side][n] for n, pair in enumerate(pairs)] for side in (0, 1))
        swapped.append(abs(difference(one, two, list(range(24)))))
    share = np.mean(np.array(swapped) > observed + 1e-9)
    assert found.randomization == pytest.approx(share, abs=0.1)
