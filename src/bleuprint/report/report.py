"""The report stage: from the results of all cells to what people read.

Reports are committed: they hold numbers and hashes, never a sentence of a corpus. The page, which
quotes some, is not.
"""

from contextlib import suppress
from pathlib import Path

import pandas as pd

from bleuprint.cells.results import Results
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report import dvc_plots, main_table, notes, tables
from bleuprint.report.frame import COSTS, REPORTS, RESULTS, Records, costs_csv, csv_text
from bleuprint.report.grid import Grid, bullets, grid, markdown
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import funnel
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import json_text, sha256_of, whole_file
from bleuprint.runtime.html import environment
from bleuprint.scoring.measures import MEASURES

SHORT = 12
PAGE = "index.html"

_TEMPLATES = environment(Path(__file__).with_name("templates"), autoescape=False)
_TEMPLATES.filters |= {"markdown": markdown, "bullets": bullets}


def write_reports(settings: Settings, root: Path = Path()) -> None:
    """Write reports/ from the results on disk.

    The page and costs.csv show what was measured, so they are no outputs of the stage for DVC; all
    other files repeat exactly.
    """
    records = collect(settings, root)
    context = ReportContext(settings, records, root)
    texts = {
        "table.md": table_md(settings, records, root),
        "table.csv": csv_text(records, settings.published),
        "table.tex": main_table.tex(settings, records, root),
        "training.csv": dvc_plots.training(context.curves),
        "validation.csv": dvc_plots.validation(context.curves),
        "metrics.json": json_text(dvc_plots.metrics(records)),
        COSTS.name: costs_csv(records.cells),
        PAGE: _page(context),
    }
    records.save(root / RESULTS)
    for name, text in texts.items():
        _write(root / REPORTS / name, text)


def write_page_if_outdated(settings: Settings, records: Records, root: Path = Path()) -> None:
    """Write the page if it is missing or older than the results, and what it shows is here.

    DVC does not restore it with results that were pulled or checked out. Until then, translations
    on disk may be of other results.
    """
    page, results = root / REPORTS / PAGE, root / RESULTS
    if page.exists() and page.stat().st_mtime >= results.stat().st_mtime:
        return
    with suppress(UserError, FileNotFoundError):
        for row in records.cells.itertuples():
            of_cell = Results(settings, Cell(row.system, row.corpus, row.seed), root)
            if sha256_of(of_cell.files(row.test)["hypotheses"]) != row.hypotheses_sha256:
                return
        write_page(settings, records, root)


def write_page(settings: Settings, records: Records, root: Path = Path()) -> None:
    """Write the page; raises UserError if a result that it shows is not here."""
    _write(root / REPORTS / PAGE, _page(ReportContext(settings, records, root)))


def _page(context: ReportContext) -> str:
    from bleuprint.report.page.document import document

    return document(context)


def _write(path: Path, text: str) -> None:
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def table_md(settings: Settings, records: Records, root: Path) -> str:
    """The report as Markdown: scores in all ways, cost, test sets, signatures, data."""
    text: str = _TEMPLATES.get_template("table.md.j2").render(
        **{"settings": settings, "records": records, "root": root},
        **{"main_table": main_table, "notes": notes, "tables": tables},
        published=settings.published,
        scores=[MEASURES[key] for key in tables.measured_scores(records)],
        test_sets=_test_sets(records.cells),
        signatures=tables.signatures(records),
        funnel=funnel(settings.corpora, root),
    )
    return text


def _test_sets(cells: pd.DataFrame) -> Grid:
    heads = "Corpus", "Pair", "Test set", "SHA-256 of references"
    sets = cells.drop_duplicates(["corpus", "test"])
    rows = [
        (r.corpus, f"{r.source}-{r.target}", r.test, r.references_sha256[:SHORT], f"{r.lines:,}")
        for r in sets.itertuples()
    ]
    return grid(heads, ["Lines"], rows)
