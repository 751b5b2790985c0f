"""A table of text with its columns and rows; render.py and terminal.py print it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

# The text of a cell without a value.
NONE = "–"
# The kind of a row that names the rows below it.
GROUP = "group"


@dataclass(frozen=True)
class Column:
    """The head of a column.

    Attributes:
        label: The text of the head.
        group: What LaTeX shows above adjacent columns that share it.
        is_text: Whether the cells are left-aligned text, and not numbers.
    """

    label: str
    group: str = ""
    is_text: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What is shown.
        value: The number behind the text, by which the HTML report sorts; None sorts last.
        is_best: Whether the cell is bold, because no row that is scored here is better.
    """

    text: str
    value: float | None = None
    is_best: bool = False


EMPTY = Cell(NONE)
_BLANK = Cell("")


@dataclass(frozen=True)
class Row:
    """The cells of a row by their columns.

    Attributes:
        cells: A column that is missing is a dash; in a row that names a group it is blank.
        kind: baseline, GROUP, empty, or another class of rows in the HTML report.
        is_muted: Whether the row is set apart from the other ones, in softer type.
    """

    cells: Mapping[Column, Cell]
    kind: str = ""
    is_muted: bool = False

    def cell(self, column: Column) -> Cell:
        """Return the cell of a column."""
        return self.cells.get(column, _BLANK if self.kind == GROUP else EMPTY)

    def has_value(self, columns: Iterable[Column]) -> bool:
        """Return whether the row has a value in one of these columns."""
        return any(self.cell(column).text not in ("", NONE) for column in columns)


@dataclass(frozen=True)
class Table:
    """A table, ready to be rendered; its first column names the rows."""

    columns: Sequence[Column]
    rows: Sequence[Row]

    def column(self, label: str) -> Column:
        """Return the first column with this label."""
        return next(column for column in self.columns if column.label == label)

    @property
    def text_places(self) -> list[int]:
        """The places of the columns of text, counted from 0."""
        return [place for place, column in enumerate(self.columns) if column.is_text]

    def name_span(self, row: Row) -> int:
        """Return how many columns the name of a group covers: its own, and blank ones after it."""
        span = 1
        while span < len(self.columns) and not row.cell(self.columns[span]).text:
            span += 1
        return span

    def texts(self, row: Row) -> list[str]:
        """Return the texts of the cells of a row, in the order of the columns."""
        return [row.cell(column).text for column in self.columns]

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns, except the first, in which no row has a value."""
        filled = list(self.columns[:1])
        for column in self.columns[1:]:
            if any(row.has_value([column]) for row in self.rows):
                filled.append(column)
        return replace(self, columns=filled)

    def without(self, labels: Iterable[str]) -> "Table":
        """Return the table without the columns of these labels."""
        left_out = set(labels)
        columns = [column for column in self.columns if column.label not in left_out]
        return replace(self, columns=columns)


def table_of(
    text_heads: Sequence[str], number_heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    """Return a table with columns of text, then columns of numbers, from texts.

    Args:
        text_heads: The heads of the columns of text.
        number_heads: The heads of the columns of numbers.
        rows: For each row its cells, in the order of the heads.
    """
    columns = [Column(head, is_text=True) for head in text_heads]
    columns += [Column(head) for head in number_heads]
    table_rows = []
    for texts in rows:
        cells = {
            column: Cell(text) for column, text in zip(columns, texts, strict=True) if text != NONE
        }
        table_rows.append(Row(cells))
    return Table(columns, table_rows)


def stacked(
    tables: Mapping[str, Table], title_cells: Mapping[str, Mapping[Column, Cell]] | None = None
) -> Table:
    """Return the rows of several tables below each other, in one table.

    Columns that are equal become one. Rows without a number and columns without a value are left
    out.

    Args:
        tables: The tables by their names. A title row, whose first cell is the name in bold, comes
            before the rows of each table.
        title_cells: Cells that a title row has besides the name, by the name of the table.
    """
    columns: dict[Column, None] = {}
    rows: list[Row] = []
    for name, table in tables.items():
        columns |= dict.fromkeys(table.columns)
        numbers = [column for column in table.columns if not column.is_text]
        filled = [row for row in table.rows if row.has_value(numbers)]
        if not filled:
            continue
        title = {table.columns[0]: Cell(name, is_best=True)}
        if title_cells is not None:
            title |= title_cells.get(name, {})
        rows.append(Row(title, GROUP))
        rows += filled
    return Table(list(columns), rows).without_empty_columns()


def parted(table: Table, label: str) -> dict[str, Table]:
    """Return a table for each text in a column, without this column."""
    column = table.column(label)
    rows: dict[str, list[Row]] = {}
    for row in table.rows:
        rows.setdefault(row.cell(column).text, []).append(row)
    rest = table.without([label])
    return {text: replace(rest, rows=of_text) for text, of_text in rows.items()}
