"""The section of BLEU variants: the same translations scored as papers do, and by bucket."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from markupsafe import Markup

from bleuprint.report import score_tables
from bleuprint.report.frame import METRICS
from bleuprint.report.page.chart import chart, legend, line_id, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section, paragraphs


def bleu_variants(context: ReportContext) -> Section:
    records = context.records
    data = {
        "grid": score_tables.variants(records),
        "notes": paragraphs("variants.md"),
        "scored": [(record, list(_scored(record))) for record in records.itertuples()],
        "legend": legend(list(context.settings.systems)),
        "charts": list(_charts(records)),
    }
    return Section("variants", "BLEU variants used in papers", data)


def _scored(record: Any) -> Iterator[dict[str, Any]]:
    """Name, signature, lines, and SHA-256 of references and of translations of each score."""
    for column, name in METRICS.items():
        yield {
            "name": name,
            "signature": getattr(record, f"{column}_signature"),
            "lines": record.lines,
            "references": record.references_sha256,
            "hypotheses": record.hypotheses_sha256,
        }
    yield from record.variants


def _charts(records: pd.DataFrame) -> Iterator[list[tuple[Markup, str]]]:
    """For each test set its charts, with captions."""
    tests = records.groupby(["corpus", "test"], sort=False)
    for number, ((corpus, test), of_test) in enumerate(tests):
        title = f"BLEU by source tokens: {corpus}, {test}"
        bleu, lines = score_tables.bleu_by_length(of_test)
        charts = [_chart(f"length-{number}", title, bleu, lines, "lines", "BLEU")]
        if of_test.by_count.notna().all():
            title = f"Words found, by occurrences in the training text: {corpus}, {test}"
            accuracy, words = score_tables.words_by_count(of_test)
            charts.append(_chart(f"count-{number}", title, accuracy, words, "words", "% found"))
        yield charts


def _chart(
    name: str, title: str, means: pd.DataFrame, sizes: pd.DataFrame, sized: str, axis: str
) -> tuple[Markup, str]:
    """A point per bucket and system, the mean over seeds; below, the number of lines or words."""
    systems = list(means.index.get_level_values("system"))
    styles, places = line_styles(systems), range(len(means.columns))
    with chart(name, title, 4.6, 3.0) as drawing:
        for number, (system, values) in enumerate(zip(systems, means.to_numpy(), strict=True)):
            style = {"marker": "o", "markersize": 4, **styles[system]}
            drawing.axes.plot(places, values, gid=line_id(number, 0), **style)
        labels = [f"{bucket}\n({size:,.0f})" for bucket, size in sizes.iloc[0].items()]
        drawing.axes.set_xticks(places, labels)
        drawing.axes.set_xlim(-0.4, len(places) - 0.6)
        drawing.axes.set_ylabel(axis)
    return drawing.svg, f"{title} (in brackets: {sized})"
