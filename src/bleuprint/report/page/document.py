"""The whole page: its head, the list of its sections, and the sections."""

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

# The sections in the order of the page; None is a section without content.
SECTIONS: tuple[Callable[[ReportContext], Section | None], ...] = (
    *(summary, curves, errors, sentences),
    *(attention, corpora, cost, provenance),
)


def document(context: ReportContext) -> str:
    """The page as one text: styles and scripts are in it, and it makes no request."""
    return TEMPLATES.get_template("page.html.j2").render(
        settings=context.settings,
        pairs={name: of.left for name, of in context.kept.items()},
        not_trained=list(dict.fromkeys(row.system for row in context.rows if not row.is_trained)),
        sections=[section for make in SECTIONS if (section := make(context))],
    )
