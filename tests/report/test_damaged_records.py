"""Records whose fields have the right types, and whose content cannot be."""

import copy as copies

import pytest

from bleuprint.cells.results import Results
from bleuprint.config.paths import Cell
from bleuprint.report.frame import RESULTS
from bleuprint.report.results_file import read_results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json

CELL = Cell("tiny", "talks-en-fr", 1)


@pytest.mark.parametrize(
    ("statistics", "problem"),
    [
        (["1 2", "x 2"], "row 1 is not a list of whole numbers"),
        (["1 2 3", "1 2"], "row 1 has another length than row 0"),
        (["1"], "rows of 1 numbers are not those of bleu"),
    ],
)
def test_counts_of_lines_that_cannot_be_those_of_a_measure(copy, statistics, problem):
    root, settings = copy
    path = root / CELL.results / "scores.json"
    scores = read_json(path)
    measures = scores["only"]["measures"]
    number = next(n for n, each in enumerate(measures) if each["measure"] == "bleu")
    measures[number]["statistics"] = statistics
    write_json(path, scores)
    with pytest.raises(UserError) as raised:
        _ = Results.open(settings, CELL, root).scores
    place = f"field only.measures.{number}.statistics"
    assert str(raised.value).startswith(f"{path} is damaged: {place}: {problem}")


def test_counts_of_lines_of_an_unknown_measure(copy):
    root, settings = copy
    path = root / CELL.results / "scores.json"
    scores = read_json(path)
    scores["only"]["measures"][0] |= {"measure": "unheard-of", "statistics": ["1 2"]}
    write_json(path, scores)
    with pytest.raises(UserError, match="'unheard-of' is a measure without statistics"):
        _ = Results.open(settings, CELL, root).scores


def second_cell(content):
    content["cells"].append(copies.deepcopy(content["cells"][0]))


def second_measure(content):
    content["measures"].append(copies.deepcopy(content["measures"][1]))


def no_cell(content):
    content["measures"][2]["test"] = "unheard-of"


def no_updates(content):
    content["cells"][1]["updates"] = None


def no_bleu(content):
    bleu = [row for row in content["measures"] if row["measure"] == "bleu" and not row["group"]]
    content["measures"].remove(bleu[0])


def test_results_of_which_a_row_cannot_be(saved):
    path = saved[0] / RESULTS
    whole = read_json(path)
    read_results(path, "REMEDY")
    last_cell, last_measure = len(whole["cells"]), len(whole["measures"])
    second = whole["measures"][1]["measure"]
    for change, problem in (
        (second_cell, f"field cells.{last_cell}: a second row of its cell"),
        (second_measure, f"field measures.{last_measure}: a second {second} of its cell"),
        (no_cell, "field measures.2: no row of cells is its cell"),
        (no_updates, "field cells.1.updates is empty"),
        (no_bleu, "field cells.0: measures has no bleu of it"),
    ):
        content = copies.deepcopy(whole)
        change(content)
        write_json(path, content)
        with pytest.raises(UserError) as raised:
            read_results(path, "REMEDY")
        assert str(raised.value) == f"{path} is damaged: {problem}; REMEDY", change.__name__


def test_a_signature_that_is_not_one_of_comet(saved):
    path = saved[0] / RESULTS
    content = read_json(path)
    row = copies.deepcopy(content["measures"][0])
    content["measures"].append(row | {"measure": "comet", "group": "", "signature": "a|b"})
    write_json(path, content)
    place = f"field measures.{len(content['measures']) - 1}.signature"
    with pytest.raises(UserError) as raised:
        read_results(path, "REMEDY")
    assert f"{place}: 'a|b' is no signature of COMET" in str(raised.value)
