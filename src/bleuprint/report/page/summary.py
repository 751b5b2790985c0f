"""The first section: the result at a glance, the findings in sentences, and what to try next."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report import notes, tables
from bleuprint.report.page.advice import advice
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import Finding, best_systems
from bleuprint.report.page.section import Section
from bleuprint.report.system_results import SystemResult, by_test
from bleuprint.runtime.html import counted

# The ends of a scale are multiples of this many BLEU.
_STEP = 5


@dataclass(frozen=True)
class Glance:
    """The systems on a test set, and the ends of the scale on which their BLEU is drawn."""

    title: str
    results: Sequence[SystemResult]
    low: int
    high: int

    def place(self, bleu: float) -> str:
        """In per cent of the scale."""
        return f"{100 * (bleu - self.low) / (self.high - self.low):.1f}%"


def summary(context: ReportContext) -> Section:
    several = len(context.settings.seeds) > 1
    validations = {
        f"{cell.system}, {cell.corpus}" + (f", seed {cell.seed}" if several else ""): of.validation
        for cell, of in context.curves.items()
    }
    data = {
        "glances": list(glances(context.results)),
        "several_seeds": several,
        "notes": list(notes.reachable_notes(context.records.cells, context.root)),
        "findings": list(_findings(context)),
        "advice": advice(context.results, validations),
    }
    return Section("summary", "Summary", data)


def glances(results: Sequence[SystemResult]) -> Iterator[Glance]:
    for (task, test), of_test in by_test(results).items():
        ends = [end for result in of_test for end in result.bleu.ends]
        low, high = _STEP * math.floor(min(ends) / _STEP), _STEP * math.ceil(max(ends) / _STEP)
        title = f"{task}, test set {test} ({counted(int(of_test[0].first.lines), 'sentence')})"
        yield Glance(title, of_test, low, max(low + _STEP, high))


def _findings(context: ReportContext) -> Iterator[Finding]:
    yield from best_systems(context.results)
    if shown := notes.detectable_note(context.records):
        text = shown.partition(": ")[2]
        yield Finding("The smallest difference that this can show", text[0].upper() + text[1:])
    for each in tables.document_findings(context.records):
        yield Finding("By document", each)
