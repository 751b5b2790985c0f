"""The section of BLEU variants: the same translations scored as papers do, and by bucket."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from bleuprint.report.page.chart import chart, legend, line_id, line_styles
from bleuprint.report.page.material import Material
from bleuprint.report.page.section import Section
from bleuprint.report.records import Record
from bleuprint.report.score_tables import AS_PAPERS
from bleuprint.report.system_results import Standing
from bleuprint.scoring.bleu_variants import COMPOUND_SPLIT, PAPERS_ONLY, VARIANTS
from bleuprint.scoring.breakdown import COUNTS, LENGTHS

# By bucket: the number of lines or words, and the figure.
_Buckets = Mapping[str, tuple[int, float]]


def bleu_variants(material: Material) -> Section:
    standings = material.standings
    data = {
        "ways": VARIANTS,
        "rows": [(each, _variants(each)) for each in standings],
        "compound_split": f"{COMPOUND_SPLIT}: {PAPERS_ONLY}",
        "notes": [part for part in AS_PAPERS.split("\n\n") if not part.startswith("In results")],
        "scored": [scored for each in standings for r in each.records for scored in _scored(r)],
        "legend": legend(list(material.settings.systems)),
        "charts": list(_charts(standings)),
    }
    return Section("variants", "BLEU variants used in papers", data)


def _variants(standing: Standing) -> list[float | None]:
    """The mean over seeds of each of VARIANTS, None if it was not computed."""
    by_way: dict[str, list[float]] = {way: [] for way in VARIANTS}
    for record in standing.records:
        for variant in record.reconciliation:
            by_way[variant.name].append(variant.score)
    return [statistics.mean(scores) if scores else None for scores in by_way.values()]


def _scored(record: Record) -> Iterator[tuple[Record, str, str, int, str, str]]:
    """The record, metric, signature, lines, and SHA-256 of references and of translations."""
    metrics = {"BLEU": record.bleu, "chrF2": record.chrf, "TER": record.ter}
    hashes = record.data.references, record.data.hypotheses
    for name, metric in metrics.items():
        yield record, name, metric.signature, record.lines, *hashes
    for way in record.reconciliation:
        yield record, way.name, way.signature, way.lines, way.references, way.hypotheses


def _charts(standings: Sequence[Standing]) -> Iterator[list[tuple[Markup, str]]]:
    """For each test set its charts, with captions."""
    columns = dict.fromkeys((each.corpus, each.test) for each in standings)
    for number, (corpus, test) in enumerate(columns):
        column = {
            each.system: each.records
            for each in standings
            if (each.corpus, each.test) == (corpus, test)
        }
        lengths = {name: [_lengths(r) for r in records] for name, records in column.items()}
        title = f"BLEU by source tokens: {corpus}, {test}"
        drawn = [_chart(f"length-{number}", title, LENGTHS, lengths, "lines", "BLEU")]
        if all(record.by_count is not None for records in column.values() for record in records):
            counts = {name: [_counts(r) for r in records] for name, records in column.items()}
            title = f"Words found, by occurrences in the training text: {corpus}, {test}"
            drawn.append(_chart(f"count-{number}", title, COUNTS, counts, "words", "% found"))
        yield drawn


def _lengths(record: Record) -> _Buckets:
    return {each.tokens: (each.lines, each.bleu) for each in record.by_length}


def _counts(record: Record) -> _Buckets:
    return {each.count: (each.words, 100 * each.accuracy) for each in record.by_count or ()}


def _chart(
    name: str,
    title: str,
    buckets: Sequence[str],
    systems: Mapping[str, Sequence[_Buckets]],
    counted: str,
    axis: str,
) -> tuple[Markup, str]:
    """A point per bucket and system, the mean over seeds; below, the number of lines or words."""
    first = next(iter(systems.values()))[0]
    shown = [bucket for bucket in buckets if bucket in first]
    styles = line_styles(list(systems))
    with chart(name, title, 4.6, 3.0) as made:
        for number, (system, seeds) in enumerate(systems.items()):
            means = [statistics.mean(seed[bucket][1] for seed in seeds) for bucket in shown]
            style = {"marker": "o", "markersize": 4, **styles[system]}
            made.axes.plot(range(len(shown)), means, gid=line_id(number, 0), **style)
        labels = [f"{bucket}\n({first[bucket][0]:,})" for bucket in shown]
        made.axes.set_xticks(range(len(shown)), labels)
        made.axes.set_xlim(-0.4, len(shown) - 0.6)
        made.axes.set_ylabel(axis)
    return made.svg, f"{title} (in brackets: {counted})"
