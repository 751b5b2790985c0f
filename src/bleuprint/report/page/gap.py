"""The section of the gap to published numbers, split into measured steps."""

from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import unmeasured


def gap_section(context: ReportContext) -> Section | None:
    """A part for each published number that names a system of ours."""
    hints = [gap_tables.hint(number) for number in unmeasured(context.settings, context.gaps)]
    if not context.gaps and not hints:
        return None
    parts = [
        (gap_tables.heading(gap.published), gap_tables.sentence(gap), gap_tables.steps(gap))
        for gap in context.gaps
    ]
    data = {"explained": gap_tables.EXPLAINED, "parts": parts, "hints": hints}
    return Section("gap", "Why not the published score?", data)
