"""The sections of scores: with intervals and tests, as papers score, by document; and of cost."""

from collections.abc import Iterator
from typing import Any

from bleuprint.report import main_table, notes, tables
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.frame import KEY, Records
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import descriptions
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.runtime.html import counted
from bleuprint.scoring.bleu_variants import VARIANTS
from bleuprint.scoring.measures import MEASURES

_COSTS = {
    "Parameters": COUNTED["Parameters"],
    **main_table.COSTS,
    "Time": MEASURED["Time"],
}
# Metrics beside BLEU whose scores stand in the table; all are in the folded one.
_BESIDE = ("chrf2", "comet")


def scores(context: ReportContext) -> Section:
    settings, records = context.settings, context.records
    further = tables.measured_scores(records)[1:]
    data = {
        "corpora": [_corpus(context, name, further) for name in settings.corpora],
        "about": descriptions(settings),
        "losses": tables.losses(records, settings.published),
        "losses_note": tables.LOSS_NOTE,
        "measures": [MEASURES[key] for key in further],
        "interval": "±: standard deviation over the seeds"
        if len(settings.seeds) > 1
        else "In brackets: the 95 % interval",
        "several_seeds": len(settings.seeds) > 1,
        "notes": notes.notes(records, settings.published),
    }
    return Section("scores", "Scores", data)


def _corpus(context: ReportContext, name: str, further: list[str]) -> dict[str, Any]:
    cells = context.records.cells
    tests = cells[cells.corpus == name].test.unique()
    of_tests = [
        context.records.where((cells.corpus == name) & (cells.test == test)) for test in tests
    ]
    return {"name": name, "tests": [_test_set(context, each, further) for each in of_tests]}


def _test_set(context: ReportContext, records: Records, further: list[str]) -> dict[str, Any]:
    first, published = records.cells.iloc[0], context.settings.published
    return {
        "title": f"Test set: {first.test} ({counted(int(first.lines), 'sentence')})",
        "grid": main_table.scores(records, ["bleu", *_BESIDE], _COSTS, published, alone=_BESIDE),
        "further": main_table.scores(records, further, {}),
        "notes": list(notes.reachable_notes(records.cells, context.root)),
    }


def bleu_variants(context: ReportContext) -> Section:
    """The same translations scored as papers do, by bucket, and by document."""
    records = context.records
    data = {
        "grid": tables.variants(records),
        "notes": paragraphs("variants.md"),
        "scored": list(_scored(records)),
        "by_length": tables.by_length(records),
        "by_count": tables.by_count(records),
        "documents": tables.documents(records),
        "documents_notes": paragraphs("documents.md"),
    }
    return Section("variants", "BLEU variants used in papers", data)


def _scored(records: Records) -> Iterator[Any]:
    """Each score of all lines with its signature, and the facts of its cell."""
    measures = records.measures[(records.measures.group == "") & (records.measures.signature != "")]
    shown = measures[measures.measure.isin([*tables.measured_scores(records), *VARIANTS])]
    for row in shown.merge(records.cells, on=KEY).itertuples():
        yield MEASURES[row.measure].label, row


def cost(context: ReportContext) -> Section:
    """What each training took, counted and measured."""
    data = {"grid": main_table.costs(context.records), "notes": paragraphs("cost.md")}
    return Section("cost", "Cost", data)
