"""The tables of scores, with intervals drawn to scale; the sections of errors, and of cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from markupsafe import Markup

from bleuprint.report import notes, score_tables
from bleuprint.report.frame import task_names
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import descriptions
from bleuprint.report.page.section import Section, paragraphs
from bleuprint.report.score_frame import NOT_TRAINED, bleu_rows, by_test_set
from bleuprint.report.table import NONE, Cell, Column, Table, parted, stacked
from bleuprint.runtime.wording import counted
from bleuprint.scoring.metrics import BESIDE_BLEU, METRICS

_COSTS = (score_tables.PARAMETERS, score_tables.FLOPS, score_tables.TIME)
# The ends of a scale are multiples of this many BLEU.
_STEP = 5


def scores(context: ReportContext) -> dict[str, Any]:
    """Return the table of scores, those that are folded below it, and how to read them."""
    frame = context.scores
    further = score_tables.measured_scores(frame)[1:]
    about = descriptions(context.settings, task_names(context.records.runs))
    column = Column("± deviation" if context.several else "95% CI")
    tables = {}
    scales = {}
    for task, test, of_test in by_test_set(frame):
        rows = bleu_rows(of_test)
        sentences = counted(int(rows[0].lines), "sentence")
        name = f"{task}, test set {test} ({sentences})"
        low, high = _scale(rows)
        table = score_tables.table(of_test, ["bleu", *BESIDE_BLEU], _COSTS, BESIDE_BLEU)
        drawn = {row.row_name: _drawn(row, low, high) for row in rows}
        tables[name] = _decorated(table, column, drawn, about)
        scales[name] = {column: Cell(Markup(f"<span>{low}</span> <span>{high}</span>"))}
    return {
        "scores": stacked(tables, scales),
        "further": stacked(score_tables.by_test(frame, further, costs=())),
        "losses": score_tables.losses(frame),
        "losses_note": score_tables.LOSS_NOTE,
        "documents": score_tables.documents(frame),
        "documents_notes": paragraphs("documents.md"),
        "metrics": [METRICS[key] for key in further],
        "several_seeds": context.several,
        "reading": notes.notes(context.records),
    }


def _ends(row: Any) -> tuple[float, float]:
    """Return the interval of a score; of several seeds one standard deviation to each side."""
    if pd.notna(row.ci_low):
        return row.ci_low, row.ci_high
    deviation = 0.0 if pd.isna(row.deviation) else row.deviation
    return row.value - deviation, row.value + deviation


def _scale(rows: Sequence[Any]) -> tuple[int, int]:
    """Return the ends of the scale on which the scores of a test set are drawn."""
    lowest = min(_ends(row)[0] for row in rows)
    highest = max(_ends(row)[1] for row in rows)
    low = _STEP * math.floor(lowest / _STEP)
    high = _STEP * math.ceil(highest / _STEP)
    return low, max(low + _STEP, high)


def _drawn(row: Any, low: int, high: int) -> Markup:
    """Return a score with its interval, drawn on a scale from low to high."""
    ends = _ends(row)
    start, middle, end = (
        f"{100 * (value - low) / (high - low):.1f}%" for value in (ends[0], row.value, ends[1])
    )
    return Markup(
        f'<svg class="drawn" aria-hidden="true"><line x1="{start}" x2="{end}" y1="50%" y2="50%"/>'
        f'<circle cx="{middle}" cy="50%" r="4"/></svg>'
    )


def _decorated(
    table: Table, column: Column, drawn: Mapping[str, Markup], about: dict[str, str]
) -> Table:
    """Return the table with a column after that of BLEU, and what each system is below its name.

    Args:
        table: The scores of a test set.
        column: The new column.
        drawn: Its cells by the names of rows.
        about: The descriptions by the names of rows. Each is taken out, so that it is shown once.
    """
    first = table.columns[0]
    rows = []
    for row in table.rows:
        shown_name = row.cell(first).text
        name = shown_name.removeprefix(score_tables.BASELINE).removesuffix(NOT_TRAINED)
        cells = {**row.cells, column: Cell(drawn.get(name, ""))}
        description = about.pop(name, "")
        if description:
            text = Markup("{}\n<small>{}</small>").format(shown_name, description)
            cells[first] = Cell(text)
        rows.append(replace(row, cells=cells))
    place = table.columns.index(table.column(METRICS["bleu"].label)) + 1
    return Table([*table.columns[:place], column, *table.columns[place:]], rows)


def errors(context: ReportContext) -> Section:
    """Return the section of output errors, which are seen without a reference."""
    paragraphs_below = paragraphs("errors.md")
    for note in notes.error_notes(context.records):
        paragraphs_below[-1] += f"\n- {note}"
    data = {"table": score_tables.errors(context.scores), "notes": paragraphs_below}
    return Section("errors", "Output errors", data)


def cost(context: ReportContext) -> Section:
    """Return the section of what each training took; the device once, if all ran on it."""
    costs = (*score_tables.COUNTED_COSTS, *score_tables.MEASURED_COSTS)
    table = score_tables.costs_table(context.scores, costs)
    by_device = parted(table, "Device")
    device = ""
    if len(by_device) == 1:
        ((device, table),) = by_device.items()
    data = {
        "table": stacked(parted(table, "Corpus")),
        "device": "" if device == NONE else device,
        "notes": paragraphs("cost.md"),
    }
    return Section("cost", "Cost and size", data)
