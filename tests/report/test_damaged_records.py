"""Records whose fields have the right types, and whose content cannot be."""

import copy as copies

import pytest

from bleuprint.config.paths import Run
from bleuprint.report.frame import RESULTS
from bleuprint.report.results_file import read_results
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json

RUN = Run("tiny", "talks-en-fr", 1)


@pytest.mark.parametrize(
    ("statistics", "problem"),
    [
        (["1 2", "x 2"], "row 1 is not a list of whole numbers"),
        (["1 2 3", "1 2"], "row 1 has another length than row 0"),
        (["1"], "rows of 1 numbers are not those of bleu"),
    ],
)
def test_counts_of_lines_that_cannot_be_those_of_a_metric(copy, statistics, problem):
    root, settings = copy
    path = root / RUN.results_folder / "scores.json"
    scores = read_json(path)
    metrics = scores["only"]["metrics"]
    number = next(n for n, each in enumerate(metrics) if each["metric"] == "bleu")
    metrics[number]["statistics"] = statistics
    write_json(path, scores)
    with pytest.raises(UserError) as raised:
        _ = Results.open(settings, RUN, root).scores
    place = f"field only.metrics.{number}.statistics"
    assert str(raised.value).startswith(f"{path} is damaged: {place}: {problem}")


def test_counts_of_lines_of_an_unknown_metric(copy):
    root, settings = copy
    path = root / RUN.results_folder / "scores.json"
    scores = read_json(path)
    scores["only"]["metrics"][0] |= {"metric": "unheard-of", "statistics": ["1 2"]}
    write_json(path, scores)
    with pytest.raises(UserError, match="'unheard-of' is a metric without statistics"):
        _ = Results.open(settings, RUN, root).scores


def second_run(content):
    content["runs"].append(copies.deepcopy(content["runs"][0]))


def second_metric(content):
    content["metrics"].append(copies.deepcopy(content["metrics"][1]))


def no_run(content):
    content["metrics"][2]["test"] = "unheard-of"


def no_updates(content):
    content["runs"][1]["updates"] = None


def no_bleu(content):
    bleu = [row for row in content["metrics"] if row["metric"] == "bleu" and not row["group"]]
    content["metrics"].remove(bleu[0])


def test_results_of_which_a_row_cannot_be(saved):
    path = saved[0] / RESULTS
    whole = read_json(path)
    read_results(path, "REMEDY")
    last_run, last_metric = len(whole["runs"]), len(whole["metrics"])
    second = whole["metrics"][1]["metric"]
    for change, problem in (
        (second_run, f"field runs.{last_run}: a second row of the same run"),
        (second_metric, f"field metrics.{last_metric}: a second {second} of the same run"),
        (no_run, "field metrics.2: runs contains no row of this run"),
        (no_updates, "field runs.1.updates is empty"),
        (no_bleu, "field runs.0: metrics contains no bleu of this run"),
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
    row = copies.deepcopy(content["metrics"][0])
    content["metrics"].append(row | {"metric": "comet", "group": "", "signature": "a|b"})
    write_json(path, content)
    place = f"field metrics.{len(content['metrics']) - 1}.signature"
    with pytest.raises(UserError) as raised:
        read_results(path, "REMEDY")
    assert f"{place}: 'a|b' is not a signature of COMET" in str(raised.value)
