"""The section of faults that need no reference to be seen, with sample lines."""

from collections.abc import Iterator
from typing import Any

from bleuprint.config.paths import Cell
from bleuprint.report import fault_tables
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import shown_systems
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.scoring.output_faults import ANY
from bleuprint.text.unicode import blank_unprinted
from bleuprint.tracking.outside_results import open_results

# Lines of a system and a fault that are shown, and characters of each.
_SAMPLES, _LONGEST = 3, 400


def faults(context: ReportContext) -> Section | None:
    """None for results of an earlier version."""
    grid = fault_tables.counts(context.records)
    if grid is None:
        return None
    data = {
        "grid": grid,
        "findings": fault_tables.findings(context.records),
        "notes": paragraphs("faults.md"),
        "samples": list(_samples(context)),
        "seed": context.settings.seeds[0],
    }
    return Section("faults", "Faults that need no reference", data)


def _samples(context: ReportContext) -> Iterator[dict[str, Any]]:
    """The first lines of each fault of a system on a test set, of the first seed."""
    for corpus, test in dict.fromkeys((each.corpus, each.test) for each in context.results):
        results = [r for r in context.results if (r.corpus, r.test) == (corpus, test)]
        for system in shown_systems(results):
            cell = Cell(system, corpus, context.settings.seeds[0])
            run = open_results(context.settings, cell, context.root)
            references, outputs = run.lines(test)
            texts = run.sources(test), references, outputs
            by_fault = {
                fault["name"]: [
                    (line, [_cut(text[line - 1]) for text in texts])
                    for line in fault["lines"][:_SAMPLES]
                ]
                for fault in run.scores_of(test).get("faults", ())
                if fault["name"] != ANY and fault["lines"]
            }
            if by_fault:
                title = f"{corpus}, {test}: lines of {system}"
                yield {"title": title, "languages": run.texts.languages, "faults": by_fault}


def _cut(text: str) -> str:
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (cut)"
    return blank_unprinted(shown)
