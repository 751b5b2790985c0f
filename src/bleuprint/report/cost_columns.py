"""The columns of training cost, and the table of them.

To add a column, list it in `COUNTED_COSTS` or `MEASURED_COSTS` below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bleuprint.report.score_frame import ScoreRow, computed_scores, score_rows
from bleuprint.report.table import DASH_CELL, Cell, Column, Row, Table
from bleuprint.runtime.wording import duration


def _power(number: float) -> str:
    """Return a number with an exponent, such as `3.3e18`."""
    return f"{number:.1e}".replace("e+", "e")


def _millions(number: float) -> str:
    return f"{number / 1e6:,.2f}M"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _gigabytes(size_in_bytes: float) -> str:
    return f"{size_in_bytes / 1e9:.1f} GB"


def _percentage(share: float) -> str:
    return f"{share:.1%}"


@dataclass(frozen=True)
class Cost:
    """A kind of training cost, such as FLOPs or training time, and how tables show it.

    Attributes:
        label: The head of its column.
        field: The field of `ScoreRow` with its value, such as `train_seconds`.
        form: A function that returns the text of a value.
        is_text: Whether the values are texts, and not numbers.
    """

    label: str
    field: str
    form: Callable[[Any], str]
    is_text: bool = False

    @property
    def column(self) -> Column:
        """The column of a table that shows this cost."""
        return Column(self.label, is_text=self.is_text)

    def cell(self, row: ScoreRow) -> Cell:
        """Return the cell that shows this cost of a system, such as its training time.

        It is a dash if the cost is not known, for example of an external system. The HTML report
        sorts a column of numbers by the values, and not by the texts.

        Args:
            row: Any score of the system; each of them also contains all its costs.
        """
        value = getattr(row, self.field)  # Such as `row.train_seconds`.
        if pd.isna(value):
            return DASH_CELL
        value_to_sort_by = None if self.is_text else float(value)
        return Cell(self.form(value), value_to_sort_by)


PARAMETERS = Cost("Parameters", "parameters", _millions)
FLOPS = Cost("FLOPs", "training_flops", _power)
# The training cost of published systems, whose operations nobody counted.
FLOPS_BY_TIME = Cost("FLOPs, by time", "training_flops_by_time", _power)
TIME = Cost("Training time", "train_seconds", duration)
# Costs that repeat exactly.
COUNTED_COSTS = (
    PARAMETERS,
    Cost("Updates", "updates", _count),
    Cost("Target tokens", "target_tokens", _millions),
    FLOPS,
)
# Costs that depend on the machine.
MEASURED_COSTS = (
    TIME,
    Cost("Tokens/s", "train_tokens_per_second", _count),
    Cost("Memory", "peak_memory", _gigabytes),
    Cost("Seconds x devices x sustained FLOPS", "training_flops_by_time", _power),
    Cost("MFU", "mfu", _percentage),
    Cost("Device", "device", str, is_text=True),
)


def costs_table(scores: pd.DataFrame, costs: Sequence[Cost]) -> Table:
    """Return the table of training costs, with a row for each system on each corpus.

    With several seeds, costs are means over them.

    Args:
        scores: The data frame of all scores, which also contains the costs of each system.
        costs: The kinds of cost to show, one per column.
    """
    system_column = Column("System", is_text=True)
    corpus_column = Column("Corpus", is_text=True)
    computed = computed_scores(scores)
    # The scores of a system on all test sets and metrics contain the same costs, so one is enough.
    trained = computed[computed.is_trained].drop_duplicates(["system", "corpus"])
    rows = []
    for row in score_rows(trained):
        cells = {system_column: Cell(row.system), corpus_column: Cell(row.corpus)}
        for cost in costs:
            cells[cost.column] = cost.cell(row)
        rows.append(Row(cells))
    cost_columns = [cost.column for cost in costs]
    return Table([system_column, corpus_column, *cost_columns], rows)
