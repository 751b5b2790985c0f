"""Tables of text: stacked into one, split by a column, and without empty columns."""

import pytest

from bleuprint.report.table import (
    DASH,
    TITLE_ROW,
    Cell,
    Column,
    Row,
    Table,
    split_by_column,
    stack_tables,
    text_table,
)
from result_rows import labels_of


def texts_of(table):
    """Return the texts of a table, row by row."""
    return [table.texts(row) for row in table.rows]


SYSTEM = Column("System", is_text=True)
B = Column("b")
D = Column("d")


@pytest.fixture
def stacked():
    """Return three tables stacked into one, with an additional cell at the title of the last.

    The tables have different columns: a, b and c in `one`, d in `empty`, b and d in `two`. A row
    and a table without any value are left out, and so is the column c.
    """
    one = text_table(
        ["System"], ["a", "b", "c"], [["x", "1", "2", DASH], ["(y)", DASH, DASH, DASH]]
    )
    empty = text_table(["System"], ["d"], [["(y)", DASH]])
    baseline = Row({SYSTEM: Cell("z"), B: Cell("3"), D: Cell("4", is_bold=True)}, "baseline")
    two = Table([SYSTEM, B, D], [baseline])
    title_cells = {"two": {D: Cell("beside")}}
    return stack_tables({"one": one, "empty": empty, "two": two}, title_cells)


def test_stacked_tables_share_columns_with_the_same_head(stacked):
    assert labels_of(stacked) == ["System", "a", "b", "d"]


def test_each_stacked_table_follows_its_title(stacked):
    """Tables of different test sets become one, so that they share the columns.

    The fixture stacks the tables `one` with the columns a, b, c, and `two` with b and d. The title
    of `two` has a cell of its own. Rows and columns without any value are removed.
    """
    assert texts_of(stacked) == [
        ["one", "", "", ""],
        ["x", "1", "2", DASH],
        ["two", "", "", "beside"],
        ["z", DASH, "3", "4"],
    ]


def test_stacked_rows_keep_their_kind(stacked):
    assert [row.kind for row in stacked.rows] == [TITLE_ROW, "", TITLE_ROW, "baseline"]


def test_stacked_cells_keep_the_mark_of_the_best_and_titles_are_bold(stacked):
    """The best score, `4` in the column d of the last row, was bold before stacking."""
    bold_columns_by_row = {}
    for row in stacked.rows:
        name, *_ = stacked.texts(row)
        bold_columns = [column.label for column in stacked.columns if row.cell(column).is_bold]
        bold_columns_by_row[name] = bold_columns

    assert bold_columns_by_row == {"one": ["System"], "x": [], "two": ["System"], "z": ["d"]}


def test_a_cell_that_a_stacked_table_lacks_has_no_value(stacked):
    """Scripts on the page sort a column as numbers if its values are numbers or None."""
    row_of_z = stacked.rows[3]
    column_a = stacked.columns[1]
    assert row_of_z.cell(column_a).value is None


def test_a_table_is_split_by_the_texts_of_a_column():
    """A table of systems on two corpora becomes a table for each corpus, without its column."""
    rows = [["x", "de", "1"], ["x", "fr", "2"], ["y", "de", "3"]]
    table = text_table(["System", "Corpus"], ["n"], rows)

    parts = split_by_column(table, "Corpus")

    assert list(parts) == ["de", "fr"]
    assert texts_of(parts["de"]) == [["x", "1"], ["y", "3"]]
    assert texts_of(parts["fr"]) == [["x", "2"]]
    assert labels_of(parts["fr"]) == ["System", "n"]


def test_a_column_without_a_value_is_removed():
    """System b lacks a score, and no system has a value in the column `empty`."""
    name = Column("System")
    empty = Column("empty")
    score = Column("score")
    row_of_a = Row({name: Cell("a"), score: Cell("1", is_bold=True)})
    row_of_b = Row({name: Cell("b")})

    table = Table([name, empty, score], [row_of_a, row_of_b]).without_empty_columns()

    assert table.columns == [name, score]
    assert texts_of(table) == [["a", "1"], ["b", DASH]]
    assert table.rows[0].cell(score).is_bold


def test_all_columns_without_a_value_are_removed():
    """The only row has a name, and neither of two scores."""
    name = Column("System")
    bleu = Column("BLEU")
    ter = Column("TER")
    row = Row({name: Cell("b")})

    table = Table([name, bleu, ter], [row]).without_empty_columns()

    assert table.columns == [name]


@pytest.mark.parametrize(
    ("columns_with_text", "span"),
    [
        pytest.param(["System", "b"], 2, id="text in the third column"),
        pytest.param(["System"], 4, id="no other text"),
    ],
)
def test_the_name_of_a_group_spans_the_columns_up_to_the_next_text(columns_with_text, span):
    """The title of a group of rows is often longer than the first column is wide.

    It may extend over the empty cells at its right, as `colspan` in HTML does.
    """
    columns = [Column("System", is_text=True), Column("a"), Column("b"), Column("c")]
    cells = {}
    for column in columns:
        if column.label in columns_with_text:
            cells[column] = Cell("text")
    title_row = Row(cells, TITLE_ROW)

    assert Table(columns, [title_row]).name_span(title_row) == span
