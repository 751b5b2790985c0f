"""The tables with all test sets below each other, and one metric or group of lines per column.

They show loss and perplexity, BLEU by source length, word recall, scores by document, and output
errors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from bleuprint.report.score_frame import (
    ScoreRow,
    by_test_set,
    score_rows,
    select_metric,
)
from bleuprint.report.score_tables import SYSTEM_COLUMN, TableBuilder
from bleuprint.report.table import Cell, Column, Table, stack_tables
from bleuprint.scoring.breakdown import (
    COUNT_BUCKETS,
    COUNT_GROUP,
    LENGTH_BUCKETS,
    LENGTH_GROUP,
    WORD_ACCURACY,
)
from bleuprint.scoring.metrics import ERROR_KEYS, METRICS, SCORE_KEYS
from bleuprint.scoring.output_errors import ANY_ERROR
from bleuprint.scoring.reference_loss import LOSSES

DOCUMENT = "document"
LOSS_NOTE = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)


@dataclass(frozen=True)
class PivotColumn:
    """A column of a pivot table.

    Attributes:
        label: The head of the column.
        metric: The key of the metric that it shows.
        group: The group of lines; empty for all lines.
    """

    label: str
    metric: str
    group: str = ""


def pivot_table(
    scores: pd.DataFrame,
    pivot_columns: Sequence[PivotColumn],
    text_of: Callable[[ScoreRow], str],
    unit: str = "",
) -> Table | None:
    """Return all test sets below each other, with a column for each metric or group of lines.

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.
        pivot_columns: The columns.
        text_of: Returns what is shown of a score.
        unit: What the title row of a test set counts for each column: lines, words, documents, or
            references, which are the lines that the metric does not count.

    Returns:
        The table without the rows and columns that have no value; None if no column has one.
    """
    tables = {}
    counts_by_title = {}
    for task, test, scores_of_test in by_test_set(scores):
        builder = TableBuilder()
        counts = {}
        for pivot_column in pivot_columns:
            selected = select_metric(scores_of_test, pivot_column.metric, pivot_column.group)
            rows = score_rows(selected)
            if not rows:
                continue
            column = Column(pivot_column.label)
            cells = {row.row_name: Cell(text_of(row), row.value) for row in rows}
            builder.add(column, cells)
            count = _unit_count(rows[0], unit)
            if count:
                counts[column] = Cell(f"{count:,.0f}", count)
        title = f"{task}, {test} ({unit})" if counts else f"{task}, {test}"
        tables[title] = builder.build(scores_of_test, mark_baseline=False)
        counts_by_title[title] = counts
    stacked = stack_tables(tables, counts_by_title)
    # The first test set may lack some columns, so stacking leaves them in another order.
    ordered_columns = []
    for pivot_column in pivot_columns:
        column = Column(pivot_column.label)
        if column in stacked.columns:
            ordered_columns.append(column)
    if not ordered_columns:
        return None
    return Table([SYSTEM_COLUMN, *ordered_columns], stacked.rows)


def _unit_count(row: ScoreRow, unit: str) -> float:
    """Return the number of units that a title row shows for a metric; 0 to show nothing.

    Args:
        row: The score of any system, since the number is the same for all.
        unit: What is counted; see `pivot_table`.
    """
    if not unit or pd.isna(row.units):
        return 0.0
    if unit == "references":
        return float(row.lines - row.units)
    return float(row.units)


def loss_table(scores: pd.DataFrame) -> Table | None:
    """Return loss and perplexity of the references; None if no system has them."""
    columns = [PivotColumn(metric.label, metric.key) for metric in LOSSES]
    return pivot_table(scores, columns, value_text)


def length_table(scores: pd.DataFrame) -> Table | None:
    """Return BLEU by source length, and the length ratio."""
    columns = []
    for bucket in LENGTH_BUCKETS:
        columns.append(PivotColumn(bucket, "bleu", f"{LENGTH_GROUP} {bucket}"))
    columns.append(PivotColumn("Length ratio", "length_ratio"))
    return pivot_table(scores, columns, value_text, unit="lines")


def word_recall_table(scores: pd.DataFrame) -> Table | None:
    """Return the word recall by training frequency; None if no corpus has words."""
    columns = []
    for bucket in COUNT_BUCKETS:
        columns.append(PivotColumn(bucket, WORD_ACCURACY, f"{COUNT_GROUP} {bucket}"))
    return pivot_table(scores, columns, value_text, unit="words")


def document_table(scores: pd.DataFrame) -> Table | None:
    """Return scores by document; None if no test set says where its documents begin."""
    columns = []
    for key in ("dbleu", *SCORE_KEYS):
        columns.append(PivotColumn(METRICS[key].label, key, DOCUMENT))
    return pivot_table(scores, columns, marked_score_text, unit="documents")


def error_table(scores: pd.DataFrame) -> Table | None:
    """Return the number of lines with each output error that occurs, and of such references."""
    columns = []
    for key in ERROR_KEYS:
        rows = select_metric(scores, key)
        # A line whose reference has the error is not counted: then there are fewer units.
        is_in_references = rows.units < rows.lines
        occurs = ((rows.value > 0) | is_in_references).any()
        if key == ANY_ERROR or occurs:
            columns.append(PivotColumn(METRICS[key].label, key))
    return pivot_table(scores, columns, marked_score_text, unit="references")


def value_text(row: ScoreRow) -> str:
    """Return the value of a score."""
    return row.value_text


def marked_score_text(row: ScoreRow) -> str:
    """Return a score with its interval or deviation, and the mark of its difference."""
    return f"{row.score_text}{row.mark}"
