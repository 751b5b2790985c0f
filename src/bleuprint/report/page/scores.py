"""The sections of scores, with intervals and tests; of faults; and of cost and size."""

from typing import Any

from bleuprint.report import main_table, notes, tables
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import descriptions
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.report.task import Task
from bleuprint.runtime.html import counted
from bleuprint.scoring.measures import MEASURES

_COSTS = {"Parameters": COUNTED["Parameters"], **main_table.COSTS, "Time": MEASURED["Time"]}
# Metrics beside BLEU whose scores stand in the table; all are in the folded one.
_BESIDE = ("chrf2", "comet")


def scores(context: ReportContext) -> Section:
    settings, records = context.settings, context.records
    further = tables.measured_scores(records)[1:]
    data = {
        "tasks": {task.name: _test_sets(context, task, further) for task in context.tasks},
        "about": descriptions(settings, context.tasks),
        "losses": tables.losses(records, settings.published),
        "losses_note": tables.LOSS_NOTE,
        "documents": tables.documents(records),
        "documents_notes": paragraphs("documents.md"),
        "measures": [MEASURES[key] for key in further],
        "several_seeds": len(settings.seeds) > 1,
        "notes": notes.notes(records, settings.published),
    }
    return Section("scores", "Scores", data)


def _test_sets(context: ReportContext, task: Task, further: list[str]) -> list[dict[str, Any]]:
    """The tables of each test set of a task."""
    cells, found = context.records.cells, list[dict[str, Any]]()
    of_task = cells.corpus.isin(task.corpora)
    for test, of_test in cells[of_task].groupby("test", sort=False):
        records = context.records.where(of_task & (cells.test == test))
        shown = ["bleu", *_BESIDE], _COSTS, context.settings.published, _BESIDE
        found.append(
            {
                "title": f"Test set: {test} ({counted(int(of_test.lines.iloc[0]), 'sentence')})",
                "grid": main_table.scores(records, *shown),
                "further": main_table.scores(records, further, {}),
                "notes": list(notes.reachable_notes(records.cells, context.root)),
            }
        )
    return found


def faults(context: ReportContext) -> Section:
    """Faults of translations that are seen without a reference."""
    data = {
        "grid": tables.faults(context.records),
        "findings": tables.fault_findings(context.records),
        "notes": paragraphs("faults.md"),
    }
    return Section("faults", "What broke", data)


def cost(context: ReportContext) -> Section:
    """What each training took, counted and measured."""
    data = {
        "grid": main_table.costs(context.records),
        "notes": paragraphs("cost.md"),
    }
    return Section("cost", "Cost and size", data)
