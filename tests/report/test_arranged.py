"""Several tables in one: names above rows, columns by their heads, and what is empty."""

from dataclasses import replace

from bleuprint.report.arranged import parted, stacked
from bleuprint.report.grid import GROUP, NONE, grid


def test_tables_are_stacked_by_their_heads():
    first = grid(["System"], ["a", "b", "c"], [["x", "1", "2", NONE], ["(y)", NONE, NONE, NONE]])
    second = grid(["System"], ["b", "d"], [["z", "3", "4"]])
    second = replace(second, rows=(replace(second.rows[0], kind="baseline", best=frozenset({2})),))
    empty = grid(["System"], ["d"], [["(y)", NONE]])
    found = stacked({"one": first, "none": empty, "two": second}, {"two": {"d": "beside"}})
    assert [column.label for column in found.columns] == ["System", "a", "b", "d"]
    assert [(row.kind, row.cells, {*row.best}) for row in found.rows] == [
        (GROUP, ("one", "", "", ""), {0}),
        ("", ("x", "1", "2", NONE), set()),
        (GROUP, ("two", "", "", "beside"), {0}),
        ("baseline", ("z", NONE, "3", "4"), {3}),
    ]
    # so that scripts sort the column as one of numbers
    assert found.rows[3].cells[1].value is None


def test_a_table_is_parted_by_texts():
    rows = [["x", "de", "t", "1"], ["x", "fr", "t", "2"], ["y", "de", "t", "3"]]
    parts = parted(grid(["System", "Corpus", "Test"], ["n"], rows), "Corpus", "Test")
    assert [*parts] == ["de, t", "fr, t"]
    assert [row.cells for row in parts["de, t"].rows] == [("x", "1"), ("y", "3")]
    assert [column.label for column in parts["fr, t"].columns] == ["System", "n"]
