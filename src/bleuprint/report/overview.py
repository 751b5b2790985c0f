"""The scores on a terminal: what fits on a screen, or all of them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from bleuprint.report import notes, score_tables
from bleuprint.report.frame import Records
from bleuprint.report.score_frame import computed_scores, score_frame
from bleuprint.report.table import Row, Table, stacked
from bleuprint.report.terminal import height, wrapped
from bleuprint.runtime.wording import counted
from bleuprint.scoring.human_agreement import AGREEMENT_COLUMN, AGREEMENT_DEFINITION
from bleuprint.scoring.metrics import ON_SCREEN

# Lines of a screen.
LINES = 40
_COST_LABELS = ("Parameters", "Updates", "Training time", "Tokens/s", "Memory")
_COSTS = [
    cost
    for cost in (*score_tables.COUNTED_COSTS, *score_tables.MEASURED_COSTS)
    if cost.label in _COST_LABELS
]
_Parts = list[str | Table]


def one_screen(records: Records, after: Sequence[str] = ()) -> _Parts:
    """Return the scores, how to read them, and the lines `after` them, on one screen.

    If they do not fit, the costs are left out; then all except BLEU, and rows beyond the screen.
    """
    closing = [
        *notes.file_warning_notes(records),
        *notes.bleu_ceiling_notes(records.runs),
        *notes.early_end_notes(records.runs, only_warnings=True),
        *after,
    ]
    closing = ["", *map(wrapped, closing)]
    room = LINES - height(closing)
    scores = score_frame(records)
    table = stacked(score_tables.by_test(scores, ON_SCREEN))
    costs = score_tables.costs_table(scores, _COSTS)
    legend = list(map(wrapped, notes.legend(records)))
    reading: _Parts = ["", *legend]
    if any(AGREEMENT_COLUMN in column.label for column in table.columns):
        reading.append(wrapped(f"{AGREEMENT_DEFINITION}."))
    detectable = notes.detectable_note(records)
    if detectable:
        reading.append(wrapped(detectable))
    for tables in ([table, costs], [table]):
        parts: _Parts = [*tables, *reading]
        if height(parts) <= room:
            return [*parts, *closing]
    without_costs = score_tables.by_test(computed_scores(scores), costs=())
    return [*_cut(without_costs, room, ["", *legend]), *closing]


def everything(records: Records) -> _Parts:
    """Return the tables of all scores and of costs, and all notes."""
    scores = score_frame(records)
    metrics = score_tables.measured_scores(scores)
    reading = [
        *notes.notes(records),
        *notes.early_end_notes(records.runs),
        *notes.bleu_ceiling_notes(records.runs),
        *notes.document_notes(records),
    ]
    return [
        stacked(score_tables.by_test(scores, metrics)),
        score_tables.costs_table(
            scores, (*score_tables.COUNTED_COSTS, *score_tables.MEASURED_COSTS)
        ),
        "",
        *map(wrapped, reading),
    ]


def _cut(tables: dict[str, Table], room: int, legend: Sequence[str]) -> _Parts:
    """Return BLEU and the differences of as many rows as fit in a number of lines.

    The baseline and the best row of each test set come first, then the next best rows.
    """
    ranked = []
    for number, table in enumerate(tables.values()):
        for rank, row in enumerate(sorted(table.rows, key=_baseline_and_best)):
            ranked.append((max(rank, 1), number, rank, row))
    ranked.sort(key=lambda entry: entry[:3])

    def parts_with(count: int) -> _Parts:
        """Return the parts with so many rows."""
        chosen = ranked[:count]
        kept = {}
        for number, (name, table) in enumerate(tables.items()):
            rows = [row for _, of_table, _, row in chosen if of_table == number]
            kept[name] = replace(table, rows=rows)
        shown = stacked(kept)
        left_out = [column.label for column in shown.columns if AGREEMENT_COLUMN in column.label]
        parts: _Parts = [shown.without(left_out)]
        if count < len(ranked):
            parts.append(f"{counted(len(ranked) - count, 'more row')}: bleuprint table --all")
        return [*parts, *legend]

    counts = range(1, len(ranked) + 1)
    fitting = bisect_right(counts, room, key=lambda count: height(parts_with(count)))
    return parts_with(max(fitting, 1))


def _baseline_and_best(row: Row) -> tuple[bool, float]:
    """Return the key that sorts the baseline to the front, then rows by BLEU."""
    bleu = next((cell for column, cell in row.cells.items() if column.label == "BLEU"), None)
    value = bleu.value if bleu is not None else None
    return row.kind != "baseline", -(value or 0.0)
