"""The first section: which system is best, how sure this is, and the tables of scores."""

from collections.abc import Iterator

from bleuprint.report import notes
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import Finding, best_systems
from bleuprint.report.page.scores import scores
from bleuprint.report.page.section import Section
from bleuprint.report.seed_variance import deviations


def summary(context: ReportContext) -> Section:
    """Return the section with warnings, findings and scores.

    Args:
        context: The experiment and its results.
    """
    ceiling_notes = notes.bleu_ceiling_notes(context.records.runs, context.root)
    data = {
        "cautions": [*cautions(context), *map(_titled, ceiling_notes)],
        "findings": list(_findings(context)),
    }
    data |= scores(context)
    return Section("summary", "Summary", data)


def _findings(context: ReportContext) -> Iterator[Finding]:
    """Yield the best systems, the detectable difference, and what documents change."""
    # With several seeds, their own deviation is known and needs no estimate from other reports.
    estimated_deviations = {} if context.has_several_seeds else deviations(context.root)
    yield from best_systems(context.scores, estimated_deviations)
    detectable = notes.detectable_note(context.records)
    if detectable:
        yield _titled(detectable)
    for note in notes.document_notes(context.records):
        yield Finding("By document", note)


def _titled(note: str) -> Finding:
    """Return a note as a finding: what stands before its first colon is the title."""
    title, _, text = note.partition(": ")
    return Finding(title, text)
