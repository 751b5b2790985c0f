"""The section of data: what the stages and rules did, and the vocabularies."""

import unicodedata
from functools import partial

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, corpus_folder
from bleuprint.corpus.steps.filter_stats import SAMPLE_CHARACTERS
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import funnel, training_counts
from bleuprint.report.page.section import Section
from bleuprint.report.table import parted, stacked


def corpora(context: ReportContext) -> Section:
    """Every corpus: what is trained on, what the rules did, and what the model reads and writes."""
    names = context.settings.corpora
    data = {
        "corpora": names,
        "pairs": context.kept,
        "statistics": {
            name: CorpusStatistics.read(
                corpus_folder(name, "corpus_stats", context.root) / STATISTICS
            )
            for name in names
        },
        "stages": stacked(parted(funnel(names, context.root), "Corpus")),
        "samples": {
            name: [
                (stage, rule, samples)
                for stage, _, counts in training_counts(name, context.root)
                for rule, samples in counts.samples.items()
            ]
            for name in names
        },
        "visible": visible,
        "composed": partial(unicodedata.normalize, "NFC"),
        "cut": SAMPLE_CHARACTERS,
    }
    return Section("data", "Data", data)


def visible(text: str) -> Markup:
    """The text with each character that does not print as its marked code point."""
    mark = Markup('<mark title="{}">U+{:04X}</mark>')
    return Markup("").join(
        c
        if c.isprintable()
        else mark.format(unicodedata.name(c, "control character").lower(), ord(c))
        for c in text
    )
