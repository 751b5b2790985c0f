"""A table of texts, independent of the format that it is printed in: its columns and rows.

render.py prints a table as Markdown and LaTeX, terminal.py prints it on a terminal, and
page/templates/table.html.j2 shows it in the HTML report.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

# The text of a cell without a value.
NONE = "–"
# The kind of a title row, which names the rows below it.
GROUP = "group"


@dataclass(frozen=True)
class Column:
    """A column of a table; two columns are the same if all their attributes are equal.

    Attributes:
        label: The text of the head.
        group: The text above this column and its neighbors with the same group, in LaTeX.
        is_text: Whether the cells are left-aligned text, and not numbers.
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
        is_best: Whether the cell is bold, as the best score in its column.
    """

    text: str
    value: float | None = None
    is_best: bool = False


EMPTY = Cell(NONE)
_BLANK = Cell("")


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        cells: The cells by their columns. A column that is missing shows a dash, or nothing in a
            title row.
        kind: `GROUP` for a title row; otherwise a class of rows in the HTML report, such as
            baseline, or empty.
        is_muted: Whether the row is set apart in softer type, as published numbers are.
    """

    cells: Mapping[Column, Cell]
    kind: str = ""
    is_muted: bool = False

    def cell(self, column: Column) -> Cell:
        """Return the cell of a column; a cell with a dash if the row has none there.

        In a title row, which has only a name, such a cell is blank.
        """
        empty_cell = _BLANK if self.kind == GROUP else EMPTY
        return self.cells.get(column, empty_cell)

    def has_text(self, columns: Iterable[Column]) -> bool:
        """Return whether any of these columns has a text in this row, and not only a dash."""
        return any(self.cell(column).text not in ("", NONE) for column in columns)


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
        """The numbers of the columns of text, counted from 0."""
        return [number for number, column in enumerate(self.columns) if column.is_text]

    def name_span(self, row: Row) -> int:
        """Return how many columns the name in a title row may cover, so that it is not wrapped.

        These are the first column, and the columns after it in which the row is blank.
        """
        span = 1
        while span < len(self.columns) and not row.cell(self.columns[span]).text:
            span += 1
        return span

    def texts(self, row: Row) -> list[str]:
        """Return the texts of the cells of a row, in the order of the columns."""
        return [row.cell(column).text for column in self.columns]

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns in which no row has a text.

        The first column, which names the rows, always stays.
        """
        name_column = self.columns[:1]
        filled_columns = list(name_column)
        for column in self.columns[1:]:
            if any(row.has_text([column]) for row in self.rows):
                filled_columns.append(column)
        return replace(self, columns=filled_columns)

    def without_columns(self, labels: Iterable[str]) -> "Table":
        """Return the table without the columns that have these labels."""
        removed_labels = set(labels)
        columns = [column for column in self.columns if column.label not in removed_labels]
        return replace(self, columns=columns)


def text_table(
    text_heads: Sequence[str], number_heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    """Make a table of rows of texts, with columns of text on the left and of numbers on the right.

    Numbers are given as texts, too, but aligned as numbers.

    Args:
        text_heads: The heads of the columns of text.
        number_heads: The heads of the columns of numbers.
        rows: For each row its texts, in the order of the heads; a dash is an empty cell.
    """
    columns = [Column(head, is_text=True) for head in text_heads]
    columns += [Column(head) for head in number_heads]
    table_rows = []
    for texts in rows:
        cells = {}
        for column, text in zip(columns, texts, strict=True):
            if text != NONE:
                cells[column] = Cell(text)
        table_rows.append(Row(cells))
    return Table(columns, table_rows)


def stack_tables(
    tables: Mapping[str, Table], title_cells: Mapping[str, Mapping[Column, Cell]] | None = None
) -> Table:
    """Put several tables below each other, as one table with a title row above each of them.

    Equal columns become one column. Rows without a number, tables without such a row, and columns
    without a text are left out.

    Args:
        tables: The tables by their titles.
        title_cells: Cells that a title row has in addition to its title, by the title.
    """
    columns: dict[Column, None] = {}  # A dict keeps the order in which columns first occur.
    rows: list[Row] = []
    for title, table in tables.items():
        number_columns = [column for column in table.columns if not column.is_text]
        rows_with_numbers = [row for row in table.rows if row.has_text(number_columns)]
        if not rows_with_numbers:
            continue
        columns |= dict.fromkeys(table.columns)
        # The title is bold, like the best score of a column.
        cells_of_title_row = {table.columns[0]: Cell(title, is_best=True)}
        if title_cells is not None:
            cells_of_title_row |= title_cells.get(title, {})
        rows.append(Row(cells_of_title_row, GROUP))
        rows += rows_with_numbers
    return Table(list(columns), rows).without_empty_columns()


def split_by_column(table: Table, label: str) -> dict[str, Table]:
    """Split a table into several, one for each text in a column, such as one for each corpus.

    The column itself is removed.

    Args:
        table: The table to split.
        label: The head of the column, such as `Corpus`.

    Returns:
        The tables by the text.
    """
    column = table.column(label)
    rows_by_text: dict[str, list[Row]] = {}
    for row in table.rows:
        text = row.cell(column).text
        rows_by_text.setdefault(text, []).append(row)
    other_columns = table.without_columns([label])
    return {text: replace(other_columns, rows=rows) for text, rows in rows_by_text.items()}
