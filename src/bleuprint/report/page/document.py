"""The whole HTML report: its head, the links to its sections, and the sections."""

from collections.abc import Callable

from bleuprint.report.page.attention import attention
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.corpora import corpora
from bleuprint.report.page.curves import curves
from bleuprint.report.page.provenance import provenance
from bleuprint.report.page.scores import cost, errors
from bleuprint.report.page.section import TEMPLATES, Section
from bleuprint.report.page.sentences import sentences
from bleuprint.report.page.summary import summary

# The functions that make the sections, in the order of the page. A section without content is None.
SECTIONS: tuple[Callable[[ReportContext], Section | None], ...] = (
    summary,
    curves,
    errors,
    sentences,
    attention,
    corpora,
    cost,
    provenance,
)


def document(context: ReportContext) -> str:
    """Return the HTML report as one text, with its styles and scripts: it makes no request.

    Args:
        context: The experiment and its results.
    """
    sections = []
    for make_section in SECTIONS:
        section = make_section(context)
        if section is not None:
            sections.append(section)
    untrained_systems: dict[str, None] = {}
    for row in context.bleu_rows:
        if not row.is_trained:
            untrained_systems[row.system] = None
    return TEMPLATES.get_template("page.html.j2").render(
        settings=context.settings,
        pair_counts=context.pair_counts,
        untrained_systems=list(untrained_systems),
        sections=sections,
    )
