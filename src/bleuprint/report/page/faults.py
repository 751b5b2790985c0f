"""The section of faults that need no reference to be seen, with sample lines."""

from collections.abc import Iterator
from typing import Any

from bleuprint.cells.results import Results
from bleuprint.config.paths import Cell
from bleuprint.report import tables
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import shown_systems
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.report.system_results import by_test
from bleuprint.scoring.measure import statistics_of
from bleuprint.scoring.measures import FAULT_KEYS
from bleuprint.text.unicode import blank_unprinted

# Lines of a system and a fault that are shown, and characters of each.
_SAMPLES, _LONGEST = 3, 400


def faults(context: ReportContext) -> Section:
    data = {
        "grid": tables.faults(context.records),
        "findings": tables.fault_findings(context.records),
        "notes": paragraphs("faults.md"),
        "samples": list(_samples(context)),
        "seed": context.settings.seeds[0],
    }
    return Section("faults", "Faults that need no reference", data)


def _samples(context: ReportContext) -> Iterator[dict[str, Any]]:
    """The first lines of each fault of a system on a test set, of the first seed."""
    for (corpus, test), results in by_test(context.results).items():
        for system in shown_systems(results):
            cell = Cell(system, corpus, context.settings.seeds[0])
            run = Results.open(context.settings, cell, context.root)
            references, outputs = run.lines(test)
            texts = list(zip(run.sources(test), references, outputs, strict=True))
            measured = run.measures(test)
            broken = {
                name: statistics_of(measured[name, ""])[:, 0].nonzero()[0].tolist()
                for name in FAULT_KEYS[1:]
                if (name, "") in measured
            }
            by_fault = {
                name: [(line + 1, [*map(_cut, texts[line])]) for line in lines[:_SAMPLES]]
                for name, lines in broken.items()
                if lines
            }
            if by_fault:
                title = f"{corpus}, {test}: lines of {system}"
                yield {"title": title, "languages": run.texts.languages, "faults": by_fault}


def _cut(text: str) -> str:
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (cut)"
    return blank_unprinted(shown)
