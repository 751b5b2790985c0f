"""The first section: whether a system is better, by how much, and what the evidence is worth."""

from collections.abc import Iterator

from bleuprint.report import notes
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import Finding, best_systems
from bleuprint.report.page.scores import scores
from bleuprint.report.page.section import Section
from bleuprint.report.seed_variance import deviations


def summary(context: ReportContext) -> Section:
    data = {
        "cautions": [*cautions(context), *_bleu_ceiling(context)],
        "findings": list(_findings(context)),
        **scores(context),
    }
    return Section("summary", "Summary", data)


def _bleu_ceiling(context: ReportContext) -> Iterator[Finding]:
    for note in notes.bleu_ceiling_notes(context.records.runs, context.root):
        title, _, text = note.partition(": ")
        yield Finding(title, text)


def _findings(context: ReportContext) -> Iterator[Finding]:
    over_seeds = {} if context.several else deviations(context.root)
    yield from best_systems(context.scores, over_seeds)
    if shown := notes.detectable_note(context.records):
        title, _, text = shown.partition(": ")
        yield Finding(title, text)
    for each in notes.document_notes(context.records):
        yield Finding("By document", each)
