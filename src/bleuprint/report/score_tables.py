"""The tables of scores, from the score frame: one per test set, or all test sets side by side.

Columns of scores follow from the metrics that were measured. pivot_tables.py makes the tables with
one metric or group of lines per column, and cost_columns.py those of training cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from bleuprint.report.cost_columns import FLOPS, FLOPS_BY_TIME, Cost
from bleuprint.report.score_frame import (
    ScoreRow,
    by_test_set,
    computed_scores,
    display_name,
    published_scores,
    score_rows,
    select_metric,
)
from bleuprint.report.table import Cell, Column, Row, Table
from bleuprint.scoring.human_agreement import AGREEMENT_COLUMN
from bleuprint.scoring.metrics import METRICS, SCORE_KEYS

# The head of the column of published BLEU that is computed in a way that is not implemented here.
OTHER_BLEU_LABEL = "BLEU (other variants)"
# What stands before the name of the baseline, as in sacreBLEU's tables of paired tests.
BASELINE = "Baseline: "
SYSTEM_COLUMN = Column("System", is_text=True)
# The kinds of table rows, which the HTML report uses as classes.
_PUBLISHED_KIND = "published"
_BASELINE_KIND = "baseline"


@dataclass
class TableBuilder:
    """Collects the columns of a table with one row per system.

    Attributes:
        columns: The columns after the one of names.
        cells_by_row: The cells of each row, by the row's name and their columns.
    """

    columns: list[Column] = field(default_factory=list)
    cells_by_row: dict[str, dict[Column, Cell]] = field(default_factory=dict)

    def add(self, column: Column, cells: Mapping[str, Cell]) -> None:
        """Add a column.

        Args:
            column: The column.
            cells: Its cells by the names of rows; a row that is missing has an empty cell.
        """
        self.columns.append(column)
        for row_name, cell in cells.items():
            self.cells_by_row.setdefault(row_name, {})[column] = cell

    def build(self, scores: pd.DataFrame, mark_baseline: bool) -> Table:
        """Return the table, with a row for each system and published number of these scores.

        Args:
            scores: The score frame, or its part of a test set.
            mark_baseline: Whether the name of the baseline says that it is the baseline.
        """
        baselines = _baseline_names(scores) if mark_baseline else set()
        rows = []
        for score in score_rows(scores.drop_duplicates("row_name")):
            name = display_name(score)
            kind = _PUBLISHED_KIND if score.is_published else ""
            if score.row_name in baselines:
                name = f"{BASELINE}{name}"
                kind = _BASELINE_KIND
            cells = {SYSTEM_COLUMN: Cell(name)}
            cells |= self.cells_by_row.get(score.row_name, {})
            rows.append(Row(cells, kind, is_muted=score.is_published))
        return Table([SYSTEM_COLUMN, *self.columns], rows)


def _baseline_names(scores: pd.DataFrame) -> set[str]:
    """Return the names of the rows that are compared with, and not compared themselves."""
    bleu = select_metric(computed_scores(scores), "bleu")
    compared = bleu[bleu.difference.notna()]
    return set(compared.baseline) - set(compared.row_name)


def score_table(
    scores: pd.DataFrame,
    metrics: Sequence[str] = ("bleu",),
    costs: Sequence[Cost] = (FLOPS,),
    metrics_without_difference: Sequence[str] = (),
) -> Table:
    """Return the table of a test set: a row per system, below the published numbers.

    Args:
        scores: The part of the score frame of one test set.
        metrics: The metrics to show; the best system in each is marked. Published numbers are
            shown only if BLEU is one of them. Each way in which they were computed has its own
            column, where the systems are scored in the same way.
        costs: The columns of training cost.
        metrics_without_difference: The metrics that have no columns of the difference from the
            baseline and of the human agreement.
    """
    if "bleu" not in metrics:
        scores = computed_scores(scores)
    builder = TableBuilder()
    _add_columns(builder, scores, metrics, costs, metrics_without_difference)
    return builder.build(scores, mark_baseline=True)


def tables_by_test_set(
    scores: pd.DataFrame, metrics: Sequence[str] = ("bleu",), costs: Sequence[Cost] = (FLOPS,)
) -> dict[str, Table]:
    """Return the table of each test set, by the name of the task and the test set.

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.
        metrics: The metrics to show.
        costs: The columns of training cost.
    """
    tables = {}
    for task, test, scores_of_test in by_test_set(scores):
        tables[f"{task}, {test}"] = score_table(scores_of_test, metrics, costs)
    return tables


def wide_bleu_table(scores: pd.DataFrame) -> Table:
    """Return the BLEU of all test sets side by side, each as a group of columns.

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.
    """
    wide = TableBuilder()
    for task, test, scores_of_test in by_test_set(scores):
        builder = TableBuilder()
        _add_columns(builder, scores_of_test, ["bleu"], [FLOPS])
        for column in builder.columns:
            cells = {}
            for row_name, cells_of_row in builder.cells_by_row.items():
                if column in cells_of_row:
                    cells[row_name] = cells_of_row[column]
            wide.add(replace(column, group=f"{task}, {test}"), cells)
    return wide.build(scores, mark_baseline=True)


def measured_scores(scores: pd.DataFrame) -> list[str]:
    """Return the keys of the metrics that were measured and have a table, BLEU first."""
    measured = set(scores.metric)
    return [key for key in SCORE_KEYS if key in measured]


def best_rows(scores: pd.DataFrame, metric: str, ordered_as: str | None = None) -> set[str]:
    """Return the names of the rows with the best score in a metric.

    Args:
        scores: The part of the score frame of one test set, without published numbers.
        metric: The key of the metric, such as `bleu`.
        ordered_as: The metric that says whether lower is better, if it is another one.

    Returns:
        The names; none if there is only one row, or if no difference could be tested, since then
        the best score says little.
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
    best_value = rows.value.min() if lower_is_better else rows.value.max()
    return set(rows.row_name[rows.value == best_value]) - untested


