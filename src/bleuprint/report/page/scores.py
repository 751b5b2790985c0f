"""The tables of scores, with intervals drawn to scale; the sections of errors and of cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from markupsafe import Markup

from bleuprint.report import notes, pivot_tables, score_tables
from bleuprint.report.accepted_notes import accepted_notes
from bleuprint.report.cost_columns import (
    COUNTED_COSTS,
    FLOPS,
    MEASURED_COSTS,
    PARAMETERS,
    TIME,
    costs_table,
)
from bleuprint.report.page.differences import describe_rows
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.report.score_frame import UNTRAINED_SUFFIX, ScoreRow, bleu_rows, by_test_set
from bleuprint.report.table import DASH, Cell, Column, Table, split_by_column, stack_tables
from bleuprint.report.tasks import task_names
from bleuprint.runtime.wording import counted
from bleuprint.scoring.metrics import BESIDE_BLEU, METRICS

_COSTS = (PARAMETERS, FLOPS, TIME)
# The ends of a scale are multiples of this many BLEU.
_SCALE_STEP = 5


def score_variables(report: ReportData) -> dict[str, Any]:
    """Return the tables of scores and the notes on how to read them, for the HTML report.

    The result contains the variables of the template scores.html.j2, which shows a main table with
    BLEU, and tables of the other metrics, of losses, and of scores by document.

    Args:
        report: The settings and the results of the experiment.
    """
    all_scores = report.scores
    # The first metric is BLEU, which the main table shows.
    _, *other_metrics = score_tables.measured_scores(all_scores)
    other_tables = score_tables.tables_by_test_set(all_scores, other_metrics, costs=())
    return {
        "scores": _main_table(report),
        "further": stack_tables(other_tables),
        "losses": pivot_tables.loss_table(all_scores),
        "losses_note": pivot_tables.LOSS_NOTE,
        "documents": pivot_tables.document_table(all_scores),
        "documents_notes": paragraphs("documents.md"),
        "metrics": [METRICS[key] for key in other_metrics],
        "several_seeds": report.has_several_seeds,
        "reading": [*notes.all_notes(report.records), *accepted_notes(report.root)],
    }


def _main_table(report: ReportData) -> Table:
    """Return the main table of scores, with the test sets below each other.

    A row shows a system's BLEU, a drawing of its interval, some other metrics and training costs.
    On the first test set, a short description stands below the name of the system.

    Args:
        report: The settings and the results of the experiment.
    """
    tasks = task_names(report.records.runs)
    # `_add_descriptions` removes each description that it shows, so that it is shown once.
    unused_descriptions = describe_rows(report.settings, tasks)
    interval_column = Column("± deviation" if report.has_several_seeds else "95% CI")
    tables = {}
    title_cells = {}
    for task, test, scores_of_test in by_test_set(report.scores):
        rows = bleu_rows(scores_of_test)
        sentences = counted(int(rows[0].lines), "sentence")
        title = f"{task}, test set {test} ({sentences})"
        low_end, high_end = _scale_ends(rows)
        drawings = {row.row_name: _draw_interval(row, low_end, high_end) for row in rows}
        table = score_tables.score_table(
            scores_of_test,
            metrics=["bleu", *BESIDE_BLEU],
            costs=_COSTS,
            metrics_without_difference=BESIDE_BLEU,
        )
        table = _insert_after_bleu(table, interval_column, drawings)
        tables[title] = _add_descriptions(table, unused_descriptions)
        # The intervals of a test set are drawn on one scale; its title row shows the BLEU at both
        # ends.
        scale_labels = Markup(f"<span>{low_end}</span> <span>{high_end}</span>")
        title_cells[title] = {interval_column: Cell(scale_labels)}
    return stack_tables(tables, title_cells)


def _interval(row: ScoreRow) -> tuple[float, float]:
    """Return the lower and upper end of the interval that is drawn around a score.

    With one seed, this is the confidence interval. With several seeds, it extends one standard
    deviation to each side of their mean. A score without either has an interval without a width.
    """
    if pd.notna(row.ci_low):
        return row.ci_low, row.ci_high
    if pd.notna(row.deviation):
        return row.value - row.deviation, row.value + row.deviation
    return row.value, row.value


def _scale_ends(rows: Sequence[ScoreRow]) -> tuple[int, int]:
    """Return the lowest and highest BLEU of the scale on which a test set's scores are drawn.

    The scale contains the intervals of all systems. Its ends are multiples of `_SCALE_STEP`: for
    intervals from 21.3 to 28.9 BLEU and steps of 5, they are 20 and 30.

    Args:
        rows: The BLEU of each system on the test set.
    """
    intervals = [_interval(row) for row in rows]
    lowest = min(low for low, _ in intervals)
    highest = max(high for _, high in intervals)
    low_end = _SCALE_STEP * math.floor(lowest / _SCALE_STEP)
    high_end = _SCALE_STEP * math.ceil(highest / _SCALE_STEP)
    # A scale needs a length, even if all scores are the same multiple and have no interval.
    return low_end, max(low_end + _SCALE_STEP, high_end)


def _draw_interval(row: ScoreRow, low_end: int, high_end: int) -> Markup:
    """Return an SVG drawing of a score as a point, and of its interval as a horizontal line.

    Args:
        row: The score.
        low_end: The BLEU at the left end of the drawing.
        high_end: The BLEU at its right end.
    """

    def position(value: float) -> str:
        """Return where a BLEU value lies in the drawing, as a percentage of its width."""
        return f"{100 * (value - low_end) / (high_end - low_end):.1f}%"

    low, high = _interval(row)
    return Markup(
        '<svg class="drawn" aria-hidden="true">'
        f'<line x1="{position(low)}" x2="{position(high)}" y1="50%" y2="50%"/>'
        f'<circle cx="{position(row.value)}" cy="50%" r="4"/></svg>'
    )


def _insert_after_bleu(table: Table, column: Column, markups: Mapping[str, Markup]) -> Table:
    """Return the table with a new column of drawings to the right of the column of BLEU.

    Args:
        table: The scores of a test set.
        column: The head of the new column.
        markups: The HTML of its cells, by the name of the row, such as `base`. Rows without one get
            an empty cell.
    """
    name_column = table.columns[0]
    rows = []
    for row in table.rows:
        row_name = _row_name(row.cell(name_column).text)
        cell = Cell(markups.get(row_name, ""))
        rows.append(replace(row, cells={**row.cells, column: cell}))
    columns = list(table.columns)
    bleu_position = columns.index(table.column(METRICS["bleu"].label))
    columns.insert(bleu_position + 1, column)
    return Table(columns, rows)


def _add_descriptions(table: Table, unused_descriptions: dict[str, str]) -> Table:
    """Return the table with a description of each system in small type below its name.

    Args:
        table: The scores of a test set.
        unused_descriptions: The descriptions, such as `d_model 1024`, by the name of the row. Those
            that this table shows are removed, so that the next test sets do not repeat them.
    """
    name_column = table.columns[0]
    rows = []
    for row in table.rows:
        name = row.cell(name_column).text
        description = unused_descriptions.pop(_row_name(name), "")
        if description:
            text = Markup("{}\n<small>{}</small>").format(name, description)
            row = replace(row, cells={**row.cells, name_column: Cell(text)})
        rows.append(row)
    return replace(table, rows=rows)


def _row_name(shown_name: str) -> str:
    """Return the name of a row without what tables add to it.

    They show the baseline as `Baseline: base`, and an external system as `online-a (external)`; the
    names are `base` and `online-a`.
    """
    return shown_name.removeprefix(score_tables.BASELINE_PREFIX).removesuffix(UNTRAINED_SUFFIX)


def errors_section(report: ReportData) -> Section:
    """Return the report's section of output errors, such as repeated words.

    It has a table of the errors of each system, and explains each kind of error. Rare kinds are
    explained only if a system has them.

    Args:
        report: The settings and the results of the experiment.
    """
    explanations = paragraphs("errors.md")
    # The last paragraph is a Markdown list of the kinds of errors. A note is a further item.
    for note in notes.error_notes(report.records):
        explanations[-1] += f"\n- {note}"
    data = {"table": pivot_tables.error_table(report.scores), "notes": explanations}
    return Section("errors", "Output errors", data)


def cost_section(report: ReportData) -> Section:
    """Return the report's section of training costs, such as FLOPs and training time.

    If all systems were trained on the same device, the caption names it, and the table needs no
    column for it.

    Args:
        report: The settings and the results of the experiment.
    """
    table = costs_table(report.scores, [*COUNTED_COSTS, *MEASURED_COSTS])
    tables_by_device = split_by_column(table, "Device")
    device = ""
    if len(tables_by_device) == 1:
        # Splitting has removed the column of the device, and left one table with all rows.
        ((device, table),) = tables_by_device.items()
    data = {
        "table": stack_tables(split_by_column(table, "Corpus")),
        "device": "" if device == DASH else device,
        "notes": paragraphs("cost.md"),
    }
    return Section("cost", "Cost and size", data)
