"""The sections of scores, with intervals and tests, and of training cost."""

from typing import Any

from bleuprint.report import main_table, score_tables
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.runtime.html import counted

_COSTS = {
    "Parameters": COUNTED["Parameters"],
    **main_table.COSTS,
    "Time": MEASURED["Time"],
    "Target tokens": COUNTED["Target tokens"],
}


def scores(context: ReportContext) -> Section:
    settings, records = context.settings, context.records
    data = {
        "corpora": [_corpus(context, name) for name in settings.corpora],
        "losses": score_tables.losses(records),
        "losses_note": score_tables.LOSSES,
        "several_seeds": len(settings.seeds) > 1,
        "notes": main_table.notes(records, settings.published),
    }
    return Section("scores", "Scores", data)


def _corpus(context: ReportContext, name: str) -> dict[str, Any]:
    records = context.records[context.records.corpus == name]
    lines = dict(zip(records.test, records.lines, strict=True))
    return {
        "name": name,
        "tests": [f"{test} ({counted(count, 'sentence')})" for test, count in lines.items()],
        "grid": main_table.scores(records, ["bleu", "chrf2"], _COSTS, context.settings.published),
    }


def cost(context: ReportContext) -> Section:
    """What each training took, counted and measured."""
    data = {"grid": main_table.costs(context.records), "explained": paragraphs("cost.md")}
    return Section("cost", "Cost", data)
