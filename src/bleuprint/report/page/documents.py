"""The section of scores by document."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bleuprint.report import document_tables
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import shown_systems
from bleuprint.report.page.section import Section, paragraphs


def documents(context: ReportContext) -> Section | None:
    """None if no test set says its documents."""
    grid = document_tables.scores(context.records)
    if grid is None:
        return None
    # the page's tables have one head a column
    heads = (replace(each, label=f"{each.group} {each.label}".lstrip()) for each in grid.columns)
    data = {
        "grid": replace(grid, columns=tuple(heads)),
        "findings": list(document_tables.findings(context.records)),
        "notes": paragraphs("documents.md"),
        "sets": list(_sets(context)),
    }
    return Section("documents", "By document", data)


def _sets(context: ReportContext) -> Iterator[dict[str, Any]]:
    """The scores of each document of a test set."""
    known = context.records[context.records.dbleu.notna()]
    for (corpus, test), of_test in known.groupby(["corpus", "test"], sort=False):
        results = [each for each in context.results if (each.corpus, each.test) == (corpus, test)]
        grid = document_tables.each(of_test, shown_systems(results))
        yield {"title": f"{corpus}, {test}", "grid": grid}
