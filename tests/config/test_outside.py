"""Rows from outside: what params.yaml may say of them."""

import pytest

from bleuprint.config.cells import cells_of, rows_of, settings_sha256
from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError
from params import PARAMS, read

OUTSIDE = f"""\
outside:
  own:
    online-a:
      about: "system A, 3 May"
      tests:
        held-out: {{path: inputs/outside/a.no, sha256: {64 * "a"}}}
systems:
"""
TEXT = PARAMS.replace("systems:\n", OUTSIDE)


def test_a_row_beside_the_systems(tmp_path):
    settings = read(tmp_path, TEXT.replace("seeds: [1]", "seeds: [3, 1]"))
    row = settings.outside_on("own")["online-a"]
    assert (row.about, row.tests["held-out"].path) == ("system A, 3 May", "inputs/outside/a.no")
    assert cells_of(settings) == [Cell("base", "own", 3), Cell("base", "own", 1)]
    assert rows_of(settings)[2:] == [Cell("online-a", "own", 3), Cell("online-a", "own", 1)]
    with pytest.raises(UserError, match="online-a is an external system, without a model here"):
        settings.system_on("online-a", "own")


def test_settings_of_systems_are_known_by_the_same_fingerprint_without(tmp_path):
    cell = Cell("base", "own", 1)
    before = settings_sha256(read(tmp_path), cell)
    settings = read(tmp_path, TEXT)
    assert settings_sha256(settings, cell) == before
    row = settings_sha256(settings, Cell("online-a", "own", 1))
    other = read(tmp_path, TEXT.replace(64 * "a", 64 * "b"))
    assert len({before, row, settings_sha256(other, Cell("online-a", "own", 1))}) == 3
    assert read(tmp_path).outside is None and read(tmp_path).outside_on("own") == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  own:\n    online", "  won:\n    online", "outside.won: no such corpus; there are: own"),
        ("online-a:", "base:", "outside.own.base: a system has this name: rename the row"),
        ("held-out:", "news:", "tests.news: own has no such test set; there are: held-out"),
        ("inputs/outside/a", "inputs/a", "inputs/a.no': files must be below inputs/outside"),
        ("outside/a.no", "outside/../a.no", "files must be below inputs/outside/"),
        ("system A, 3 May", "", "online-a.about: '' is empty"),
        (OUTSIDE[OUTSIDE.index("  own") :], "systems:\n", "18: outside: is empty: remove the key"),
        ("  base:\n", "  outside:\n", "systems.outside: rename it: results/outside is the folder"),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path, old, new, message):
    assert TEXT.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(old, new))
    assert message in str(error.value) and "\n" not in str(error.value)
