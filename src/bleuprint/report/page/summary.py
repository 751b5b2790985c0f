"""The first section: which system is best, how sure this is, and the tables of scores."""

from collections.abc import Iterator

from bleuprint.report import notes
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.findings import Finding, best_systems
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.scores import score_variables
from bleuprint.report.page.section import Section
from bleuprint.report.seed_variance import estimate_deviations


def summary_section(report: ReportData) -> Section:
    """Return the section with warnings, findings and scores.

    Args:
        report: The experiment and its results.
    """
    ceiling_notes = notes.bleu_ceiling_notes(report.records.runs, report.root)
    data = {
        "cautions": [*cautions(report), *map(_titled, ceiling_notes)],
        "findings": list(_findings(report)),
    }
    data |= score_variables(report)
    return Section("summary", "Summary", data)


def _findings(report: ReportData) -> Iterator[Finding]:
    """Yield the best systems, the detectable difference, and what documents change."""
    # With several seeds, their own deviation is known and needs no estimate from other reports.
    estimated_deviations = {} if report.has_several_seeds else estimate_deviations(report.root)
    yield from best_systems(report.scores, estimated_deviations)
    detectable = notes.detectable_note(report.records)
    if detectable:
        yield _titled(detectable)
    for note in notes.document_notes(report.records):
        yield Finding("By document", note)


def _titled(note: str) -> Finding:
    """Return a note as a finding: what stands before its first colon is the title."""
    title, _, text = note.partition(": ")
    return Finding(title, text)