def _add_columns(
    builder: TableBuilder,
    scores: pd.DataFrame,
    metrics: Sequence[str],
    costs: Sequence[Cost],
    metrics_without_difference: Sequence[str] = (),
) -> None:
    """Add the columns of a test set: for each metric score and difference, then the costs."""
    computed = computed_scores(scores)
    published = published_scores(scores)
    for metric in metrics:
        rows = select_metric(computed, metric)
        if rows.empty:  # A metric with a model, such as COMET, is not always measured.
            continue
        best = best_rows(computed, metric)
        cells = {}
        for row in score_rows(rows):
            cells[row.row_name] = Cell(row.score_text, row.value, row.row_name in best)
        if metric == "bleu":
            cells |= _printed_cells(published, "bleu")
            _add_bleu_variants(builder, computed, published)
        builder.add(Column(METRICS[metric].label), cells)
        if metric not in metrics_without_difference:
            _add_differences(builder, score_rows(rows), metric)
    systems = score_rows(computed.drop_duplicates("row_name"))
    for cost in costs:
        builder.add(cost.column, {row.row_name: cost.cell(row) for row in systems})
    published_costs = published[published.training_flops_by_time.notna()]
    if costs and not published_costs.empty:
        cost_cells = {}
        for row in score_rows(published_costs):
            cost_cells[row.row_name] = FLOPS_BY_TIME.cell(row)
        builder.add(FLOPS_BY_TIME.column, cost_cells)


def _add_bleu_variants(
    builder: TableBuilder, computed: pd.DataFrame, published: pd.DataFrame
) -> None:
    """Add a column for each variant of BLEU among the published numbers of a test set.

    The systems are scored in the same way, unless the variant is not implemented here.
    """
    for metric in published.metric.unique():
        is_implemented = metric in METRICS
        if is_implemented and METRICS[metric].kind != "variant":
            continue
        best = best_rows(computed, metric, ordered_as="bleu")
        cells = {}
        for row in score_rows(select_metric(computed, metric)):
            cells[row.row_name] = Cell(f"{row.value:.1f}", row.value, row.row_name in best)
        cells |= _printed_cells(published, metric)
        label = f"BLEU {metric}" if is_implemented else OTHER_BLEU_LABEL
        builder.add(Column(label), cells)


def _add_differences(builder: TableBuilder, rows: Sequence[ScoreRow], metric: str) -> None:
    """Add the columns of the difference from the baseline and of the human agreement.

    Args:
        builder: The table; a column in which no row has a value is not added.
        rows: The scores of a test set in one metric.
        metric: The key of the metric, such as `bleu`.
    """
    label = METRICS[metric].label
    difference_cells = {}
    agreement_cells = {}
    for row in rows:
        if pd.notna(row.difference):
            difference_cells[row.row_name] = Cell(row.difference_text, row.difference)
        if pd.notna(row.agreement):
            agreement_cells[row.row_name] = Cell(row.agreement_text, row.agreement)
    if difference_cells:
        builder.add(Column(f"Δ {label}"), difference_cells)
    if agreement_cells:
        head = AGREEMENT_COLUMN if metric == "bleu" else f"{label} {AGREEMENT_COLUMN}"
        builder.add(Column(head), agreement_cells)


def _printed_cells(published: pd.DataFrame, metric: str) -> dict[str, Cell]:
    """Return the cells of published numbers in a metric, by the names of rows."""
    cells = {}
    for row in score_rows(select_metric(published, metric)):
        cells[row.row_name] = Cell(row.score_text, row.value)
    return cells
