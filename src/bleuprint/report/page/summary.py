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
    """Return the first section of the report: warnings, findings, and the tables of scores.

    Args:
        report: The settings and the results of the experiment.
    """
    ceiling_notes = notes.bleu_ceiling_notes(report.records.runs, report.root)
    data = {
        "cautions": [*cautions(report), *map(_split_title, ceiling_notes)],
        "findings": list(_findings(report)),
    }
    data |= score_variables(report)
    return Section("summary", "Summary", data)


def _findings(report: ReportData) -> Iterator[Finding]:
    """Yield the findings of the summary.

    They name the best system on each test set, the smallest difference that the test sets can
    detect, and what changes if significance tests resample documents in place of lines.
    """
    estimated_deviations = {}
    if not report.has_several_seeds:
        # With one seed, this experiment cannot show how much BLEU varies over seeds. Other reports
        # of the project may.
        estimated_deviations = estimate_deviations(report.root)
    yield from best_systems(report.scores, estimated_deviations)
    detectable = notes.detectable_note(report.records)
    if detectable:
        yield _split_title(detectable)
    for note in notes.document_notes(report.records):
        yield Finding("By document", note)


def _split_title(note: str) -> Finding:
    """Return a note, such as `Few lines: 100 of news`, as a finding with a title and a text."""
    title, _, text = note.partition(": ")
    return Finding(title, text)
