"""The scores of a report on a terminal: what fits on one screen, or everything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bleuprint.report import notes
from bleuprint.report.cost_columns import COUNTED_COSTS, MEASURED_COSTS, costs_table
from bleuprint.report.frame import Records
from bleuprint.report.score_frame import computed_scores, score_frame
from bleuprint.report.score_tables import measured_scores, tables_by_test_set
from bleuprint.report.table import Row, Table, stack_tables
from bleuprint.report.terminal import height, wrap
from bleuprint.runtime.wording import counted
from bleuprint.scoring.human_agreement import AGREEMENT_COLUMN, AGREEMENT_DEFINITION
from bleuprint.scoring.metrics import ON_SCREEN, own_keys

# The number of lines of a screen.
SCREEN_LINES = 40
_ALL_COSTS = (*COUNTED_COSTS, *MEASURED_COSTS)
_COST_LABELS = ("Parameters", "Updates", "Training time", "Tokens/s", "Memory")
_COSTS_ON_SCREEN = [cost for cost in _ALL_COSTS if cost.label in _COST_LABELS]

# What a command prints: lines and tables, in order.
Parts = list[str | Table]


def everything(records: Records) -> Parts:
    """Return all tables of scores and costs, and all notes below them, for `bleuprint table --all`.

    Args:
        records: The results of the experiment, as results.json stores them.

    Returns:
        The tables and lines to print, in order.
    """
    scores = score_frame(records)
    parts: Parts = [
        stack_tables(tables_by_test_set(scores, measured_scores(scores))),
        costs_table(scores, _ALL_COSTS),
        "",
    ]
    all_notes = notes.all_notes(records, Path())
    all_notes += notes.document_notes(records)
    for note in all_notes:
        parts.append(wrap(note))
    return parts


def one_screen(records: Records, closing_lines: Sequence[str] = ()) -> Parts:
    """Return the most important scores, and notes on how to read them, as one screen of text.

    The first of these versions that has at most `SCREEN_LINES` lines is returned:

    1. the most important scores of all systems, and their costs;
    2. the same scores without the costs;
    3. BLEU alone, for as many systems as fit.

    Args:
        records: The results of the experiment, as results.json stores them.
        closing_lines: Lines below all others, such as what to do next.

    Returns:
        The tables and lines to print, in order.
    """
    closing = _warning_lines(records)
    closing += map(wrap, closing_lines)
    lines_left = SCREEN_LINES - height(closing)
    scores = score_frame(records)
    metrics_on_screen = [*ON_SCREEN, *own_keys(scores.metric)]
    score_table = stack_tables(tables_by_test_set(scores, metrics_on_screen))
    cost_table = costs_table(scores, _COSTS_ON_SCREEN)
    legend_lines = ["", *map(wrap, notes.legend_notes(records))]
    explanations = [*legend_lines, *_further_explanations(records, score_table)]
    with_costs: Parts = [score_table, cost_table, *explanations]
    if height(with_costs) <= lines_left:
        return [*with_costs, *closing]
    without_costs: Parts = [score_table, *explanations]
    if height(without_costs) <= lines_left:
        return [*without_costs, *closing]
    bleu_tables = tables_by_test_set(computed_scores(scores), costs=())
    bleu_parts = _best_rows_that_fit(bleu_tables, lines_left, legend_lines)
    return [*bleu_parts, *closing]


def _further_explanations(records: Records, score_table: Table) -> list[str]:
    """Return explanations of the scores on the screen that the legend does not contain.

    They say what human agreement is, if the table has such a column, and which differences the test
    sets can detect.

    Args:
        records: The results of the experiment, as results.json stores them.
        score_table: The table of scores on the screen.
    """
    explanations = []
    if any(AGREEMENT_COLUMN in column.label for column in score_table.columns):
        explanations.append(wrap(f"{AGREEMENT_DEFINITION}."))
    detectable = notes.detectable_note(records)
    if detectable:
        explanations.append(wrap(detectable))
    return explanations


def _warning_lines(records: Records) -> list[str]:
    """Return an empty line and the warnings below the scores, wrapped to the terminal's width.

    They concern files of external systems, test sets on which no system can reach 100 BLEU, and
    training runs that may have ended too early.
    """
    warnings = [
        *notes.file_warning_notes(records),
        *notes.bleu_ceiling_notes(records.runs),
        *notes.early_end_notes(records.runs, skips_runs_without_warning=True),
    ]
    return ["", *map(wrap, warnings)]


@dataclass(frozen=True)
class _RankedRow:
    """A row of one of several tables, with its rank: rows of a low rank are kept if not all fit.

    Attributes:
        rank: 1 for the baseline and the best system of a table, 2 for the second best, and so on.
        table_number: The position of the row's table among the tables.
        row: The row.
    """

    rank: int
    table_number: int
    row: Row


def _best_rows_that_fit(
    tables: Mapping[str, Table], max_lines: int, legend_lines: Sequence[str]
) -> Parts:
    """Return the BLEU tables of all test sets, with as many rows as fit into a number of lines.

    How many rows fit is found by trial: the height of a text also depends on headings and wrapped
    lines. At least one row is kept, even if it does not fit.

    Args:
        tables: The BLEU tables of the test sets, by name.
        max_lines: The number of lines that tables and legend may have together.
        legend_lines: Lines that are printed below the tables.
    """
    ranked_rows = _rank_rows(tables)
    # A row takes at least one line, so more rows than lines need not be tried.
    largest_count = min(len(ranked_rows), max_lines)
    for row_count in range(largest_count, 1, -1):
        parts = _keep_best_rows(tables, ranked_rows, row_count, legend_lines)
        if height(parts) <= max_lines:
            return parts
    return _keep_best_rows(tables, ranked_rows, 1, legend_lines)


def _rank_rows(tables: Mapping[str, Table]) -> list[_RankedRow]:
    """Return the rows of all tables in one list, the most important first.

    The screen shows the first rows of this list, so it is ordered by rank and not by table: first
    the baseline and the best system of each table, then the second best of each, and so on.

    Args:
        tables: The BLEU tables of the test sets, by name.
    """
    ranked_rows = []
    for table_number, table in enumerate(tables.values()):
        baseline_first = sorted(table.rows, key=_baseline_and_bleu)
        for position, row in enumerate(baseline_first):
            # The baseline, at position 0, is as important as the best system, at position 1.
            rank = max(position, 1)
            ranked_rows.append(_RankedRow(rank, table_number, row))
    # The sort is stable, so within a table, the baseline stays before the best system.
    return sorted(ranked_rows, key=lambda ranked: (ranked.rank, ranked.table_number))


def _keep_best_rows(
    tables: Mapping[str, Table],
    ranked_rows: Sequence[_RankedRow],
    row_count: int,
    legend_lines: Sequence[str],
) -> Parts:
    """Return the tables with only their most important rows, and the lines below them.

    To save room, the columns of human agreement are removed. A line says how many rows are not
    shown.

    Args:
        tables: The BLEU tables of the test sets, by name.
        ranked_rows: The rows of all tables, the most important first.
        row_count: The number of rows to keep, over all tables.
        legend_lines: Lines that are printed below the tables.
    """
    kept_tables = {}
    for table_number, (name, table) in enumerate(tables.items()):
        kept_rows = []
        for ranked in ranked_rows[:row_count]:
            if ranked.table_number == table_number:
                kept_rows.append(ranked.row)
        kept_tables[name] = replace(table, rows=kept_rows)
    stacked = stack_tables(kept_tables)
    agreement_labels = []
    for column in stacked.columns:
        if AGREEMENT_COLUMN in column.label:
            agreement_labels.append(column.label)
    parts: Parts = [stacked.without_columns(agreement_labels)]
    missing_rows = len(ranked_rows) - row_count
    if missing_rows > 0:
        parts.append(f"{counted(missing_rows, 'more row')}: bleuprint table --all")
    return [*parts, *legend_lines]


def _baseline_and_bleu(row: Row) -> tuple[bool, float]:
    """Return the sorting key that puts the baseline first, then the other rows by falling BLEU.

    Keys are sorted in ascending order: False comes before True, and a high BLEU, as a negative
    number, before a low one.
    """
    bleu = 0.0  # Of a row without a BLEU.
    for column, cell in row.cells.items():
        if column.label == "BLEU" and cell.value is not None:
            bleu = cell.value
    is_not_baseline = row.kind != "baseline"
    return is_not_baseline, -bleu
