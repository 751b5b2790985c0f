"""Compute metrics of translations that tests write themselves."""

from collections.abc import Sequence

from bleuprint.corpus.test_sets import SetDescription
from bleuprint.scoring.metric import TranslatedSet
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.score import by_document
from bleuprint.scoring.significance import PairedTest, evaluate_metric, paired_test
from bleuprint.text.tokenizers import Tokenize

SACREBLEU = ("bleu", "chrf2", "chrf2pp", "ter")

Lines = Sequence[str]


class _Corpus:
    """The settings of a corpus that metrics read. Tokens are separated by spaces."""

    def __init__(self, target):
        """Create settings for translations from English into a target language."""
        self.source = "en"
        self.target = target
        self.tokenize = Tokenize("none", lowercase=False, hyphens=False, escape=False)


def translated_set(hypotheses, references, language="en", documents=None, corpus=None):
    """Return the texts of a test set in which the references are also the sources and the tokens.

    Args:
        hypotheses: The translations.
        references: The references.
        language: The target language.
        documents: The id of each line's document; None if the set has no documents.
        corpus: The corpus; one of which little is known if omitted.
    """
    description = SetDescription([5] * len(references), references, None, documents)
    if corpus is None:
        corpus = _Corpus(language)
    return TranslatedSet(references, references, hypotheses, corpus, description)


def measure(key, texts):
    """Return the entry of a metric over all lines, as results contain it."""
    metric = METRICS[key]
    statistics = metric.count(texts)
    assert statistics is not None
    return evaluate_metric(metric, statistics, metric.signature(texts))


def measure_documents(key, texts):
    """Return the entry of a metric over whole documents."""
    statistics = METRICS[key].count(texts)
    assert statistics is not None
    (entry,) = by_document(METRICS[key], statistics, texts)
    return entry


def bleu(hypotheses, references, language):
    """Return the entry of BLEU, whose tokenizer depends on the target language."""
    return measure("bleu", translated_set(hypotheses, references, language))


def chrf(hypotheses, references):
    """Return the entry of chrF2."""
    return measure("chrf2", translated_set(hypotheses, references))


def ter(hypotheses, references):
    """Return the entry of TER."""
    return measure("ter", translated_set(hypotheses, references))


def paired_tests(systems, references, language):
    """Test each system against the first one by sacreBLEU's metrics.

    Args:
        systems: The translations of each system by its name.
        references: The references.
        language: The target language.

    Returns:
        The tests by system, except the first one, and by metric.
    """
    first_name, *other_names = systems
    tests: dict[str, dict[str, PairedTest]] = {name: {} for name in other_names}
    for key in SACREBLEU:
        metric = METRICS[key]
        statistics = {}
        for name, hypotheses in systems.items():
            statistics[name] = metric.count(translated_set(hypotheses, references, language))
        for name in other_names:
            tests[name][key] = paired_test(metric, statistics[first_name], statistics[name])
    return tests


def value_of(scores, metric):
    """Return the value of a metric over all lines; None if it was not measured."""
    for entry in scores["metrics"]:
        if entry["metric"] == metric and entry["group"] == "":
            return entry["value"]
    return None
