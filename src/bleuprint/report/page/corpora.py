"""The section of data: what the stages and rules did, and the vocabularies."""

import unicodedata
from collections import Counter
from functools import partial

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.corpus.steps.ledger import SAMPLE_CHARACTERS, STAGES
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.report.arranged import stacked
from bleuprint.report.grid import NONE, Grid, grid
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import funnel, training_counts
from bleuprint.report.page.section import Section


def corpora(context: ReportContext) -> Section:
    """Every corpus: what is trained on, what the rules did, and what the model reads and writes."""
    names = context.settings.corpora
    data = {
        "corpora": names,
        "pairs": context.kept,
        "statistics": {
            name: CorpusStatistics.read(folder(name, "statistics", context.root) / STATISTICS)
            for name in names
        },
        "stages": stacked({name: _stages(name, context) for name in names}),
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


def _stages(name: str, context: ReportContext) -> Grid:
    """What each stage dropped and changed of each part of the training text; idle ones left out."""
    rows = [row.cells[1:] for row in funnel([name], context.root).rows]
    shown = [row for row in rows if row[1] == STAGES[0] or {*row[2:4]} != {NONE}]
    parts = Counter(row[1] for row in shown)
    named = (
        (f"{stage}, {part}" if parts[stage] > 1 else stage, dropped, changed, left)
        for part, stage, dropped, changed, _, left in shown
    )
    return grid(("Stage", "Dropped", "Changed"), ["Pairs left"], named)
