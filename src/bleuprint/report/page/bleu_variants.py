"""The section of BLEU variants: the same translations scored as papers do, and by bucket."""

from collections.abc import Iterator
from typing import Any

from bleuprint.report import score_tables
from bleuprint.report.frame import METRICS
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section, paragraphs


def bleu_variants(context: ReportContext) -> Section:
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
        yield {
            "name": name,
            "signature": getattr(record, f"{column}_signature"),
            "lines": record.lines,
            "references": record.references_sha256,
            "hypotheses": record.hypotheses_sha256,
        }
    yield from record.variants
