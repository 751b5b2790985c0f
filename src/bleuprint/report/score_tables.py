"""Tables of the score frame: `table` for a test set, `pivot` for all of them, `costs` of trainings.

Columns of scores follow from the metrics that were measured; docs/contributing.md shows how to
add one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from bleuprint.report.score_frame import (
    by_test_set,
    computed_scores,
    display_name,
    published_scores,
    select_metric,
)
from bleuprint.report.table import EMPTY, Cell, Column, Row, Table, stacked
from bleuprint.runtime.wording import duration
from bleuprint.scoring.breakdown import (
    COUNT_BUCKETS,
    COUNT_GROUP,
    LENGTH_BUCKETS,
    LENGTH_GROUP,
    WORD_ACCURACY,
)
from bleuprint.scoring.human_agreement import AGREEMENT_COLUMN
from bleuprint.scoring.metrics import ERROR_KEYS, METRICS, SCORE_KEYS
from bleuprint.scoring.output_errors import ANY_ERROR
from bleuprint.scoring.reference_loss import LOSSES

DOCUMENT = "document"
OTHER_BLEU_LABEL = "BLEU (other variants)"
# What stands before the name of the baseline, as in sacreBLEU's tables of paired tests.
BASELINE = "Baseline: "
LOSS_NOTE = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)
_SYSTEM = Column("System", is_text=True)
# The kind of the rows of published numbers.
_PUBLISHED = "published"


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
BY_TIME = Cost("FLOPs, by time", "training_flops_by_time", _power)
TIME = Cost("Training time", "train_seconds", duration)
COUNTED_COSTS = (
    PARAMETERS,
    Cost("Updates", "updates", _count),
    Cost("Target tokens", "target_tokens", _millions),
    FLOPS,
)
MEASURED_COSTS = (
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
    metrics: Sequence[str] = ("bleu",),
    costs: Sequence[Cost] = (FLOPS,),
    without_difference: Sequence[str] = (),
) -> Table:
    """Return the scores of a test set: systems down the side, published numbers above them.

    Args:
        scores: Those of one test set. Published numbers are shown beside BLEU only, in a
            column for each way in which BLEU was counted; the systems are scored in the same way
            there.
        metrics: The columns; the best system of each is marked.
        costs: Further columns.
        without_difference: The metrics without columns of the difference from the baseline and of
            the human agreement.
    """
    if "bleu" not in metrics:
        scores = computed_scores(scores)
    return _assembled(_columns(scores, metrics, costs, without_difference), scores)


def by_test(
    scores: pd.DataFrame, metrics: Sequence[str] = ("bleu",), costs: Sequence[Cost] = (FLOPS,)
) -> dict[str, Table]:
    """Return the `table` of each test set by the name of the task and the test set."""
    return {
        f"{task}, {test}": table(of_test, metrics, costs)
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
    """Return all test sets below each other, with a column for each metric and group of lines.

    Args:
        scores: The score frame.
        columns: By the head of each column its metric and group of lines.
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
        for head, (metric, group) in columns.items():
            rows = list(select_metric(of_test, metric, group).itertuples(index=False))
            if not rows:
                continue
            column = Column(head)
            found.add(column, {display_name(row): Cell(text(row), row.value) for row in rows})
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
    of_trained = computed_scores(scores)[computed_scores(scores).is_trained]
    for row in of_trained.drop_duplicates(["system", "corpus"]).itertuples(index=False):
        cells = {_SYSTEM: Cell(row.system), corpus: Cell(row.corpus)}
        cells |= {cost.column: cost.cell(row) for cost in costs}
        rows.append(Row(cells))
    return Table([_SYSTEM, corpus, *(cost.column for cost in costs)], rows)


def measured_scores(scores: pd.DataFrame) -> list[str]:
    """Return the scores that have a table: all that were measured."""
    measured = set(scores.metric)
    return [key for key in SCORE_KEYS if key in measured]


def losses(scores: pd.DataFrame) -> Table | None:
    """Return loss and perplexity of the references, below those of published systems."""
    columns = {metric.label: (metric.key, "") for metric in LOSSES}
    return pivot(scores, columns, shown_value)


def by_length(scores: pd.DataFrame) -> Table | None:
    """Return BLEU by source length, and the length ratio."""
    columns = {bucket: ("bleu", f"{LENGTH_GROUP} {bucket}") for bucket in LENGTH_BUCKETS}
    columns["Length ratio"] = ("length_ratio", "")
    return pivot(scores, columns, shown_value, "lines")


def by_count(scores: pd.DataFrame) -> Table | None:
    """Return how many words were found by training frequency; None if no corpus has words."""
    columns = {bucket: (WORD_ACCURACY, f"{COUNT_GROUP} {bucket}") for bucket in COUNT_BUCKETS}
    return pivot(scores, columns, shown_value, "words")


def documents(scores: pd.DataFrame) -> Table | None:
    """Return scores by document; None if no test set says its documents."""
    columns = {METRICS[key].label: (key, DOCUMENT) for key in ("dbleu", *SCORE_KEYS)}
    return pivot(scores, columns, marked_score, "documents")


def errors(scores: pd.DataFrame) -> Table | None:
    """Return the lines with each error that occurs, and how many references have it."""
    columns = {}
    for key in ERROR_KEYS:
        of_error = select_metric(scores, key)
        # where a reference has the error, its line does not count
        occurs = ((of_error.value > 0) | (of_error.units < of_error.lines)).any()
        if key == ANY_ERROR or occurs:
            columns[METRICS[key].label] = (key, "")
    return pivot(scores, columns, marked_score, "references")


def shown_value(row: Any) -> str:
    """Return the value of a row of the score frame."""
    return str(row.value_text)


