"""Measures of lines that tests make up."""

from collections.abc import Sequence

from bleuprint.corpus.test_sets import Description
from bleuprint.scoring.measure import Texts
from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.score import by_document
from bleuprint.scoring.significance import PairedTest, measured, paired_test
from bleuprint.text.tokenizers import Tokenize

SACREBLEU = ("bleu", "chrf2", "chrf2pp", "ter")

Lines = Sequence[str]


class _Corpus:
    """What measures ask of a corpus: tokens are separated by spaces."""

    def __init__(self, target):
        self.source, self.target = "en", target
        self.tokenize = Tokenize("none", lowercase=False, hyphens=False, escape=False)


def texts_of(hypotheses, references, language="en", documents=None, corpus=None):
    """The references are their own sources, and their own tokens."""
    described = Description([5] * len(references), references, None, documents)
    found = corpus or _Corpus(language)
    return Texts(references, references, hypotheses, found, described)  # type: ignore[arg-type]


def measure(key, texts):
    """A measure of all lines."""
    found = MEASURES[key]
    statistics = found.count(texts)
    assert statistics is not None
    return measured(found, statistics, found.signature(texts))


def of_documents(key, texts):
    """The same with whole documents as units."""
    statistics = MEASURES[key].count(texts)
    assert statistics is not None
    (found,) = by_document(MEASURES[key], statistics, texts)
    return found


def bleu(hypotheses, references, language):
    return measure("bleu", texts_of(hypotheses, references, language))


def chrf(hypotheses, references):
    return measure("chrf2", texts_of(hypotheses, references))


def ter(hypotheses, references):
    return measure("ter", texts_of(hypotheses, references))


def paired_tests(systems, references, language):
    """The tests of each system against the first, by sacreBLEU's measures."""
    found: dict[str, dict[str, PairedTest]] = {name: {} for name in [*systems][1:]}
    for key in SACREBLEU:
        each = MEASURES[key]
        counted = {
            name: each.count(texts_of(of, references, language)) for name, of in systems.items()
        }
        (_, first), *others = counted.items()
        for name, second in others:
            assert first is not None and second is not None
            found[name][key] = paired_test(each, first, second)
    return found


def value_of(scores, measure):
    """The value over all lines; None if it was not measured."""
    found = (e["value"] for e in scores["measures"] if (e["measure"], e["group"]) == (measure, ""))
    return next(found, None)
