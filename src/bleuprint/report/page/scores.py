"""The tables of scores, with intervals drawn to scale; the sections of faults, and of cost."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from bleuprint.report import main_table, notes, tables
from bleuprint.report.arranged import parted, stacked
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.grid import NONE, Column, Grid
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import descriptions
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.report.system_results import OUTSIDE, Score, by_test
from bleuprint.runtime.counts import counted
from bleuprint.scoring.measures import MEASURES

_COSTS = {"Parameters": COUNTED["Parameters"], **main_table.COSTS, "Time": MEASURED["Time"]}
# Metrics beside BLEU whose scores stand in the table; all are in the folded one.
_BESIDE = ("chrf2", "comet")
# The ends of a scale are multiples of this many BLEU.
_STEP = 5


def scores(context: ReportContext) -> dict[str, Any]:
    """The table of scores, those that are folded below it, and how to read them."""
    settings, records = context.settings, context.records
    further = tables.measured_scores(records)[1:]
    about = descriptions(settings, [*dict.fromkeys(each.task for each in context.results)])
    head = "± deviation" if context.several else "95 % interval"
    grids = main_table.by_test_set(records, ["bleu", *_BESIDE], _COSTS, settings.published, _BESIDE)
    main, scales = dict[str, Grid](), dict[str, dict[str, str]]()
    for (task, test), results in by_test(context.results).items():
        name = f"{task}, test set {test} ({counted(int(results[0].first.lines), 'sentence')})"
        ends = [end for result in results for end in result.bleu.ends]
        low = _STEP * math.floor(min(ends) / _STEP)
        high = max(low + _STEP, _STEP * math.ceil(max(ends) / _STEP))
        scales[name] = {head: Markup(f"<span>{low}</span> <span>{high}</span>")}
        drawn = {r.label: _drawn(r.bleu, low, high) for r in results}
        main[name] = _with_drawn(grids[f"{task}, {test}"], head, drawn, about)
    return {
        "scores": stacked(main, scales),
        "further": stacked(main_table.by_test_set(records, further, {})),
        "losses": tables.losses(records, settings.published),
        "losses_note": tables.LOSS_NOTE,
        "documents": tables.documents(records),
        "documents_notes": paragraphs("documents.md"),
        "measures": [MEASURES[key] for key in further],
        "several_seeds": context.several,
        "reading": notes.notes(records, settings.published),
    }


def _drawn(bleu: Score, low: int, high: int) -> Markup:
    """A score with its interval, or a deviation to each side, on a scale from low to high."""
    start, middle, end = (
        f"{100 * (each - low) / (high - low):.1f}%"
        for each in (bleu.ends[0], bleu.mean, bleu.ends[1])
    )
    return Markup(
        f'<svg class="drawn" aria-hidden="true"><line x1="{start}" x2="{end}" y1="50%" y2="50%"/>'
        f'<circle cx="{middle}" cy="50%" r="4"/></svg>'
    )


def _with_drawn(grid: Grid, head: str, drawn: Mapping[str, str], about: dict[str, str]) -> Grid:
    """The table with a column after that of BLEU; below a row's name what its system is.

    That is taken from `about`, and so said once.
    """
    place = [column.label for column in grid.columns].index(MEASURES["bleu"].label) + 1
    rows = []
    for row in grid.rows:
        name = row.cells[0].removesuffix(" (baseline)").removesuffix(f" ({OUTSIDE})")
        cells = [*row.cells[:place], drawn.get(name, ""), *row.cells[place:]]
        if what := about.pop(name, ""):
            cells[0] = Markup("{}\n<small>{}</small>").format(cells[0], what)
        best = frozenset(each + (each >= place) for each in row.best)
        rows.append(replace(row, cells=tuple(cells), best=best))
    return Grid((*grid.columns[:place], Column(head), *grid.columns[place:]), tuple(rows))


def faults(context: ReportContext) -> Section:
    """Faults of translations that are seen without a reference."""
    notes = paragraphs("faults.md")
    for note in tables.fault_notes(context.records):
        notes[-1] += f"\n- {note}"
    data = {"grid": tables.faults(context.records), "notes": notes}
    return Section("faults", "What broke", data)


def cost(context: ReportContext) -> Section:
    """What each training took, counted and measured; the device once, if all ran on it."""
    grid = main_table.costs(context.records)
    (device, of_device), *others = parted(grid, "Device").items()
    data = {
        "grid": stacked(parted(grid if others else of_device, "Corpus")),
        "device": "" if others or device == NONE else device,
        "notes": paragraphs("cost.md"),
    }
    return Section("cost", "Cost and size", data)
