"""The scores of a report on a terminal: what fits on one screen, or everything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bleuprint.report import notes
from bleuprint.report.cost_columns import COUNTED_COSTS, MEASURED_COSTS, costs_table
from bleuprint.report.frame import Records
from bleuprint.report.score_frame import computed_scores, score_frame
from bleuprint.report.score_tables import measured_scores, tables_by_test_set
from bleuprint.report.table import Row, Table, stack_tables
from bleuprint.report.terminal import height, wrap
from bleuprint.runtime.wording import counted
from bleuprint.scoring.human_agreement import AGREEMENT_COLUMN, AGREEMENT_DEFINITION
from bleuprint.scoring.metrics import ON_SCREEN

# The number of lines of a screen.
LINES = 40
_ALL_COSTS = (*COUNTED_COSTS, *MEASURED_COSTS)
_COST_LABELS = ("Parameters", "Updates", "Training time", "Tokens/s", "Memory")
_COSTS_ON_SCREEN = [cost for cost in _ALL_COSTS if cost.label in _COST_LABELS]

# What a command prints: lines and tables, in order.
Parts = list[str | Table]


def everything(records: Records) -> Parts:
    """Return the tables of all scores and costs, and all notes, however long.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    scores = score_frame(records)
    parts: Parts = [
        stack_tables(tables_by_test_set(scores, measured_scores(scores))),
        costs_table(scores, _ALL_COSTS),
        "",
    ]
    all_notes = notes.all_notes(records)
    all_notes += notes.early_end_notes(records.runs)
    all_notes += notes.bleu_ceiling_notes(records.runs)
    all_notes += notes.document_notes(records)
    for note in all_notes:
        parts.append(wrap(note))
    return parts


def one_screen(records: Records, closing_lines: Sequence[str] = ()) -> Parts:
    """Return the scores and how to read them, on one screen.

    If they do not fit, the costs are omitted; then everything except BLEU, and the rows for which
    there is no room.

    Args:
        records: The results of the experiment, as results.json stores them.
        closing_lines: Lines that are printed at the end in any case.
    """
    closing = _warning_lines(records)
    closing += map(wrap, closing_lines)
    room = LINES - height(closing)
    scores = score_frame(records)
    table = stack_tables(tables_by_test_set(scores, ON_SCREEN))
    costs = costs_table(scores, _COSTS_ON_SCREEN)
    legend_lines = list(map(wrap, notes.legend_notes(records)))
    reading_lines = ["", *legend_lines]
    if any(AGREEMENT_COLUMN in column.label for column in table.columns):
        reading_lines.append(wrap(f"{AGREEMENT_DEFINITION}."))
    detectable = notes.detectable_note(records)
    if detectable:
        reading_lines.append(wrap(detectable))
    with_costs: Parts = [table, costs, *reading_lines]
    if height(with_costs) <= room:
        return [*with_costs, *closing]
    without_costs: Parts = [table, *reading_lines]
    if height(without_costs) <= room:
        return [*without_costs, *closing]
    bleu_tables = tables_by_test_set(computed_scores(scores), costs=())
    bleu_parts = _cut_tables(bleu_tables, room, ["", *legend_lines])
    return [*bleu_parts, *closing]


def _warning_lines(records: Records) -> list[str]:
    """Return the warnings that are shown below the scores, after an empty line."""
    warnings = [
        *notes.file_warning_notes(records),
        *notes.bleu_ceiling_notes(records.runs),
        *notes.early_end_notes(records.runs, only_warnings=True),
    ]
    return ["", *map(wrap, warnings)]


@dataclass(frozen=True)
class _RankedRow:
    """A row of one of the tables, with its rank.

    Attributes:
        rank: 1 for the baseline and the best system of a table, 2 for the second best, and so on.
        table_number: The position of the table.
        row: The row.
    """

    rank: int
    table_number: int
    row: Row


def _cut_tables(tables: Mapping[str, Table], room: int, legend_lines: Sequence[str]) -> Parts:
    """Return as many rows of BLEU tables as fit into a number of lines, at least one.

    Args:
        tables: The tables of the test sets, by name.
        room: The number of lines.
        legend_lines: Lines that are printed below the tables.
    """
    ranked_rows = _rank_rows(tables)
    largest_count = min(len(ranked_rows), room)  # A row takes at least one line.
    for row_count in range(largest_count, 1, -1):
        parts = _parts_with_rows(tables, ranked_rows, row_count, legend_lines)
        if height(parts) <= room:
            return parts
    return _parts_with_rows(tables, ranked_rows, 1, legend_lines)


def _rank_rows(tables: Mapping[str, Table]) -> list[_RankedRow]:
    """Return the rows of all tables, the most important first.

    First come the baseline and the best system of each test set, then the second best of each, and
    so on.
    """
    ranked_rows = []
    for table_number, table in enumerate(tables.values()):
        baseline_first = sorted(table.rows, key=_baseline_and_bleu)
        for position, row in enumerate(baseline_first):
            rank = max(position, 1)  # The baseline at position 0 ranks with the best system.
            ranked_rows.append(_RankedRow(rank, table_number, row))
    # Sorting keeps the order of equal ranks: the baseline stays before the best system.
    return sorted(ranked_rows, key=lambda ranked: (ranked.rank, ranked.table_number))


def _parts_with_rows(
    tables: Mapping[str, Table],
    ranked_rows: Sequence[_RankedRow],
    row_count: int,
    legend_lines: Sequence[str],
) -> Parts:
    """Return the tables with only the first of the ranked rows, and how many rows are missing."""
    kept_tables = {}
    for table_number, (name, table) in enumerate(tables.items()):
        rows = []
        for ranked in ranked_rows[:row_count]:
            if ranked.table_number == table_number:
                rows.append(ranked.row)
        kept_tables[name] = replace(table, rows=rows)
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
    """Return the key that sorts the baseline to the front, and the other rows by BLEU."""
    bleu = 0.0
    for column, cell in row.cells.items():
        if column.label == "BLEU" and cell.value is not None:
            bleu = cell.value
    return row.kind != "baseline", -bleu
