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
from bleuprint.report.score_tables import SYSTEM_COLUMN, TableBuilder, measured_scores
from bleuprint.report.table import Cell, Column, Table, stack_tables
from bleuprint.scoring.breakdown import (
    COUNT_BUCKETS,
    COUNT_GROUP,
    LENGTH_BUCKETS,
    LENGTH_GROUP,
    WORD_ACCURACY,
)
from bleuprint.scoring.metrics import ERROR_KEYS, METRICS
from bleuprint.scoring.output_errors import ANY_ERROR
from bleuprint.scoring.reference_loss import LOSSES

# The group of scores whose intervals and tests resample documents in place of lines.
DOCUMENT_GROUP = "document"
LOSS_NOTE = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)


@dataclass(frozen=True)
class PivotColumn:
    """A column of a pivot table, which shows one metric, computed over a group of lines.

    Attributes:
        label: The head of the column, such as `1-10`.
        metric: The key of the metric, such as `bleu`.
        group: The group of lines, such as `length 1-10`; empty for all lines.
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
    """Return one table of all test sets, with a column for each metric or group of lines.

    The test sets stand below each other. A title row names each test set, and shows for each column
    how many units its scores are computed from, for example:

        System                1-10   11-20
        wmt14, test (lines)    200     800
        base                  31.0    30.0

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.
        pivot_columns: The columns.
        text_of: A function that returns the text of a score.
        unit: What the title rows count: `lines`, `words` or `documents`. With `references`, they
            count the references that have an output error themselves. Empty to count nothing.

    Returns:
        The table, without rows and columns that have no value; None if there is no value at all.
    """
    tables = {}
    counts_by_title = {}
    for task, test, scores_of_test in by_test_set(scores):
        table, counts = _table_and_counts(scores_of_test, pivot_columns, text_of, unit)
        title = f"{task}, {test} ({unit})" if counts else f"{task}, {test}"
        tables[title] = table
        counts_by_title[title] = counts
    stacked = stack_tables(tables, counts_by_title)
    columns = _columns_in_order(stacked, pivot_columns)
    if not columns:
        return None
    return Table([SYSTEM_COLUMN, *columns], stacked.rows)


def _table_and_counts(
    scores: pd.DataFrame,
    pivot_columns: Sequence[PivotColumn],
    text_of: Callable[[ScoreRow], str],
    unit: str,
) -> tuple[Table, dict[Column, Cell]]:
    """Return the table of one test set, and the counts that its title row shows.

    Args:
        scores: The scores on the test set.
        pivot_columns: The columns. Columns without a score are skipped.
        text_of: A function that returns the text of a score.
        unit: What is counted, such as `lines`; empty to count nothing.

    Returns:
        The table, and the cells of its title row by column; no cells if nothing is counted.
    """
    builder = TableBuilder()
    counts = {}
    for pivot_column in pivot_columns:
        rows = score_rows(select_metric(scores, pivot_column.metric, pivot_column.group))
        if not rows:
            continue
        column = Column(pivot_column.label)
        cells = {row.row_name: Cell(text_of(row), row.value) for row in rows}
        builder.add(column, cells)
        # All systems translate the same lines, so any row has their number.
        count = _unit_count(rows[0], unit)
        if count:
            counts[column] = Cell(f"{count:,.0f}", count)
    return builder.build(scores, marks_baseline=False), counts


def _columns_in_order(table: Table, pivot_columns: Sequence[PivotColumn]) -> list[Column]:
    """Return the columns of a table in the order in which the caller listed them.

    The stacked table has another order if the first test set lacks some of the columns: they were
    appended when a later test set had them.

    Args:
        table: The tables of all test sets, put below each other.
        pivot_columns: The columns in their order; the table may lack some of them.
    """
    columns = []
    for pivot_column in pivot_columns:
        column = Column(pivot_column.label)
        if column in table.columns:
            columns.append(column)
    return columns


def _unit_count(row: ScoreRow, unit: str) -> float:
    """Return the number that a title row shows for a score, such as its number of lines.

    Args:
        row: The score. It stores how many units it is computed from.
        unit: What is counted, such as `lines` or `words`. `references` counts the references that
            have an output error themselves. Empty to count nothing.

    Returns:
        The number; 0 if nothing is counted.
    """
    if not unit or pd.isna(row.units):
        return 0.0
    if unit == "references":
        # The rate of an output error ignores lines whose reference has the error, too. So it is
        # computed from fewer units than the test set has lines.
        return float(row.lines - row.units)
    return float(row.units)


def loss_table(scores: pd.DataFrame) -> Table | None:
    """Return the table of loss and perplexity, that is, how well systems predict the references.

    None if no system has them: they need the model, and external systems have only translations.
    """
    columns = [PivotColumn(metric.label, metric.key) for metric in LOSSES]
    return pivot_table(scores, columns, value_text)


def length_table(scores: pd.DataFrame) -> Table | None:
    """Return the table of BLEU by source length, such as the BLEU of lines with 1 to 10 words.

    The last column is the length ratio: the output length divided by the reference length.
    """
    columns = []
    for bucket in LENGTH_BUCKETS:
        columns.append(PivotColumn(bucket, "bleu", f"{LENGTH_GROUP} {bucket}"))
    columns.append(PivotColumn("Length ratio", "length_ratio"))
    return pivot_table(scores, columns, value_text, unit="lines")


def word_recall_table(scores: pd.DataFrame) -> Table | None:
    """Return the table of word recall, with a column for rare words, frequent words, and so on.

    Word recall is the share of the reference words that the translations contain. Words are grouped
    by how often the training text contains them. None if no target language separates words by
    spaces.
    """
    columns = []
    for bucket in COUNT_BUCKETS:
        columns.append(PivotColumn(bucket, WORD_ACCURACY, f"{COUNT_GROUP} {bucket}"))
    return pivot_table(scores, columns, value_text, unit="words")


def document_table(scores: pd.DataFrame) -> Table | None:
    """Return the table of scores whose confidence intervals come from resampling documents.

    None if it is not known for any test set where its documents begin.
    """
    columns = []
    for key in ("dbleu", *measured_scores(scores)):
        columns.append(PivotColumn(METRICS[key].label, key, DOCUMENT_GROUP))
    return pivot_table(scores, columns, marked_score_text, unit="documents")


def error_table(scores: pd.DataFrame) -> Table | None:
    """Return the table of output errors: how many lines of each system have each error.

    Output errors, such as repeated words, are found without a reference. Errors that neither a
    translation nor a reference has get no column, except the total.
    """
    columns = []
    for key in ERROR_KEYS:
        rows = select_metric(scores, key)
        is_in_translations = rows.value > 0
        # Scores ignore lines whose reference has the error, so `units`, the number of lines that
        # they are computed from, is smaller than the number of all lines.
        is_in_references = rows.units < rows.lines
        does_occur = (is_in_translations | is_in_references).any()
        if does_occur or key == ANY_ERROR:
            columns.append(PivotColumn(METRICS[key].label, key))
    return pivot_table(scores, columns, marked_score_text, unit="references")


def value_text(row: ScoreRow) -> str:
    """Return a score as text, such as `31.1`."""
    return row.value_text


def marked_score_text(row: ScoreRow) -> str:
    """Return a score as text, such as `31.1 [30.1, 33.1]‡`, with its significance mark."""
    return f"{row.score_text}{row.mark}"
