"""Tables of the score frame: `table` for a test set, `pivot` for all of them, `costs` of trainings.

Columns of scores follow from the measures that were measured; docs/contributing.md shows how to
add one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from bleuprint.report.published.literature import FLOPS_BY_TIME, FURTHER
from bleuprint.report.score_frame import (
    EXTERNAL,
    by_test_set,
    displayed_name,
    of_measure,
    ours,
)
from bleuprint.report.table import EMPTY, Cell, Column, Row, Table, stacked
from bleuprint.runtime.counts import duration
from bleuprint.scoring.bleu_variants import VARIANTS
from bleuprint.scoring.breakdown import COUNT, COUNTS, LENGTH, LENGTHS, WORD_ACCURACY
from bleuprint.scoring.human_agreement import AGREE
from bleuprint.scoring.measures import FAULT_KEYS, MEASURES, SCORES
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.reference_loss import LOSSES

DOCUMENT = "document"
OTHERWISE_LABEL = "BLEU (other variants)"
BY_TIME = "FLOPs, by time"
LOSS_NOTE = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)
_SYSTEM = Column("System", is_text=True)


def _power(number: float) -> str:
    """Return a number with an exponent: 3.3e18."""
    return f"{number:.1e}".replace("e+", "e")


def _millions(number: float) -> str:
    return f"{number / 1e6:,.2f}M"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"


@dataclass(frozen=True)
class Cost:
    """A column of training cost.

    Attributes:
        label: The head of the column.
        fact: The column of the score frame that it shows.
        form: The text of a value.
        is_text: Whether the column is text, and no number.
    """

    label: str
    fact: str
    form: Callable[[Any], str]
    is_text: bool = False

    @property
    def column(self) -> Column:
        return Column(self.label, is_text=self.is_text)

    def cell(self, row: Any) -> Cell:
        """Return the cell of a row of the score frame; it is empty where the cost is not known."""
        value = getattr(row, self.fact)
        if pd.isna(value):
            return EMPTY
        return Cell(self.form(value), None if self.is_text else float(value))


PARAMETERS = Cost("Parameters", "parameters", _millions)
FLOPS = Cost("FLOPs", "training_flops", _power)
TIME = Cost("Time", "train_seconds", duration)
COUNTED = (
    PARAMETERS,
    Cost("Updates", "updates", _count),
    Cost("Target tokens", "target_tokens", _millions),
    FLOPS,
)
MEASURED = (
    TIME,
    Cost("Tokens/s", "train_tokens_per_second", _count),
    Cost("Memory", "peak_memory", _gigabytes),
    Cost("Seconds x devices x sustained FLOPS", "training_flops_by_time", _power),
    Cost("MFU", "mfu", "{:.1%}".format),
    Cost("Device", "device", str, is_text=True),
)


@dataclass
class _Columns:
    """The columns of a table while they are collected, and their cells by the names of rows."""

    columns: list[Column] = field(default_factory=list)
    cells: dict[str, dict[Column, Cell]] = field(default_factory=dict)

    def add(self, column: Column, cells: Mapping[str, Cell]) -> None:
        self.columns.append(column)
        for name, cell in cells.items():
            self.cells.setdefault(name, {})[column] = cell


def table(
    scores: pd.DataFrame,
    measures: Sequence[str] = ("bleu",),
    costs: Sequence[Cost] = (FLOPS,),
    without_difference: Sequence[str] = (),
) -> Table:
    """Return the scores of a test set: systems down the side, published numbers above them.

    Args:
        scores: Those of one test set, perhaps with published numbers (with_published). These are
            shown beside BLEU only, in a column for each way in which BLEU was counted; the systems
            are scored in the same way there.
        measures: The columns; the best system of each is marked.
        costs: Further columns.
        without_difference: The measures without columns of the difference from the baseline and of
            the human agreement.
    """
    if "bleu" not in measures:
        scores = ours(scores)
    return _assembled(_columns(scores, measures, costs, without_difference), scores)


def by_test(
    scores: pd.DataFrame, measures: Sequence[str] = ("bleu",), costs: Sequence[Cost] = (FLOPS,)
) -> dict[str, Table]:
    """Return the `table` of each test set by the name of the task and the test set."""
    return {
        f"{task}, {test}": table(of_test, measures, costs)
        for task, test, of_test in by_test_set(scores)
    }


def across(scores: pd.DataFrame) -> Table:
    """Return the tables of BLEU of all test sets beside each other, as groups of columns."""
    together = _Columns()
    for task, test, of_test in by_test_set(scores):
        found = _columns(of_test, ["bleu"], [FLOPS])
        for column in found.columns:
            cells = {name: row[column] for name, row in found.cells.items() if column in row}
            together.add(replace(column, group=f"{task}, {test}"), cells)
    return _assembled(together, scores)


def pivot(
    scores: pd.DataFrame,
    columns: Mapping[str, tuple[str, str]],
    text: Callable[[Any], str],
    unit: str = "",
) -> Table | None:
    """Return all test sets below each other, with a column for each measure and group of lines.

    Args:
        scores: The score frame, perhaps with published numbers.
        columns: By the head of each column its measure and group of lines.
        text: What is shown of a row of the frame.
        unit: What is counted beside the name of a test set: lines, words, documents, or references,
            which are the lines that do not count.

    Returns:
        The table without columns and rows that have no value; None if no column has one.
    """
    tables = {}
    sizes = {}
    for task, test, of_test in by_test_set(scores):
        found = _Columns()
        size = {}
        for head, (measure, group) in columns.items():
            rows = list(of_measure(of_test, measure, group).itertuples(index=False))
            if not rows:
                continue
            column = Column(head)
            found.add(column, {displayed_name(row): Cell(text(row), row.value) for row in rows})
            units = _units(rows[0], unit)
            if units:
                size[column] = Cell(f"{units:,.0f}", units)
        name = f"{task}, {test} ({unit})" if size else f"{task}, {test}"
        tables[name] = _plain(found, of_test)
        sizes[name] = size
    heads = [Column(head) for head in columns]
    shown = stacked(tables, sizes)
    ordered = [column for column in heads if column in shown.columns]
    return Table([_SYSTEM, *ordered], shown.rows) if ordered else None


def costs_table(scores: pd.DataFrame, costs: Sequence[Cost]) -> Table:
    """Return what each training took, means over seeds; the columns are `costs`."""
    corpus = Column("Corpus", is_text=True)
    rows = []
    of_trained = ours(scores)[~ours(scores).is_external.astype(bool)]
    for row in of_trained.drop_duplicates(["system", "corpus"]).itertuples(index=False):
        cells = {_SYSTEM: Cell(row.system), corpus: Cell(row.corpus)}
        cells |= {cost.column: cost.cell(row) for cost in costs}
        rows.append(Row(cells))
    return Table([_SYSTEM, corpus, *(cost.column for cost in costs)], rows)


def measured_scores(scores: pd.DataFrame) -> list[str]:
    """Return the scores that have a table: all that were measured."""
    measured = set(scores.measure)
    return [key for key in SCORES if key in measured]


def losses(scores: pd.DataFrame) -> Table | None:
    """Return loss and perplexity of the references, below those of published systems."""
    columns = {measure.label: (measure.key, "") for measure in LOSSES}
    return pivot(scores, columns, shown_value)


def by_length(scores: pd.DataFrame) -> Table | None:
    """Return BLEU by source length, and the length ratio."""
    columns = {bucket: ("bleu", f"{LENGTH} {bucket}") for bucket in LENGTHS}
    columns["Length ratio"] = ("length_ratio", "")
    return pivot(scores, columns, shown_value, "lines")


def by_count(scores: pd.DataFrame) -> Table | None:
    """Return how many words were found by training frequency; None if no corpus has words."""
    columns = {bucket: (WORD_ACCURACY, f"{COUNT} {bucket}") for bucket in COUNTS}
    return pivot(scores, columns, shown_value, "words")


def documents(scores: pd.DataFrame) -> Table | None:
    """Return scores by document; None if no test set says its documents."""
    columns = {MEASURES[key].label: (key, DOCUMENT) for key in ("dbleu", *SCORES)}
    return pivot(scores, columns, marked_score, "documents")


def faults(scores: pd.DataFrame) -> Table | None:
    """Return the lines with each fault that occurs, and how many references have it."""
    columns = {}
    for key in FAULT_KEYS:
        of_fault = of_measure(scores, key)
        # where a reference has the fault, its line does not count
        occurs = ((of_fault.value > 0) | (of_fault.units < of_fault.lines)).any()
        if key == ANY or occurs:
            columns[MEASURES[key].label] = (key, "")
    return pivot(scores, columns, marked_score, "references")


def shown_value(row: Any) -> str:
    """Return the value of a row of the score frame."""
    return str(row.number)


def marked_score(row: Any) -> str:
    """Return the value with its interval or deviation, and the mark of its difference."""
    return f"{row.score}{row.mark}"


def best_rows(scores: pd.DataFrame, measure: str, ordered_as: str | None = None) -> set[str]:
    """Return the names of the rows of a test set with the best score in a measure.

    Args:
        scores: Those of a test set that were computed here.
        measure: The measure.
        ordered_as: The measure that says whether lower is better, if it is another.

    Returns:
        Nothing where the floor lets none be compared, or where there is one row.
    """
    rows = of_measure(scores, measure)
    if len(rows) < 2:
        return set()
    systems = scores.drop_duplicates("row")
    is_untested = (systems.floor != "") | systems.is_too_low.astype(bool)
    untested = set(systems.row[is_untested])
    compared = set(systems.row[systems.baseline.isin(systems.row)])
    if compared and compared <= untested:
        return set()
    lower_is_better = MEASURES[ordered_as or measure].lower_is_better
    top = rows.value.min() if lower_is_better else rows.value.max()
    return set(rows.row[rows.value == top]) - untested


def _columns(
    scores: pd.DataFrame,
    measures: Sequence[str],
    costs: Sequence[Cost],
    without_difference: Sequence[str] = (),
) -> _Columns:
    """Return the columns of a test set."""
    found = _Columns()
    of_ours = ours(scores)
    published = scores[scores.published.notna()]
    for measure in measures:
        rows = of_measure(of_ours, measure)
        if rows.empty:  # COMET without a model
            continue
        best = best_rows(of_ours, measure)
        cells = {row.row: Cell(row.score, row.value, row.row in best) for row in rows.itertuples()}
        if measure == "bleu":
            cells |= _printed(published, "bleu")
            _add_variants(found, of_ours, published)
        found.add(Column(MEASURES[measure].label), cells)
        if measure not in without_difference:
            _add_differences(found, rows, measure)
    for cost in costs:
        places = of_ours.drop_duplicates("row")
        found.add(cost.column, {row.row: cost.cell(row) for row in places.itertuples()})
    by_time = _printed(published, FLOPS_BY_TIME)
    if costs and by_time:
        found.add(Column(BY_TIME), by_time)
    return found


def _add_variants(found: _Columns, scores: pd.DataFrame, published: pd.DataFrame) -> None:
    """Add a column for each variant of BLEU of the published numbers.

    Systems are scored in the same way, but not in variants that are not computed here.
    """
    for measure in published.measure.unique():
        if measure == "bleu" or measure in FURTHER:
            continue
        best = best_rows(scores, measure, ordered_as="bleu")
        cells = {
            row.row: Cell(f"{row.value:.1f}", row.value, row.row in best)
            for row in of_measure(scores, measure).itertuples()
        }
        label = f"BLEU {measure}" if measure in VARIANTS else OTHERWISE_LABEL
        found.add(Column(label), cells | _printed(published, measure))


def _add_differences(found: _Columns, rows: pd.DataFrame, measure: str) -> None:
    """Add the columns of the difference from the baseline and of the human agreement."""
    prefix = "" if measure == "bleu" else f"{MEASURES[measure].label} "
    changed = rows[rows.difference.notna()]
    if len(changed):
        cells = {row.row: Cell(row.change, row.difference) for row in changed.itertuples()}
        found.add(Column(f"{prefix}difference"), cells)
    agreed = rows[rows.agreement.notna()]
    if len(agreed):
        cells = {row.row: Cell(row.agreement_text, row.agreement) for row in agreed.itertuples()}
        found.add(Column(f"{prefix}{AGREE}"), cells)


def _printed(published: pd.DataFrame, measure: str) -> dict[str, Cell]:
    """Return the cells of published numbers, as printed."""
    rows = of_measure(published, measure)
    return {row.row: Cell(row.score, row.value) for row in rows.itertuples()}


def _assembled(found: _Columns, scores: pd.DataFrame) -> Table:
    """Return the table of these columns: published rows, then ours, with their marks."""
    kinds = {}
    for row in scores[scores.published.notna()].itertuples():
        kinds[row.row] = "published"
    of_ours = ours(scores)
    for row in of_ours.drop_duplicates("row").itertuples():
        kinds[row.row] = "external" if row.is_external else ""
    bleu = of_measure(of_ours, "bleu")
    changed = bleu[bleu.difference.notna()]
    for name in set(changed.baseline) - set(changed.row):
        kinds[name] = "baseline"
    rows = []
    for name, kind in kinds.items():
        mark = {"baseline": " (baseline)", "external": f" ({EXTERNAL})"}.get(kind, "")
        cells = {_SYSTEM: Cell(f"{name}{mark}"), **found.cells.get(name, {})}
        rows.append(Row(cells, kind))
    return Table([_SYSTEM, *found.columns], rows)


def _plain(found: _Columns, scores: pd.DataFrame) -> Table:
    """Return the table of these columns without marks of the baseline."""
    rows = []
    for row in scores.drop_duplicates("row").itertuples():
        name = displayed_name(row)
        kind = "published" if pd.notna(row.published) else ""
        rows.append(Row({_SYSTEM: Cell(name), **found.cells.get(name, {})}, kind))
    return Table([_SYSTEM, *found.columns], rows)


def _units(row: Any, unit: str) -> float:
    """Return what is counted beside the name of a test set."""
    if not unit or pd.isna(row.units):
        return 0.0
    if unit == "references":
        return float(row.lines - row.units)
    return float(row.units)
