"""The scores on a terminal: what fits on a screen, or all of them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from bleuprint.config.published import Published
from bleuprint.report import main_table, notes, tables
from bleuprint.report.arranged import stacked
from bleuprint.report.frame import Records
from bleuprint.report.grid import Grid, Number, Row, only
from bleuprint.report.terminal import height, wrapped
from bleuprint.runtime.counts import counted
from bleuprint.scoring.human_agreement import AGREE

# Lines of a screen.
LINES = 40
_COSTS = ("Parameters", "Updates", "Time", "Tokens/s", "Memory")
_PEOPLE = f"{AGREE}: the share of such differences in which people prefer the better system."
_Parts = list[str | Grid]


def headline(
    records: Records, published: Sequence[Published] = (), after: Sequence[str] = ()
) -> _Parts:
    """The scores, how to read them, and the lines `after` them, on one screen.

    If they do not fit, without costs; or only BLEU, of as many rows as fit.
    """
    warnings = [*notes.file_warning_notes(records), *notes.reachable_notes(records.cells)]
    warnings += notes.early_end_notes(records.cells, only_warnings=True)
    after = ["", *map(wrapped, warnings), *map(wrapped, after)]
    room = LINES - height(after)
    scores = stacked(main_table.by_test_set(records, ["bleu", "comet"], published=published))
    costs = main_table.costs(records, {name: main_table.ALL_COSTS[name] for name in _COSTS})
    legend = [*map(wrapped, notes.legend(records))]
    more = [_PEOPLE] if any(AGREE in column.label for column in scores.columns) else []
    more += filter(None, [notes.detectable_note(records)])
    whole: _Parts = ["", *legend, *map(wrapped, more)]
    for parts in ([scores, costs, *whole], [scores, *whole]):
        if height(parts) <= room:
            return [*parts, *after]
    return [*_cut(records, room, legend), *after]


def everything(records: Records, published: Sequence[Published] = ()) -> _Parts:
    """The tables of all scores and of costs, their notes, and how they differ by document."""
    measures = tables.measured_scores(records)
    return [
        stacked(main_table.by_test_set(records, measures, published=published)),
        main_table.costs(records),
        "",
        *map(wrapped, notes.notes(records, published)),
        *map(wrapped, notes.early_end_notes(records.cells)),
        *map(wrapped, notes.reachable_notes(records.cells)),
        *map(wrapped, tables.document_findings(records)),
    ]


def _cut(records: Records, room: int, legend: Sequence[str]) -> _Parts:
    """BLEU and differences of as many rows as fit; the baseline and best of a test set first."""
    by_test = main_table.by_test_set(records, costs={})
    ranked = sorted(
        ((max(rank, 1), number, rank), row)
        for number, table in enumerate(by_test.values())
        for rank, row in enumerate(sorted(table.rows, key=_baseline_and_best))
    )

    def cut(most: int) -> _Parts:
        kept = dict[str, Grid]()
        for number, (name, table) in enumerate(by_test.items()):
            rows = tuple(row for (_, of, _), row in ranked[:most] if of == number)
            kept[name] = replace(table, rows=rows)
        scores, left = stacked(kept), len(ranked) - most
        return [
            only(scores, lambda at: AGREE not in scores.columns[at].label),
            *([f"{counted(left, 'more row')}: bleuprint table --all"] if left else []),
            *("", *legend),
        ]

    fitting = bisect_right(range(1, len(ranked) + 1), room, key=lambda most: height(cut(most)))
    return cut(max(fitting, 1))


def _baseline_and_best(row: Row) -> tuple[bool, float]:
    bleu = row.cells[1]
    return row.kind != "baseline", -(bleu.value or 0.0) if isinstance(bleu, Number) else 0.0