def marked_score(row: Any) -> str:
    """Return the value with its interval or deviation, and the mark of its difference."""
    return f"{row.score_text}{row.mark}"


def best_rows(scores: pd.DataFrame, metric: str, ordered_as: str | None = None) -> set[str]:
    """Return the names of the rows of a test set with the best score in a metric.

    Args:
        scores: Those of a test set that were computed here.
        metric: The metric.
        ordered_as: The metric that says whether lower is better, if it is another.

    Returns:
        Nothing where the floor lets none be compared, or where there is one row.
    """
    rows = select_metric(scores, metric)
    if len(rows) < 2:
        return set()
    systems = scores.drop_duplicates("row_name")
    is_untested = (systems.why_untested != "") | systems.is_too_low
    untested = set(systems.row_name[is_untested])
    compared = set(systems.row_name[systems.baseline.isin(systems.row_name)])
    if compared and compared <= untested:
        return set()
    lower_is_better = METRICS[ordered_as or metric].lower_is_better
    top = rows.value.min() if lower_is_better else rows.value.max()
    return set(rows.row_name[rows.value == top]) - untested


def _columns(
    scores: pd.DataFrame,
    metrics: Sequence[str],
    costs: Sequence[Cost],
    without_difference: Sequence[str] = (),
) -> _Columns:
    """Return the columns of a test set."""
    found = _Columns()
    of_ours = computed_scores(scores)
    of_others = published_scores(scores)
    for metric in metrics:
        rows = select_metric(of_ours, metric)
        if rows.empty:  # a metric of a model, without one
            continue
        best = best_rows(of_ours, metric)
        cells = {
            row.row_name: Cell(row.score_text, row.value, row.row_name in best)
            for row in rows.itertuples()
        }
        if metric == "bleu":
            cells |= _printed_cells(of_others, "bleu")
            _add_variants(found, of_ours, of_others)
        found.add(Column(METRICS[metric].label), cells)
        if metric not in without_difference:
            _add_differences(found, rows, metric)
    for cost in costs:
        places = of_ours.drop_duplicates("row_name")
        found.add(cost.column, {row.row_name: cost.cell(row) for row in places.itertuples()})
    by_time = of_others[of_others.training_flops_by_time.notna()]
    if costs and len(by_time):
        found.add(BY_TIME.column, {row.row_name: BY_TIME.cell(row) for row in by_time.itertuples()})
    return found


def _add_variants(found: _Columns, scores: pd.DataFrame, of_others: pd.DataFrame) -> None:
    """Add a column for each variant of BLEU of the published numbers.

    Systems are scored in the same way, but not in variants that are not computed here.
    """
    for metric in of_others.metric.unique():
        is_computed_here = metric in METRICS
        if is_computed_here and METRICS[metric].kind != "variant":
            continue
        best = best_rows(scores, metric, ordered_as="bleu")
        cells = {
            row.row_name: Cell(f"{row.value:.1f}", row.value, row.row_name in best)
            for row in select_metric(scores, metric).itertuples()
        }
        label = f"BLEU {metric}" if is_computed_here else OTHER_BLEU_LABEL
        found.add(Column(label), cells | _printed_cells(of_others, metric))


def _add_differences(found: _Columns, rows: pd.DataFrame, metric: str) -> None:
    """Add the columns of the difference from the baseline and of the human agreement."""
    label = METRICS[metric].label
    changed = rows[rows.difference.notna()]
    if len(changed):
        cells = {
            row.row_name: Cell(row.difference_text, row.difference) for row in changed.itertuples()
        }
        found.add(Column(f"Δ {label}"), cells)
    agreed = rows[rows.agreement.notna()]
    if len(agreed):
        cells = {
            row.row_name: Cell(row.agreement_text, row.agreement) for row in agreed.itertuples()
        }
        head = AGREEMENT_COLUMN if metric == "bleu" else f"{label} {AGREEMENT_COLUMN}"
        found.add(Column(head), cells)


def _printed_cells(scores: pd.DataFrame, metric: str) -> dict[str, Cell]:
    """Return the cells of published numbers, as printed."""
    rows = select_metric(scores, metric)
    return {row.row_name: Cell(row.score_text, row.value) for row in rows.itertuples()}


def _assembled(found: _Columns, scores: pd.DataFrame) -> Table:
    """Return the table of these columns: published rows, then ours, with their marks."""
    bleu = select_metric(computed_scores(scores), "bleu")
    changed = bleu[bleu.difference.notna()]
    baselines = set(changed.baseline) - set(changed.row_name)
    rows = []
    for row in scores.drop_duplicates("row_name").itertuples():
        name = display_name(row)
        kind = _PUBLISHED if row.is_published else ""
        if row.row_name in baselines:
            name = f"{BASELINE}{name}"
            kind = "baseline"
        cells = {_SYSTEM: Cell(name), **found.cells.get(row.row_name, {})}
        rows.append(Row(cells, kind, is_muted=row.is_published))
    return Table([_SYSTEM, *found.columns], rows)


def _plain(found: _Columns, scores: pd.DataFrame) -> Table:
    """Return the table of these columns without marks of the baseline."""
    rows = []
    for row in scores.drop_duplicates("row_name").itertuples():
        name = display_name(row)
        kind = _PUBLISHED if row.is_published else ""
        cells = {_SYSTEM: Cell(name), **found.cells.get(name, {})}
        rows.append(Row(cells, kind, is_muted=row.is_published))
    return Table([_SYSTEM, *found.columns], rows)


def _units(row: Any, unit: str) -> float:
    """Return what is counted beside the name of a test set."""
    if not unit or pd.isna(row.units):
        return 0.0
    if unit == "references":
        return float(row.lines - row.units)
    return float(row.units)
