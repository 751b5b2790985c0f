"""The section of data: what the stages and rules did, and the vocabularies."""

import unicodedata
from functools import partial
from typing import Any

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.corpus.steps.ledger import SAMPLE_CHARACTERS, STAGES
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.report.grid import NONE
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import funnel, kept, training_counts
from bleuprint.report.page.section import Section

_OVERLAP = ("source_held_out", "target_held_out")


def corpora(context: ReportContext) -> Section:
    """Every corpus: its funnel, overlap and vocabularies."""
    data = {
        "corpora": [_corpus(context, name) for name in context.settings.corpora],
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


def _corpus(context: ReportContext, name: str) -> dict[str, Any]:
    pairs = kept(name, context.root)
    stages = [row.cells for row in funnel([name], context.root).rows]
    described = folder(name, "statistics", context.root)
    return {
        "name": name,
        "settings": context.settings.corpus(name),
        "pairs": pairs,
        "funnel": [cells for cells in stages if cells[2] == STAGES[0] or {*cells[3:5]} != {NONE}],
        "samples": [
            (stage, rule, samples)
            for stage, _, counts in training_counts(name, context.root)
            for rule, samples in counts.samples.items()
        ],
        "overlap": sum(pairs.dropped.get(rule, 0) for rule in _OVERLAP),
        "statistics": CorpusStatistics.read(described / STATISTICS),
    }
