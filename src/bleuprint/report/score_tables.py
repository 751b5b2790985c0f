"""The tables of scores, from the score frame: one per test set, or all test sets side by side.

Columns of scores follow from the metrics that were measured. pivot_tables.py makes the tables with
one metric or group of lines per column, and cost_columns.py the columns of training cost.
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
from bleuprint.scoring.metrics import METRICS, SCORE_KEYS, own_keys

# The head of the column of published BLEU that is computed in a way that is not implemented here.
OTHER_BLEU_LABEL = "BLEU (other variants)"
# What stands before the name of the baseline, as in sacreBLEU's tables of paired tests.
BASELINE_PREFIX = "Baseline: "
SYSTEM_COLUMN = Column("System", is_text=True)
# The kinds of table rows, which the HTML report uses as classes.
_PUBLISHED_KIND = "published"
_BASELINE_KIND = "baseline"


@dataclass
class TableBuilder:
    """Builds a table column by column, with a row for each system.

    A system need not have a value in each column, for example if a metric was not measured. The
    finished table shows a dash there.

    Attributes:
        columns: The columns so far, without the first one, which contains the names of systems.
        cells_by_row: For each row, by its name, the cells of the columns that it has.
    """

    columns: list[Column] = field(default_factory=list)
    cells_by_row: dict[str, dict[Column, Cell]] = field(default_factory=dict)

    def add(self, column: Column, cells: Mapping[str, Cell]) -> None:
        """Add a column to the right of the table.

        Args:
            column: The head of the column.
            cells: Its cells by the name of the row, such as `base`. Some rows may have none.
        """
        self.columns.append(column)
        for row_name, cell in cells.items():
            self.cells_by_row.setdefault(row_name, {})[column] = cell

    def build(self, scores: pd.DataFrame, marks_baseline: bool) -> Table:
        """Return the table, with a row for each system and each published number.

        Args:
            scores: Scores of the systems of the table, which decide its rows and their order.
            marks_baseline: Whether to show the baseline as `Baseline: base`.
        """
        baselines = _baseline_names(scores) if marks_baseline else set()
        rows = []
        for score in score_rows(scores.drop_duplicates("row_name")):
            name = display_name(score)
            kind = _PUBLISHED_KIND if score.is_published else ""
            if score.row_name in baselines:
                name = f"{BASELINE_PREFIX}{name}"
                kind = _BASELINE_KIND
            cells = {SYSTEM_COLUMN: Cell(name)}
            cells |= self.cells_by_row.get(score.row_name, {})
            rows.append(Row(cells, kind, is_muted=score.is_published))
        return Table([SYSTEM_COLUMN, *self.columns], rows)


def _baseline_names(scores: pd.DataFrame) -> set[str]:
    """Return the names of the rows that tables mark as baselines.

    They are the systems that others are compared with, unless they are compared with another
    system themselves.

    Args:
        scores: The scores of the systems.
    """
    bleu = select_metric(computed_scores(scores), "bleu")
    compared = bleu[bleu.difference.notna()]
    return set(compared.baseline) - set(compared.row_name)


def score_table(
    scores: pd.DataFrame,
    metrics: Sequence[str] = ("bleu",),
    costs: Sequence[Cost] = (FLOPS,),
    metrics_without_difference: Sequence[str] = (),
) -> Table:
    """Return the table of scores on one test set, with a row for each system.

    If BLEU is among the metrics, published numbers stand above the systems. A published BLEU that
    was computed in another way, such as on tokenized text, has a column of its own, in which the
    systems are scored in that way, too.

    Args:
        scores: All scores on the test set, with the columns of `ScoreRow`.
        metrics: The metrics to show; the best system in each is bold.
        costs: The columns of training cost.
        metrics_without_difference: The metrics that are shown without the difference from the
            baseline and the human agreement.
    """
    if "bleu" not in metrics:
        # Publications report BLEU, so their rows would be empty.
        scores = computed_scores(scores)
    builder = TableBuilder()
    _add_columns(builder, scores, metrics, costs, metrics_without_difference)
    return builder.build(scores, marks_baseline=True)


def tables_by_test_set(
    scores: pd.DataFrame, metrics: Sequence[str] = ("bleu",), costs: Sequence[Cost] = (FLOPS,)
) -> dict[str, Table]:
    """Return a table of scores for each test set, by its title, such as `wmt14, newstest2014`.

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
    """Return one table with the BLEU and the training FLOPs of all test sets side by side.

    It is meant for LaTeX. The columns of a test set form a group, with its name above them.

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.
    """
    wide_table = TableBuilder()
    for task, test, scores_of_test in by_test_set(scores):
        table_of_test = TableBuilder()
        _add_columns(table_of_test, scores_of_test, ["bleu"], [FLOPS])
        # Copy each column with its cells, but put it into the group of its test set.
        for column in table_of_test.columns:
            cells = {}
            for row_name, cells_of_row in table_of_test.cells_by_row.items():
                if column in cells_of_row:
                    cells[row_name] = cells_of_row[column]
            wide_table.add(replace(column, group=f"{task}, {test}"), cells)
    return wide_table.build(scores, marks_baseline=True)


def measured_scores(scores: pd.DataFrame) -> list[str]:
    """Return the keys of the metrics that were measured and have a table, BLEU first."""
    measured = set(scores.metric)
    built_in = [key for key in SCORE_KEYS if key in measured]
    return [*built_in, *own_keys(scores.metric)]


