"""A table of texts, independent of the format that it is printed in.

A `Table` has columns and rows, and a `Row` has a `Cell` for each column that it has a value in.
render.py prints a table as Markdown and LaTeX, terminal.py prints it on a terminal, and
page/templates/table.html.j2 shows it in the HTML report.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

# The text of a cell without a value.
DASH = "–"
# The kind of a title row. It names the rows below it, which form a group with this CSS class.
TITLE_ROW = "group"


@dataclass(frozen=True)
class Column:
    """The head of a table column, and the key by which a row stores its cell in this column.

    Attributes:
        label: The text of the head.
        group: The text above this column and its neighbors with the same group, in LaTeX.
        is_text: Whether the cells are left-aligned text; otherwise they are right-aligned numbers.
    """

    label: str
    group: str = ""
    is_text: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: The text of the cell, such as `31.1 [30.1, 33.1]`.
        value: The number behind the text, by which the HTML report sorts; None sorts last.
        is_bold: Whether the cell is printed in bold, as the best score of its column is.
    """

    text: str
    value: float | None = None
    is_bold: bool = False


# What a row shows in a column in which it has no cell. Title rows show nothing there.
DASH_CELL = Cell(DASH)
_BLANK_CELL = Cell("")


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        cells: The cells of the row by their columns. In a column without a cell, the row shows a
            dash, and a title row shows nothing.
        kind: The CSS class of the row in the HTML report, such as `baseline`; `TITLE_ROW` for a
            row that names the rows below it; empty for other rows.
        is_muted: Whether the row is printed in softer type, as published numbers are.
    """

    cells: Mapping[Column, Cell]
    kind: str = ""
    is_muted: bool = False

    def cell(self, column: Column) -> Cell:
        """Return the cell of this row in a column.

        If the row has no cell there, the result shows a dash, or nothing in a title row.
        """
        missing_cell = _BLANK_CELL if self.kind == TITLE_ROW else DASH_CELL
        return self.cells.get(column, missing_cell)

    def has_text(self, columns: Iterable[Column]) -> bool:
        """Return whether this row has a value in any of these columns: more than a dash."""
        return any(self.cell(column).text not in ("", DASH) for column in columns)


@dataclass(frozen=True)
class Table:
    """A table, ready to be printed as Markdown, LaTeX, HTML or on a terminal.

    Attributes:
        columns: The columns; the first one names the rows.
        rows: The rows.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]

    def column(self, label: str) -> Column:
        """Return the first column with this label."""
        return next(column for column in self.columns if column.label == label)

    @property
    def text_column_numbers(self) -> list[int]:
        """The positions of the columns of text, counted from 0."""
        return [number for number, column in enumerate(self.columns) if column.is_text]

    def name_span(self, row: Row) -> int:
        """Return how many columns the title in a title row may cover, so that it is not wrapped.

        The title stands in the first column. It may extend over the next columns, up to the first
        one in which the row has a text of its own.

        Args:
            row: The title row.
        """
        span = 1
        for column in self.columns[1:]:
            if row.cell(column).text:
                break
            span += 1
        return span

    def texts(self, row: Row) -> list[str]:
        """Return the texts of the cells of a row, in the order of the columns."""
        return [row.cell(column).text for column in self.columns]

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns in which every row is empty or has a dash.

        The first column, which names the rows, always stays.
        """
        kept_columns = []
        for position, column in enumerate(self.columns):
            is_name_column = position == 0
            if is_name_column or any(row.has_text([column]) for row in self.rows):
                kept_columns.append(column)
        return replace(self, columns=kept_columns)

    def without_columns(self, labels: Iterable[str]) -> "Table":
        """Return the table without the columns that have these labels."""
        removed_labels = set(labels)
        columns = [column for column in self.columns if column.label not in removed_labels]
        return replace(self, columns=columns)


def text_table(
    text_heads: Sequence[str], number_heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    """Make a table from the texts of its cells.

    Columns of text stand on the left, columns of numbers on the right. The caller has formatted
    the numbers as texts.

    Args:
        text_heads: The heads of the columns of text, which are left-aligned.
        number_heads: The heads of the columns of numbers, which are right-aligned.
        rows: For each row, the texts of its cells in the order of the heads. A dash stands for a
            missing value.
    """
    columns = [Column(head, is_text=True) for head in text_heads]
    columns += [Column(head) for head in number_heads]
    table_rows = []
    for texts in rows:
        cells = {}
        for column, text in zip(columns, texts, strict=True):
            if text != DASH:  # A row shows a dash wherever it has no cell.
                cells[column] = Cell(text)
        table_rows.append(Row(cells))
    return Table(columns, table_rows)


def stack_tables(
    tables: Mapping[str, Table], title_cells: Mapping[str, Mapping[Column, Cell]] | None = None
) -> Table:
    """Put several tables below each other, as one table with a title row above each of them.

    If two tables have an equal column, it is one column of the result. Rows without any number are
    dropped, and so are tables in which no row remains, and columns without a value.

    Args:
        tables: The tables by their titles.
        title_cells: Further cells of the title rows, by the title; for example the number of lines
            that the scores below are computed from.
    """
    columns: dict[Column, None] = {}  # A dict drops duplicates and keeps the order.
    rows: list[Row] = []
    for title, table in tables.items():
        number_columns = [column for column in table.columns if not column.is_text]
        rows_with_numbers = [row for row in table.rows if row.has_text(number_columns)]
        if not rows_with_numbers:
            continue
        columns |= dict.fromkeys(table.columns)
        name_column = table.columns[0]
        cells_of_title_row = {name_column: Cell(title, is_bold=True)}
        if title_cells is not None:
            cells_of_title_row |= title_cells.get(title, {})
        rows.append(Row(cells_of_title_row, kind=TITLE_ROW))
        rows += rows_with_numbers
    return Table(list(columns), rows).without_empty_columns()


def split_by_column(table: Table, label: str) -> dict[str, Table]:
    """Split a table into one table for each different text in a column, such as each corpus.

    The column itself is removed, since it has the same text in all rows of a new table.

    Args:
        table: The table to split.
        label: The head of the column, such as `Corpus`.

    Returns:
        The new tables by their text in the column, such as the name of the corpus.
    """
    column = table.column(label)
    rows_by_text: dict[str, list[Row]] = {}
    for row in table.rows:
        text = row.cell(column).text
        rows_by_text.setdefault(text, []).append(row)
    without_column = table.without_columns([label])
    return {text: replace(without_column, rows=rows) for text, rows in rows_by_text.items()}
