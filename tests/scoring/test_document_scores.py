"""Scores by document against sacreBLEU on text written out, and resamples drawn by hand.

d-BLEU is BLEU of whole documents, of which each is one long line. Other metrics are scored by line,
but their resamples consist of whole documents.
"""

import random

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF

import result_trees as trees
from bleuprint.scoring.metric import parse_statistics
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.score import by_document
from bleuprint.scoring.significance import paired_test
from measuring import measure, measure_documents, translated_set

# The seed of sacreBLEU's resamples.
SACREBLEU_SEED = 12345


def write_documents(documents, lines):
    """Make translations of documents.

    Args:
        documents: The number of documents. In each another share of words is right, from a quarter
            to all.
        lines: The number of lines of each document.

    Returns:
        The translations, the references, and the name of each line's document.
    """
    rng = random.Random(7)
    vocabulary = [f"w{number}" for number in range(50)]
    correct_shares = [rng.uniform(0.25, 1) for _ in range(documents * lines)]
    hypotheses = []
    references = []
    names = []
    for document in range(documents):
        for _ in range(lines):
            reference = rng.choices(vocabulary, k=12)
            hypothesis = []
            for word in reference:
                is_correct = rng.random() < correct_shares[document]
                hypothesis.append(word if is_correct else "x")
            references.append(" ".join(reference))
            hypotheses.append(" ".join(hypothesis))
            names.append(f"d{document}")
    return hypotheses, references, names


def lines_of_documents(documents, lines_per_document):
    """Return the numbers of the lines of some documents."""
    lines = []
    for document in documents:
        start = document * lines_per_document
        lines.extend(range(start, start + lines_per_document))
    return lines


def score_lines(metric, hypotheses, references, lines):
    """Return sacreBLEU's score of the text that consists of these lines, by their numbers."""
    chosen_hypotheses = [hypotheses[line] for line in lines]
    chosen_references = [references[line] for line in lines]
    return metric.corpus_score(chosen_hypotheses, [chosen_references]).score


def join_documents(lines, lines_per_document):
    """Return each document as one line."""
    starts = range(0, len(lines), lines_per_document)
    return [" ".join(lines[start : start + lines_per_document]) for start in starts]


@pytest.fixture
def dbleu_of_sacrebleu():
    """Return sacreBLEU's score of five documents that are one line each, and its signature."""
    hypotheses, references, _ = write_documents(documents=5, lines=4)
    metric = BLEU(references=[join_documents(references, 4)], trg_lang="en")
    score = metric.corpus_score(join_documents(hypotheses, 4), None, n_bootstrap=1000)
    return score, metric.get_signature().format()


def test_dbleu_equals_sacrebleus_score_of_documents_in_one_line(dbleu_of_sacrebleu):
    """d-BLEU is BLEU of whole documents.

    The expected score is sacreBLEU's on a file in which each document is one line.
    """
    hypotheses, references, names = write_documents(documents=5, lines=4)

    dbleu = measure("dbleu", translated_set(hypotheses, references, "en", names))

    expected, signature = dbleu_of_sacrebleu
    interval = (expected._mean - expected._ci, expected._mean + expected._ci)
    assert dbleu["value"] == pytest.approx(expected.score, abs=1e-6)
    assert (dbleu["ci_low"], dbleu["ci_high"]) == pytest.approx(interval, abs=1e-4)
    assert dbleu["signature"] == signature


def test_dbleu_is_the_same_if_the_lines_of_documents_alternate(dbleu_of_sacrebleu):
    """Lines belong to a document by its name, and need not stand next to each other.

    The file has the first line of each of five documents, then the second line of each, and so on.
    """
    hypotheses, references, names = write_documents(documents=5, lines=4)
    order = []
    for line in range(4):
        order.extend(range(line, 20, 4))
    alternating_hypotheses = [hypotheses[line] for line in order]
    alternating_references = [references[line] for line in order]
    alternating_names = [names[line] for line in order]

    alternating = translated_set(
        alternating_hypotheses, alternating_references, "en", alternating_names
    )
    dbleu = measure("dbleu", alternating)

    expected, signature = dbleu_of_sacrebleu
    interval = (expected._mean - expected._ci, expected._mean + expected._ci)
    assert dbleu["value"] == pytest.approx(expected.score, abs=1e-6)
    assert (dbleu["ci_low"], dbleu["ci_high"]) == pytest.approx(interval, abs=1e-4)
    assert dbleu["signature"] == signature


def test_dbleu_ignores_where_the_sentences_of_a_document_end():
    """The translation has the right words, with the end of the first sentence in another place.

    BLEU of lines punishes that, and BLEU of the whole document does not.
    """
    hypotheses = ["a b c", "d e f g"]
    references = ["a b c d e", "f g"]

    one_document = translated_set(hypotheses, references, "en", ["one document", "one document"])

    assert measure("dbleu", one_document)["value"] == pytest.approx(100)
    assert measure("bleu", one_document)["value"] < 60


