"""The report stage: writes the tables, figures and the HTML report from the results of all runs.

The files of reports/ are committed: they contain numbers and hashes, never a sentence of a corpus.
The HTML report, which quotes sentences, is not committed.
"""

from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import COSTS_CSV, Run
from bleuprint.report import dvc_plots, notes, pivot_tables, score_tables
from bleuprint.report.cost_columns import COUNTED_COSTS, costs_table
from bleuprint.report.frame import REPORTS, RESULTS, Records, csv_text
from bleuprint.report.page.funnel import training_pairs_table
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect
from bleuprint.report.render import bullets, latex, markdown
from bleuprint.report.score_frame import computed_scores, score_frame
from bleuprint.report.table import Table, text_table
from bleuprint.report.training_costs import costs_csv
from bleuprint.runs.results import Results
from bleuprint.runtime.atomic_files import write_text
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.html import template_environment
from bleuprint.runtime.json_files import format_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring.metrics import METRICS

HTML_REPORT = "index.html"
# The number of hexadecimal digits of a SHA-256 that tables show.
_SHA256_DIGITS = 12

_TEMPLATES = template_environment(Path(__file__).with_name("templates"), autoescape=False)
_TEMPLATES.filters["markdown"] = markdown
_TEMPLATES.filters["bullets"] = bullets


def write_reports(settings: Settings, root: Path = Path()) -> None:
    """Write all files of the folder reports/: tables, curves, results.json and the HTML report.

    All files are the same when the stage runs again, except the HTML report and costs.csv: these
    show measured times. So DVC does not track these two as outputs of the stage.

    Args:
        settings: The settings of the experiment.
        root: The project's folder.

    Raises:
        UserError: A run has no results yet, or its files do not belong together.
    """
    records = collect(settings, root)
    report = ReportData(settings, records, root)
    texts = {
        "table.md": table_md(settings, records, root),
        "table.csv": csv_text(records),
        "table.tex": table_tex(settings, records, root),
        "training.csv": dvc_plots.training_curves_csv(report.curves),
        "validation.csv": dvc_plots.validation_curves_csv(report.curves),
        "metrics.json": format_json(dvc_plots.bleu_metrics(records)),
        COSTS_CSV.name: costs_csv(records.runs),
        HTML_REPORT: _html(report),
    }
    records.save(root / RESULTS)
    for name, text in texts.items():
        write_text(root / REPORTS / name, text)


def write_html_report_if_outdated(
    settings: Settings, records: Records, root: Path = Path()
) -> None:
    """Write the HTML report again if it is missing or older than results.json.

    `dvc pull` and `dvc checkout` restore results, but not the HTML report, which DVC does not
    track. The HTML report quotes translations. If their files are missing, or belong to other
    results, nothing is written.

    Args:
        settings: The settings of the experiment.
        records: The results of the last report, as results.json stores them.
        root: The project's folder.
    """
    html_report = root / REPORTS / HTML_REPORT
    results = root / RESULTS
    if html_report.exists() and html_report.stat().st_mtime >= results.stat().st_mtime:
        return
    try:
        if _have_translations(settings, records, root):
            write_html_report(settings, records, root)
    except (UserError, FileNotFoundError):
        return  # A file that the HTML report shows is missing.


def _have_translations(settings: Settings, records: Records, root: Path) -> bool:
    """Return whether the files of translations are those from which results.json was computed.

    results.json contains the SHA-256 of each file.

    Args:
        settings: The settings of the experiment.
        records: The results of the experiment, as results.json stores them.
        root: The project's folder.

    Raises:
        FileNotFoundError: A file of translations is missing.
    """
    for row in records.runs.itertuples():
        results = Results(settings, Run(row.system, row.corpus, row.seed), root)
        translations = results.files(row.test).hypotheses
        if sha256_of(translations) != row.hypotheses_sha256:
            return False
    return True


