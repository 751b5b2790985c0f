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
    assert texts_of(stacked) == [
        ["one", "", "", ""],
        ["x", "1", "2", DASH],
        ["two", "", "", "beside"],
        ["z", DASH, "3", "4"],
    ]


def test_stacked_rows_keep_their_kind(stacked):
    assert [row.kind for row in stacked.rows] == [TITLE_ROW, "", TITLE_ROW, "baseline"]


def test_stacked_cells_keep_the_mark_of_the_best_and_titles_are_marked(stacked):
    marked_columns = []
    for row in stacked.rows:
        labels = [column.label for column in stacked.columns if row.cell(column).is_bold]
        marked_columns.append(labels)

    assert marked_columns == [["System"], [], ["System"], ["d"]]


def test_a_cell_that_a_stacked_table_lacks_has_no_value(stacked):
    """Scripts on the page sort a column as numbers if its values are numbers or None."""
    row_of_z = stacked.rows[3]
    column_a = stacked.columns[1]
    assert row_of_z.cell(column_a).value is None


def test_a_table_is_split_by_the_texts_of_a_column():
    rows = [["x", "de", "1"], ["x", "fr", "2"], ["y", "de", "3"]]
    table = text_table(["System", "Corpus"], ["n"], rows)

    parts = split_by_column(table, "Corpus")

    assert list(parts) == ["de", "fr"]
    assert texts_of(parts["de"]) == [["x", "1"], ["y", "3"]]
    assert texts_of(parts["fr"]) == [["x", "2"]]
    assert labels_of(parts["fr"]) == ["System", "n"]


def test_a_column_without_a_value_is_removed():
    name = Column("System")
    empty = Column("empty")
    score = Column("score")
    rows = [Row({name: Cell("a"), score: Cell("1", is_bold=True)}), Row({name: Cell("b")})]

    table = Table([name, empty, score], rows).without_empty_columns()

    assert table.columns == [name, score]
    assert texts_of(table) == [["a", "1"], ["b", DASH]]
    assert table.rows[0].cell(score).is_bold


def test_all_columns_without_a_value_are_removed():
    name = Column("System")
    empty = Column("empty")
    score = Column("score")

    table = Table([name, empty, score], [Row({name: Cell("b")})]).without_empty_columns()

    assert table.columns == [name]


@pytest.mark.parametrize(
    ("columns_with_text", "span"),
    [
        pytest.param(["System", "b"], 2, id="text in the third column"),
        pytest.param(["System"], 4, id="no other text"),
    ],
)
def test_the_name_of_a_group_spans_the_columns_up_to_the_next_text(columns_with_text, span):
    columns = [Column("System", is_text=True), Column("a"), Column("b"), Column("c")]
    cells = {}
    for column in columns:
        if column.label in columns_with_text:
            cells[column] = Cell("text")
    row = Row(cells, TITLE_ROW)

    assert Table(columns, [row]).name_span(row) == span
