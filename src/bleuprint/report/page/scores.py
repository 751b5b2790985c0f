"""The tables of scores, with intervals drawn to scale; the sections of errors and of cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from markupsafe import Markup

from bleuprint.report import notes, pivot_tables, score_tables
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
from bleuprint.report.score_frame import NOT_TRAINED, ScoreRow, bleu_rows, by_test_set
from bleuprint.report.table import NONE, Cell, Column, Table, split_by_column, stack_tables
from bleuprint.report.tasks import task_names
from bleuprint.runtime.wording import counted
from bleuprint.scoring.metrics import BESIDE_BLEU, METRICS

_COSTS = (PARAMETERS, FLOPS, TIME)
# The ends of a scale are multiples of this many BLEU.
_SCALE_STEP = 5


def score_variables(report: ReportData) -> dict[str, Any]:
    """Return the variables of scores.html.j2: the tables of scores, and how to read them.

    Args:
        report: The experiment and its results.
    """
    score_frame = report.scores
    further_metrics = score_tables.measured_scores(score_frame)[1:]  # The first one is BLEU.
    further_tables = score_tables.tables_by_test_set(score_frame, further_metrics, costs=())
    return {
        "scores": _main_table(report),
        "further": stack_tables(further_tables),
        "losses": pivot_tables.loss_table(score_frame),
        "losses_note": pivot_tables.LOSS_NOTE,
        "documents": pivot_tables.document_table(score_frame),
        "documents_notes": paragraphs("documents.md"),
        "metrics": [METRICS[key] for key in further_metrics],
        "several_seeds": report.has_several_seeds,
        "reading": notes.all_notes(report.records),
    }


def _main_table(report: ReportData) -> Table:
    """Return the table of BLEU, costs and similar metrics, with intervals and descriptions."""
    tasks = task_names(report.records.runs)
    unused_descriptions = describe_rows(report.settings, tasks)
    interval_column = Column("± deviation" if report.has_several_seeds else "95% CI")
    tables = {}
    title_cells = {}
    for task, test, scores_of_test in by_test_set(report.scores):
        rows = bleu_rows(scores_of_test)
        sentences = counted(int(rows[0].lines), "sentence")
        title = f"{task}, test set {test} ({sentences})"
        low, high = _scale(rows)
        intervals = {row.row_name: _draw_interval(row, low, high) for row in rows}
        table = score_tables.score_table(
            scores_of_test,
            metrics=["bleu", *BESIDE_BLEU],
            costs=_COSTS,
            metrics_without_difference=BESIDE_BLEU,
        )
        table = _insert_after_bleu(table, interval_column, intervals)
        tables[title] = _add_descriptions(table, unused_descriptions)
        scale_ends = Markup(f"<span>{low}</span> <span>{high}</span>")
        title_cells[title] = {interval_column: Cell(scale_ends)}
    return stack_tables(tables, title_cells)


def _interval(row: ScoreRow) -> tuple[float, float]:
    """Return the ends of a score's interval; over seeds, one standard deviation to each side."""
    if pd.notna(row.ci_low):
        return row.ci_low, row.ci_high
    deviation = 0.0 if pd.isna(row.deviation) else row.deviation
    return row.value - deviation, row.value + deviation


def _scale(rows: Sequence[ScoreRow]) -> tuple[int, int]:
    """Return the ends of the scale on which the scores of a test set are drawn."""
    lows, highs = zip(*map(_interval, rows), strict=True)
    low_end = _SCALE_STEP * math.floor(min(lows) / _SCALE_STEP)
    high_end = _SCALE_STEP * math.ceil(max(highs) / _SCALE_STEP)
    # Without an interval, both ends may be equal.
    return low_end, max(low_end + _SCALE_STEP, high_end)


def _draw_interval(row: ScoreRow, low_end: int, high_end: int) -> Markup:
    """Return a score and its interval as SVG, drawn on a scale between two ends."""

    def position(value: float) -> str:
        """Return where a value lies on the scale, as a percentage of its width."""
        return f"{100 * (value - low_end) / (high_end - low_end):.1f}%"

    low, high = _interval(row)
    return Markup(
        '<svg class="drawn" aria-hidden="true">'
        f'<line x1="{position(low)}" x2="{position(high)}" y1="50%" y2="50%"/>'
        f'<circle cx="{position(row.value)}" cy="50%" r="4"/></svg>'
    )


def _insert_after_bleu(table: Table, column: Column, markups: Mapping[str, Markup]) -> Table:
    """Return the table with a further column after that of BLEU.

    Args:
        table: The scores of a test set.
        column: The new column.
        markups: Its cells by the names of rows; a row without one has an empty cell.
    """
    name_column = table.columns[0]
    rows = []
    for row in table.rows:
        row_name = _row_name(row.cell(name_column).text)
        cell = Cell(markups.get(row_name, ""))
        rows.append(replace(row, cells={**row.cells, column: cell}))
    columns = list(table.columns)
    bleu_number = columns.index(table.column(METRICS["bleu"].label))
    columns.insert(bleu_number + 1, column)
    return Table(columns, rows)


def _add_descriptions(table: Table, unused_descriptions: dict[str, str]) -> Table:
    """Return the table with a description of each system below its name.

    Args:
        table: The scores of a test set.
        unused_descriptions: The descriptions by the names of rows. Each is removed when it is
            used, so that it is shown on the first test set only.
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
    """Return the name of a row without the marks of the baseline and of external systems."""
    return shown_name.removeprefix(score_tables.BASELINE).removesuffix(NOT_TRAINED)


def errors_section(report: ReportData) -> Section:
    """Return the section of output errors, which are found without a reference.

    Args:
        report: The experiment and its results.
    """
    explanations = paragraphs("errors.md")
    # The last paragraph is the list of errors.
    for note in notes.error_notes(report.records):
        explanations[-1] += f"\n- {note}"
    data = {"table": pivot_tables.error_table(report.scores), "notes": explanations}
    return Section("errors", "Output errors", data)


def cost_section(report: ReportData) -> Section:
    """Return the section of training costs.

    If all systems were trained on one device, the caption names it in place of a column.

    Args:
        report: The experiment and its results.
    """
    table = costs_table(report.scores, [*COUNTED_COSTS, *MEASURED_COSTS])
    tables_by_device = split_by_column(table, "Device")
    device = ""
    if len(tables_by_device) == 1:
        device, table = next(iter(tables_by_device.items()))
    data = {
        "table": stack_tables(split_by_column(table, "Corpus")),
        "device": "" if device == NONE else device,
        "notes": paragraphs("cost.md"),
    }
    return Section("cost", "Cost and size", data)
