"""The sections of scores: with intervals and tests, as papers score, against published numbers; and
of training cost.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from bleuprint.report import main_table, score_tables
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import descriptions
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.report.system_results import METRICS
from bleuprint.runtime.html import counted

_COSTS = {
    "Parameters": COUNTED["Parameters"],
    **main_table.COSTS,
    "Time": MEASURED["Time"],
}
# Metrics beside BLEU: those whose scores stand in the table, those in the folded table of all.
_BESIDE, _FURTHER = ("chrf2", "comet"), ("chrf2", "chrf2pp", "ter", "comet")


def scores(context: ReportContext) -> Section:
    settings, records = context.settings, context.records
    data = {
        "corpora": [_corpus(context, name) for name in settings.corpora],
        "about": descriptions(settings),
        "losses": score_tables.losses(records, settings.published),
        "losses_note": score_tables.LOSSES,
        "comet": records.comet.notna().any(),
        "interval": "±: standard deviation over the seeds"
        if len(settings.seeds) > 1
        else "In brackets: the 95 % interval",
        "several_seeds": len(settings.seeds) > 1,
        "notes": main_table.notes(records, settings.published),
    }
    return Section("scores", "Scores", data)


def _corpus(context: ReportContext, name: str) -> dict[str, Any]:
    records = context.records[context.records.corpus == name]
    tests = records.groupby("test", sort=False)
    return {"name": name, "tests": [_test_set(context, of_test) for _, of_test in tests]}


def _test_set(context: ReportContext, records: pd.DataFrame) -> dict[str, Any]:
    first, published = records.iloc[0], context.settings.published
    return {
        "title": f"Test set: {first.test} ({counted(first.lines, 'sentence')})",
        "grid": main_table.scores(records, ["bleu", *_BESIDE], _COSTS, published, alone=_BESIDE),
        "further": main_table.scores(records, _FURTHER, {}),
        "notes": list(score_tables.reachable_notes(records, context.root)),
    }


def bleu_variants(context: ReportContext) -> Section:
    """The same translations scored as papers do, and by bucket."""
    records = context.records
    data = {
        "grid": score_tables.variants(records),
        "notes": paragraphs("variants.md"),
        "scored": [(record, list(_scored(record))) for record in records.itertuples()],
        "by_length": score_tables.by_length(records),
        "by_count": score_tables.by_count(records),
    }
    return Section("variants", "BLEU variants used in papers", data)


def _scored(record: Any) -> Iterator[dict[str, Any]]:
    """Name, signature, lines, and SHA-256 of references and of translations of each score."""
    for column, name in METRICS.items():
        if pd.isna(signature := getattr(record, f"{column}_signature")):
            continue  # COMET, or in results.json of an earlier version
        yield {
            "name": name,
            "signature": signature,
            "lines": record.lines,
            "references": record.references_sha256,
            "hypotheses": record.hypotheses_sha256,
        }
    yield from record.variants


def cost(context: ReportContext) -> Section:
    """What each training took, counted and measured."""
    data = {"grid": main_table.costs(context.records), "notes": paragraphs("cost.md")}
    return Section("cost", "Cost", data)