def best_row_names(scores: pd.DataFrame, metric: str, ordered_as: str | None = None) -> set[str]:
    """Return the names of the rows whose score tables show in bold: the best ones in a metric.

    A best score says little if it cannot be tested whether it is really better, for example on a
    test set with few sentences. So no score is bold if no system on the test set can be tested, and
    the score of a system that cannot be tested is never bold.

    Args:
        scores: All scores on one test set, without published numbers.
        metric: The key of the metric, such as `bleu`.
        ordered_as: A metric with the same direction: it says whether lower scores are better.
            Required if `metric` is not in `METRICS`; by default `metric` itself.
    """
    rows = select_metric(scores, metric)
    if len(rows) < 2:
        return set()
    systems = scores.drop_duplicates("row_name")
    cannot_be_tested = (systems.why_untested != "") | systems.matches_too_few_4_grams
    untested_names = set(systems.row_name[cannot_be_tested])
    has_baseline = systems.baseline.isin(systems.row_name)
    compared_names = set(systems.row_name[has_baseline])
    is_nothing_tested = bool(compared_names) and compared_names <= untested_names
    if is_nothing_tested:
        return set()
    lower_is_better = METRICS[ordered_as or metric].lower_is_better
    best_value = rows.value.min() if lower_is_better else rows.value.max()
    best_names = set(rows.row_name[rows.value == best_value])
    return best_names - untested_names


def _add_columns(
    builder: TableBuilder,
    scores: pd.DataFrame,
    metrics: Sequence[str],
    costs: Sequence[Cost],
    metrics_without_difference: Sequence[str] = (),
) -> None:
    """Add the columns of a test set to a table: for each metric the scores, then training costs.

    Next to the scores in a metric stand their differences from the baseline.

    Args:
        builder: The table that the columns are added to.
        scores: All scores on the test set, with the columns of `ScoreRow`.
        metrics: The metrics to show.
        costs: The columns of training cost.
        metrics_without_difference: The metrics that are shown without the difference from the
            baseline.
    """
    computed = computed_scores(scores)
    published = published_scores(scores)
    for metric in metrics:
        scores_in_metric = select_metric(computed, metric)
        if scores_in_metric.empty:  # For example COMET, which is measured only on request.
            continue
        rows = score_rows(scores_in_metric)
        best_names = best_row_names(computed, metric)
        cells = {}
        for row in rows:
            is_best = row.row_name in best_names
            cells[row.row_name] = Cell(row.score_text, row.value, is_bold=is_best)
        if metric == "bleu":
            cells |= _published_cells(published, "bleu")
            # The columns of published variants of BLEU stand to the left of BLEU itself.
            _add_bleu_variants(builder, computed, published)
        builder.add(Column(METRICS[metric].label), cells)
        if metric not in metrics_without_difference:
            _add_differences(builder, rows, metric)
    _add_costs(builder, computed, published, costs)


def _add_costs(
    builder: TableBuilder, computed: pd.DataFrame, published: pd.DataFrame, costs: Sequence[Cost]
) -> None:
    """Add the columns of training cost to a table: of the systems, then of published systems.

    The cost of published systems needs a column of its own. For the systems trained here, floating-
    point operations are counted; for published systems, they are estimated from the training time.

    Args:
        builder: The table that the columns are added to.
        computed: The scores of the systems, which contain their training costs.
        published: The published numbers.
        costs: The columns of the systems' costs. Without any, the table shows no published costs
            either.
    """
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
    """Add a column for each variant of BLEU that a publication reports, such as tokenized BLEU.

    Values of different variants cannot be compared. So if a variant is implemented here, its column
    also shows the systems of this experiment, scored in the same way.

    Args:
        builder: The table that the columns are added to.
        computed: The scores of the systems on a test set.
        published: The published numbers on the test set.
    """
    for metric in published.metric.unique():
        is_implemented = metric in METRICS
        if is_implemented and METRICS[metric].kind != "variant":
            continue  # BLEU itself, or a loss: other columns show them.
        best_names = best_row_names(computed, metric, ordered_as="bleu")
        cells = {}
        for row in score_rows(select_metric(computed, metric)):
            is_best = row.row_name in best_names
            cells[row.row_name] = Cell(f"{row.value:.1f}", row.value, is_bold=is_best)
        cells |= _published_cells(published, metric)
        label = f"BLEU {metric}" if is_implemented else OTHER_BLEU_LABEL
        builder.add(Column(label), cells)


def _add_differences(builder: TableBuilder, rows: Sequence[ScoreRow], metric: str) -> None:
    """Add two columns: the difference from the baseline, and the human agreement.

    Human agreement estimates how often people prefer the system with the better score. A column is
    added only if some system has a value in it.

    Args:
        builder: The table that the columns are added to.
        rows: The scores on a test set in one metric.
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


def _published_cells(published: pd.DataFrame, metric: str) -> dict[str, Cell]:
    """Return the cells of published numbers, by the name of the row.

    They show the numbers as the publication prints them.

    Args:
        published: The published numbers on a test set.
        metric: The key of the metric, such as `bleu`.
    """
    cells = {}
    for row in score_rows(select_metric(published, metric)):
        cells[row.row_name] = Cell(row.score_text, row.value)
    return cells
