"""Tables of text: below each other in one, by their columns, and without what is empty."""

from bleuprint.report.table import (
    GROUP,
    NONE,
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
    return [table.texts(row) for row in table.rows]


def test_tables_are_stacked_by_their_heads():
    first = text_table(
        ["System"], ["a", "b", "c"], [["x", "1", "2", NONE], ["(y)", NONE, NONE, NONE]]
    )
    system, b, d = Column("System", is_text=True), Column("b"), Column("d")
    best = Row({system: Cell("z"), b: Cell("3"), d: Cell("4", is_best=True)}, "baseline")
    second = Table([system, b, d], [best])
    empty = text_table(["System"], ["d"], [["(y)", NONE]])
    beside = {"two": {d: Cell("beside")}}
    found = stack_tables({"one": first, "none": empty, "two": second}, beside)
    assert labels_of(found) == ["System", "a", "b", "d"]
    assert [row.kind for row in found.rows] == [GROUP, "", GROUP, "baseline"]
    assert texts_of(found) == [
        ["one", "", "", ""],
        ["x", "1", "2", NONE],
        ["two", "", "", "beside"],
        ["z", NONE, "3", "4"],
    ]
    marked = [
        [column.label for column in found.columns if row.cell(column).is_best] for row in found.rows
    ]
    assert marked == [["System"], [], ["System"], ["d"]]
    # so that scripts sort the column as one of numbers
    assert found.rows[3].cell(found.columns[1]).value is None


def test_a_table_is_parted_by_a_column_of_text():
    rows = [["x", "de", "1"], ["x", "fr", "2"], ["y", "de", "3"]]
    parts = split_by_column(text_table(["System", "Corpus"], ["n"], rows), "Corpus")
    assert [*parts] == ["de", "fr"]
    assert texts_of(parts["de"]) == [["x", "1"], ["y", "3"]]
    assert labels_of(parts["fr"]) == ["System", "n"]


def test_a_column_without_a_value_is_left_out_and_marks_stay_with_their_cells():
    system, empty, score = map(Column, ("System", "empty", "score"))
    rows = [Row({system: Cell("a"), score: Cell("1", is_best=True)}), Row({system: Cell("b")})]
    found = Table([system, empty, score], rows).without_empty_columns()
    assert found.columns == [system, score]
    assert texts_of(found) == [["a", "1"], ["b", NONE]]
    assert found.rows[0].cell(score).is_best
    nothing = Table([system, empty, score], rows[1:]).without_empty_columns()
    assert nothing.columns == [system]


def test_the_name_of_a_group_covers_the_blank_columns_after_it():
    heads = Column("System", is_text=True), Column("a"), Column("b"), Column("c")
    row = Row({heads[0]: Cell("news"), heads[2]: Cell("7")}, GROUP)
    assert Table(heads, [row]).name_span(row) == 2
    alone = Row({heads[0]: Cell("news")}, GROUP)
    assert Table(heads, [alone]).name_span(alone) == 4