@pytest.mark.parametrize(
    ("key", "metric"),
    [pytest.param("bleu", BLEU(), id="BLEU"), pytest.param("chrf2", CHRF(), id="chrF2")],
)
def test_the_confidence_interval_is_that_of_resampled_documents(key, metric):
    """The test resamples in a slow and simple way: 1,000 times, it draws six of six documents.

    Each resample is written out as a text of its own, and scored by sacreBLEU.
    """
    hypotheses, references, names = write_documents(documents=6, lines=3)

    interval = measure_documents(key, translated_set(hypotheses, references, "en", names))

    resamples = np.random.default_rng(SACREBLEU_SEED).choice(6, size=(1000, 6), replace=True)
    scores = []
    for documents in resamples:
        lines = lines_of_documents(documents, lines_per_document=3)
        scores.append(score_lines(metric, hypotheses, references, lines))
    scores.sort()
    # 95 % of the scores lie between these two.
    half_width = (scores[974] - scores[25]) / 2
    expected = (np.mean(scores) - half_width, np.mean(scores) + half_width)
    assert (interval["ci_low"], interval["ci_high"]) == pytest.approx(expected, abs=1e-3)


def test_a_single_document_has_no_confidence_interval():
    """All resamples of a single document are equal: its interval would have no width."""
    hypotheses, references, _ = write_documents(documents=1, lines=4)
    texts = translated_set(hypotheses, references, "en", ["one", "one", "one", "one"])
    bleu = METRICS["bleu"]

    assert list(by_document(bleu, bleu.count(texts), texts)) == []


def test_two_documents_have_a_confidence_interval():
    hypotheses, references, _ = write_documents(documents=1, lines=4)
    texts = translated_set(hypotheses, references, "en", ["one", "one", "two", "two"])
    bleu = METRICS["bleu"]

    (interval,) = by_document(bleu, bleu.count(texts), texts)

    assert interval["units"] == 2
    assert interval["ci_low"] < interval["ci_high"]


def test_documents_of_one_line_have_the_interval_of_lines():
    """If each line is a document, to resample documents is to resample lines."""
    hypotheses, references, _ = write_documents(documents=5, lines=4)
    document_of_each_line = [str(line) for line in range(20)]
    texts = translated_set(hypotheses, references, "en", document_of_each_line)

    entry_of_documents = measure_documents("ter", texts)

    entry_of_lines = measure("ter", texts)
    assert entry_of_documents == {**entry_of_lines, "group": "document"}


class TestPairedTests:
    """Two systems are compared by whole documents, which are resampled or swapped."""

    documents = 8
    lines_per_document = 3
    all_lines = range(24)

    @pytest.fixture(autouse=True)
    def texts(self, monkeypatch):
        """Write a second system that is better in three documents and worse in the others."""
        trees.few_samples(monkeypatch)
        self.first, self.references, names = write_documents(
            self.documents, self.lines_per_document
        )
        self.second = [line.replace("x", "x y") for line in self.first]
        self.second[:9] = self.references[:9]
        statistics = []
        for system in (self.first, self.second):
            texts = translated_set(system, self.references, "en", names)
            statistics.append(parse_statistics(measure_documents("chrf2", texts)))
        self.tested = paired_test(METRICS["chrf2"], *statistics)

    def difference(self, first, second, lines):
        """Return by how much chrF of the second system is higher in these lines."""
        first_score = score_lines(CHRF(), first, self.references, lines)
        second_score = score_lines(CHRF(), second, self.references, lines)
        return second_score - first_score

    def test_bootstrap_and_standard_error_are_those_of_resampled_documents(self):
        """The test resamples in a slow and simple way: 200 times, it draws 8 of 8 documents.

        In each resample it computes the difference of the two systems in chrF2.
        """
        observed = abs(self.difference(self.first, self.second, self.all_lines))
        resamples = np.random.default_rng(SACREBLEU_SEED).choice(8, size=(200, 8), replace=True)
        differences = []
        for documents in resamples:
            lines = lines_of_documents(documents, self.lines_per_document)
            differences.append(self.difference(self.first, self.second, lines))

        # sacreBLEU's p: how often a difference, moved to a mean of 0, exceeds the observed one.
        centered = np.abs(differences) - np.mean(np.abs(differences))
        p_value = (np.sum(centered > observed) + 1) / (200 + 1)
        assert self.tested.bootstrap == pytest.approx(p_value, abs=0.006)
        standard_error = np.std(differences, ddof=1)
        assert self.tested.standard_error == pytest.approx(standard_error, abs=1e-3)

    def test_randomization_swaps_whole_documents(self):
        """p: the share of swaps after which the two systems differ by more than they do.

        A swap exchanges some documents of one system with those of the other one. The program draws
        swaps at random. With eight documents, the test tries all 2^8 of them.
        """
        observed = abs(self.difference(self.first, self.second, self.all_lines))
        differences = []
        for swaps in range(2**self.documents):
            first = []
            second = []
            for line in self.all_lines:
                # One bit of the number says whether this document is swapped.
                is_swapped = swaps >> (line // self.lines_per_document) & 1
                first.append(self.second[line] if is_swapped else self.first[line])
                second.append(self.first[line] if is_swapped else self.second[line])
            differences.append(abs(self.difference(first, second, self.all_lines)))

        share = np.mean(np.array(differences) > observed + 1e-9)
        assert self.tested.randomization == pytest.approx(share, abs=0.1)
