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
    """Return the HTML report as one text.

    The page contains its styles and scripts, so that it can be read offline as a single file.

    Args:
        report: The settings and the results of the experiment.
    """
    sections = []
    for make_section in SECTIONS:
        section = make_section(report)
        if section is not None:  # For example, an experiment may have no attention maps.
            sections.append(section)
    external_systems: dict[str, None] = {}  # A dict drops duplicates and keeps the order.
    for row in report.bleu_rows:
        if not row.is_trained:
            external_systems[row.system] = None
    return TEMPLATES.get_template("page.html.j2").render(
        settings=report.settings,
        pair_counts=report.pair_counts,
        untrained_systems=list(external_systems),
        sections=sections,
    )
