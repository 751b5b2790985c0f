"""The report stage: from the results of all cells to what people read.

Reports are committed: they hold numbers and hashes, never a sentence of a corpus. All but the
page, which quotes some: it is kept by DVC.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.corpus.steps.ledger import SetCounts, read_ledgers
from bleuprint.report import cost_columns, dvc_plots, main_table, score_tables
from bleuprint.report.frame import csv_text
from bleuprint.report.grid import Column, Grid, Row, markdown
from bleuprint.report.page.document import document
from bleuprint.report.page.material import Material
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import measured
from bleuprint.report.records import Record, collect, save
from bleuprint.runtime.files import whole_file, write_json
from bleuprint.tracking.timings import Timing, timing

SHORT = 12
PAGE = "index.html"
RESULTS = main_table.REPORTS / "results.json"


def write_reports(settings: Settings, root: Path = Path()) -> list[Record]:
    """Write reports/ from the results on disk, and give the records it is made of.

    results.json and metrics.json repeat exactly; the tables also show what a clock measured.
    """
    records = collect(settings, root)
    timings = {record.cell: timing(record.cell, root) for record in records}
    funnel = _funnel(settings, root)
    reports = root / main_table.REPORTS
    save(records, reports / "results.json")
    write_json(reports / "metrics.json", dvc_plots.metrics(records))
    cells = list(timings)
    _write(reports / "training.csv", dvc_plots.training(cells, root))
    _write(reports / "validation.csv", dvc_plots.validation(cells, root))
    gaps = gap_tables.markdown_of(settings, measured(settings, records, root))
    _write(reports / "table.md", page(settings, records, timings, funnel, gaps))
    _write(reports / "table.csv", csv_text(records, timings, settings.published))
    _write(reports / "table.tex", main_table.tex(settings, records, timings))
    _write(reports / PAGE, document(Material(settings, records, timings, root)))
    return records


def page(
    settings: Settings,
    records: Sequence[Record],
    timings: Mapping[Cell, Timing],
    funnel: Grid,
    gaps: Sequence[str] = (),
) -> str:
    """The report as Markdown: scores in all ways, cost, test sets, signatures, data.

    `gaps` are the parts about published numbers.
    """
    rare = score_tables.by_count(records)
    sections = [
        f"# Results: {settings.experiment}",
        *main_table.summary(settings, records, timings),
        "## chrF2",
        markdown(main_table.scores(records, "chrf")),
        "## TER",
        markdown(main_table.scores(records, "ter")),
        _TER,
        "## The same translations as papers scored them",
        markdown(score_tables.as_papers(records)),
        score_tables.AS_PAPERS,
        *gaps,
        "## BLEU by source length",
        markdown(score_tables.by_length(records)),
        score_tables.BY_LENGTH,
        *(("## Rare words", markdown(rare), score_tables.BY_COUNT) if rare else ()),
        "## Training cost",
        markdown(main_table.costs(records, timings)),
        cost_columns.EXPLAINED,
        "## Test sets",
        markdown(_test_sets(records)),
        "## Signatures",
        main_table.bullets(_signatures(records)),
        _INTERVALS,
        "## Data",
        _DATA,
        markdown(funnel),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections) + "\n"


_TER = (
    "Edits (words put in, left out, replaced, runs of words moved) by 100 words of the references; "
    "lower is better."
)

_INTERVALS = (
    "Intervals are sacreBLEU's: 1,000 bootstrap resamples of the test set's lines with a fixed "
    "seed; the 95 % interval is their mean plus and minus half the distance between the 2.5th "
    "and the 97.5th percentile, cut at 0 and 100 (TER's at 0). The paired bootstrap draws the same "
    "resamples from both systems' translations; approximate randomisation swaps lines between the "
    "systems, 10,000 times."
)

_DATA = (
    "Pairs into and out of each stage, and how many each rule dropped or changed. Validation and "
    "test sets are listed by their last stage, and where a stage dropped pairs of theirs."
)


def _test_sets(records: Sequence[Record]) -> Grid:
    columns = (
        Column("Corpus", left=True),
        Column("Pair", left=True),
        Column("Test set", left=True),
        Column("Lines"),
        Column("SHA-256 of references", left=True),
    )
    sets = dict.fromkeys((r.corpus, r.pair, r.test, r.lines, r.data.references) for r in records)
    return Grid(
        columns,
        tuple(
            Row((corpus, pair, test, f"{lines:,}", references[:SHORT]))
            for corpus, pair, test, lines, references in sets
        ),
    )


def _signatures(records: Sequence[Record]) -> Iterator[str]:
    """Each signature once; BLEU's depends on the target language, through the tokenizer."""
    for signature in dict.fromkeys(record.bleu.signature for record in records):
        languages = dict.fromkeys(r.target for r in records if r.bleu.signature == signature)
        yield f"BLEU ({', '.join(languages)}): `{signature}`"
    for signature in dict.fromkeys(record.chrf.signature for record in records):
        yield f"chrF2: `{signature}`"
    for signature in dict.fromkeys(record.ter.signature for record in records):
        yield f"TER: `{signature}`"


def _funnel(settings: Settings, root: Path) -> Grid:
    """What became of each corpus, stage by stage, from the ledgers."""
    columns = (
        Column("Corpus", left=True),
        Column("Set", left=True),
        Column("Stage", left=True),
        Column("Pairs in"),
        Column("Pairs out"),
        Column("Dropped", left=True),
        Column("Changed", left=True),
    )
    rows: list[Row] = []
    for corpus in settings.corpora:
        ledgers = read_ledgers(corpus, root)
        names = dict.fromkeys(name for sets in ledgers.values() for name in sets)
        for name in sorted(names, key=lambda name: (name != "train", name != "valid")):
            rows += _funnel_rows(corpus, name, ledgers)
    return Grid(columns, tuple(rows))


def _funnel_rows(
    corpus: str, name: str, ledgers: Mapping[str, Mapping[str, SetCounts]]
) -> Iterator[Row]:
    stages = [stage for stage, sets in ledgers.items() if name in sets]
    for stage in stages:
        counts = ledgers[stage][name]
        if name == "train" or any(counts.dropped.values()) or stage == stages[-1]:
            numbers = f"{counts.pairs_in:,}", f"{counts.pairs_out:,}"
            by_rule = _counts(counts.dropped), _counts(counts.changed)
            yield Row((corpus, name, stage, *numbers, *by_rule))


def _counts(by_rule: Mapping[str, int]) -> str:
    counts = ", ".join(f"{rule} {count:,}" for rule, count in by_rule.items() if count)
    return counts or main_table.NONE


def _write(path: Path, text: str) -> None:
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
