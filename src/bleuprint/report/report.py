"""The report stage: from the results of all runs to what people read.

Reports are committed: they hold numbers and hashes, never a sentence of a corpus. The page, which
quotes some, is not.
"""

from contextlib import suppress
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report import dvc_plots, notes, score_tables
from bleuprint.report.frame import COSTS, REPORTS, RESULTS, Records, costs_csv, csv_text
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import funnel
from bleuprint.report.records import collect
from bleuprint.report.render import bullets, latex, markdown
from bleuprint.report.score_frame import computed_scores, score_frame
from bleuprint.report.table import Table, table_of
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_file, format_json, sha256_of
from bleuprint.runtime.html import template_environment
from bleuprint.scoring.metrics import METRICS

SHORT = 12
HTML_REPORT = "index.html"

_TEMPLATES = template_environment(Path(__file__).with_name("templates"), autoescape=False)
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
        "table.csv": csv_text(records),
        "table.tex": table_tex(settings, records, root),
        "training.csv": dvc_plots.training(context.curves),
        "validation.csv": dvc_plots.validation(context.curves),
        "metrics.json": format_json(dvc_plots.metrics(records)),
        COSTS.name: costs_csv(records.runs),
        HTML_REPORT: _page(context),
    }
    records.save(root / RESULTS)
    for name, text in texts.items():
        _write(root / REPORTS / name, text)


def write_html_report_if_outdated(
    settings: Settings, records: Records, root: Path = Path()
) -> None:
    """Write the page if it is missing or older than the results, and what it shows is here.

    DVC does not restore it with results that were pulled or checked out. Until then, translations
    on disk may be of other results.
    """
    page, results = root / REPORTS / HTML_REPORT, root / RESULTS
    if page.exists() and page.stat().st_mtime >= results.stat().st_mtime:
        return
    with suppress(UserError, FileNotFoundError):
        for row in records.runs.itertuples():
            of_run = Results(settings, Run(row.system, row.corpus, row.seed), root)
            if sha256_of(of_run.files(row.test)["hypotheses"]) != row.hypotheses_sha256:
                return
        write_html_report(settings, records, root)


def write_html_report(settings: Settings, records: Records, root: Path = Path()) -> None:
    """Write the page; raises UserError if a result that it shows is not here."""
    _write(root / REPORTS / HTML_REPORT, _page(ReportContext(settings, records, root)))


def _page(context: ReportContext) -> str:
    from bleuprint.report.page.document import document

    return document(context)


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def table_md(settings: Settings, records: Records, root: Path) -> str:
    """Return the report as Markdown: scores in all ways, cost, test sets, signatures, data."""
    scores = score_frame(records)
    further = score_tables.measured_scores(scores)[1:]
    text: str = _TEMPLATES.get_template("table.md.j2").render(
        experiment=settings.experiment,
        bleu=score_tables.by_test(scores),
        notes=notes.notes(records, root),
        further=score_tables.by_test(scores, further, costs=()),
        metrics=[METRICS[key] for key in further],
        losses=score_tables.losses(scores),
        loss_note=score_tables.LOSS_NOTE,
        by_length=score_tables.by_length(scores),
        by_count=score_tables.by_count(scores),
        documents=score_tables.documents(scores),
        document_notes=notes.document_notes(records),
        errors=score_tables.errors(scores),
        error_notes=notes.error_notes(records),
        costs=score_tables.costs_table(scores, score_tables.COUNTED_COSTS),
        test_sets=_test_sets(records.runs),
        signatures=notes.signatures(records),
        funnel=funnel(settings.corpora, root),
    )
    return text


def table_tex(settings: Settings, records: Records, root: Path) -> str:
    """Return the scores and the training cost as two LaTeX tables."""
    scores = score_frame(records)
    name = settings.experiment
    reading = " ".join(notes.notes(records, root))
    best_of = "ours" if computed_scores(scores).is_trained.all() else "those scored here"
    caption = f"Results of {name}. {reading} Bold: the best of {best_of}."
    table = latex(score_tables.across(scores), caption)
    costs = score_tables.costs_table(scores, score_tables.COUNTED_COSTS)
    cost_table = latex(costs, f"Training cost of {name}.")
    return f"% Needs \\usepackage{{booktabs,graphicx}}.\n{table}\n{cost_table}"


def _test_sets(runs: pd.DataFrame) -> Table:
    heads = ["Corpus", "Language pair", "Test set", "SHA-256 of references"]
    rows = []
    for test in runs.drop_duplicates(["corpus", "test"]).itertuples():
        pair = f"{test.source}-{test.target}"
        sha256 = test.references_sha256[:SHORT]
        rows.append((test.corpus, pair, test.test, sha256, f"{test.lines:,}"))
    return table_of(heads, ["Lines"], rows)