def write_html_report(settings: Settings, records: Records, root: Path = Path()) -> None:
    """Write the HTML report, reports/index.html, whether it is outdated or not.

    Args:
        settings: The settings of the experiment.
        records: The results of the experiment, as results.json stores them.
        root: The project's folder.

    Raises:
        UserError: A file that the HTML report shows is missing.
    """
    report = ReportData(settings, records, root)
    write_text(root / REPORTS / HTML_REPORT, _html(report))


def _html(report: ReportData) -> str:
    """Return the text of the HTML report."""
    # Importing this takes long, and most commands that import this module do not write the report.
    from bleuprint.report.page.document import html_page

    return html_page(report)


def table_md(settings: Settings, records: Records, root: Path) -> str:
    """Return the whole report as Markdown, the text of reports/table.md.

    It shows tables of scores and costs with notes on how to read them, the test sets, the
    signatures of the metrics, and what preparation did to the corpora.

    Args:
        settings: The settings of the experiment.
        records: The results of the experiment, as results.json stores them.
        root: The project's folder, for the notes and the filtering statistics.
    """
    scores = score_frame(records)
    # The first metric is BLEU, which has tables of its own.
    _, *other_metrics = score_tables.measured_scores(scores)
    text: str = _TEMPLATES.get_template("table.md.j2").render(
        experiment=settings.experiment,
        bleu=score_tables.tables_by_test_set(scores),
        notes=notes.all_notes(records, root),
        further=score_tables.tables_by_test_set(scores, other_metrics, costs=()),
        metrics=[METRICS[key] for key in other_metrics],
        losses=pivot_tables.loss_table(scores),
        loss_note=pivot_tables.LOSS_NOTE,
        by_length=pivot_tables.length_table(scores),
        by_count=pivot_tables.word_recall_table(scores),
        documents=pivot_tables.document_table(scores),
        document_notes=notes.document_notes(records),
        errors=pivot_tables.error_table(scores),
        error_notes=notes.error_notes(records),
        costs=costs_table(scores, COUNTED_COSTS),
        test_sets=_test_set_table(records.runs),
        signatures=notes.signature_notes(records),
        funnel=training_pairs_table(settings.corpora, root),
    )
    return text


def table_tex(settings: Settings, records: Records, root: Path) -> str:
    """Return BLEU and training costs as two LaTeX tables, the text of reports/table.tex.

    The notes on how to read the scores are part of the caption.

    Args:
        settings: The settings of the experiment.
        records: The results of the experiment, as results.json stores them.
        root: The project's folder, for the notes.
    """
    scores = score_frame(records)
    reading = " ".join(notes.all_notes(records, root))
    # External systems are not ours: they are only scored here.
    are_all_trained = computed_scores(scores).is_trained.all()
    best_of = "ours" if are_all_trained else "those scored here"
    caption = f"Results of {settings.experiment}. {reading} Bold: the best of {best_of}."
    score_table = latex(score_tables.wide_bleu_table(scores), caption)
    costs = costs_table(scores, COUNTED_COSTS)
    cost_table = latex(costs, f"Training cost of {settings.experiment}.")
    return f"% Needs \\usepackage{{booktabs,graphicx}}.\n{score_table}\n{cost_table}"


def _test_set_table(runs: pd.DataFrame) -> Table:
    """Return the table of test sets: their languages, number of lines, and hash of the references.

    Readers can compare the first digits of the hash to see whether two reports have the same test
    set.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
    """
    rows = []
    for test_set in runs.drop_duplicates(["corpus", "test"]).itertuples():
        short_sha256 = test_set.references_sha256[:_SHA256_DIGITS]
        row = [
            test_set.corpus,
            f"{test_set.source}-{test_set.target}",
            test_set.test,
            short_sha256,
            f"{test_set.lines:,}",
        ]
        rows.append(row)
    text_heads = ["Corpus", "Language pair", "Test set", "SHA-256 of references"]
    return text_table(text_heads, ["Lines"], rows)
