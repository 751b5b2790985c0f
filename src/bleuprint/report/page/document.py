"""The whole HTML report: its head, the links to its sections, and the sections."""

from collections.abc import Callable

from bleuprint.report.page.attention import attention_section
from bleuprint.report.page.corpora import data_section
from bleuprint.report.page.curves import curves_section
from bleuprint.report.page.provenance import provenance_section
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.scores import cost_section, errors_section
from bleuprint.report.page.section import TEMPLATES, Section
from bleuprint.report.page.sentences import sentences_section
from bleuprint.report.page.summary import summary_section

# The functions that make the sections, in the order of the page. A section without content is None.
SECTIONS: tuple[Callable[[ReportData], Section | None], ...] = (
    summary_section,
    curves_section,
    errors_section,
    sentences_section,
    attention_section,
    data_section,
    cost_section,
    provenance_section,
)


def html_page(report: ReportData) -> str:
    """Return the HTML report as one text, with its styles and scripts: it makes no request.

    Args:
        report: The experiment and its results.
    """
    sections = []
    for make_section in SECTIONS:
        section = make_section(report)
        if section is not None:
            sections.append(section)
    untrained_systems: dict[str, None] = {}
    for row in report.bleu_rows:
        if not row.is_trained:
            untrained_systems[row.system] = None
    return TEMPLATES.get_template("page.html.j2").render(
        settings=report.settings,
        pair_counts=report.pair_counts,
        untrained_systems=list(untrained_systems),
        sections=sections,
    )
