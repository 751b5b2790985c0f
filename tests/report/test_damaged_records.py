"""Records whose fields have the right types but impossible content are refused."""

import copy

import pytest

from bleuprint.config.paths import Run
from bleuprint.report.frame import RESULTS
from bleuprint.report.results_file import read_results
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json, write_json

RUN = Run("tiny", "talks-en-fr", 1)


def index_of_bleu(metrics):
    """Return the position of BLEU over all lines in a list of metrics."""
    for index, row in enumerate(metrics):
        if row["metric"] == "bleu" and not row["group"]:
            return index
    raise AssertionError("there is no BLEU")


@pytest.mark.parametrize(
    ("statistics", "problem"),
    [
        pytest.param(["1 2", "x 2"], "row 1 is not a list of whole numbers", id="not a number"),
        pytest.param(
            ["1 2 3", "1 2"], "row 1 has another length than row 0", id="different lengths"
        ),
        pytest.param(["1"], "rows of 1 numbers are not those of bleu", id="too few numbers"),
    ],
)
def test_counts_of_lines_that_no_metric_gives_are_refused(experiment_copy, statistics, problem):
    """The statistics of a metric are what it counts on each line, one row of numbers per line."""
    root, settings = experiment_copy
    path = root / RUN.results_folder / "scores.json"
    scores = read_json(path)
    index = index_of_bleu(scores["only"]["metrics"])
    scores["only"]["metrics"][index]["statistics"] = statistics
    write_json(path, scores)

    with pytest.raises(UserError) as error:
        _ = Results.open(settings, RUN, root).scores

    field = f"field only.metrics.{index}.statistics"
    assert str(error.value).startswith(f"{path} is damaged: {field}: {problem}")


def test_counts_of_lines_of_an_unknown_metric_are_refused(experiment_copy):
    root, settings = experiment_copy
    path = root / RUN.results_folder / "scores.json"
    scores = read_json(path)
    scores["only"]["metrics"][0].update({"metric": "unheard-of", "statistics": ["1 2"]})
    write_json(path, scores)

    with pytest.raises(UserError, match="'unheard-of' is a metric without statistics"):
        _ = Results.open(settings, RUN, root).scores


def refusal(path, content):
    """Write results.json, and return the message with which it is refused."""
    write_json(path, content)
    with pytest.raises(UserError) as error:
        read_results(path, "REMEDY")
    return str(error.value)


@pytest.fixture
def results_path(saved_experiment):
    """Return the path of a sound results.json, which a test may change."""
    path = saved_experiment.root / RESULTS
    read_results(path, "REMEDY")
    return path


def test_results_with_two_rows_of_one_run_are_refused(results_path):
    content = read_json(results_path)
    runs = content["runs"]
    runs.append(copy.deepcopy(runs[0]))

    assert refusal(results_path, content) == (
        f"{results_path} is damaged: field runs.{len(runs) - 1}: a second row of the same run; "
        "REMEDY"
    )


def test_results_with_two_values_of_one_metric_are_refused(results_path):
    content = read_json(results_path)
    metrics = content["metrics"]
    metrics.append(copy.deepcopy(metrics[1]))

    assert refusal(results_path, content) == (
        f"{results_path} is damaged: field metrics.{len(metrics) - 1}: a second "
        f"{metrics[1]['metric']} of the same run; REMEDY"
    )


def test_results_with_a_metric_of_an_unknown_run_are_refused(results_path):
    content = read_json(results_path)
    content["metrics"][2]["test"] = "unheard-of"

    assert refusal(results_path, content) == (
        f"{results_path} is damaged: field metrics.2: runs contains no row of this run; REMEDY"
    )


def test_results_of_a_training_without_updates_are_refused(results_path):
    content = read_json(results_path)
    content["runs"][1]["updates"] = None

    assert refusal(results_path, content) == (
        f"{results_path} is damaged: field runs.1.updates is empty; REMEDY"
    )


def test_results_of_a_run_without_bleu_are_refused(results_path):
    content = read_json(results_path)
    del content["metrics"][index_of_bleu(content["metrics"])]

    assert refusal(results_path, content) == (
        f"{results_path} is damaged: field runs.0: metrics contains no bleu of this run; REMEDY"
    )


def test_results_with_a_signature_that_comet_does_not_write_are_refused(results_path):
    """The signature names the model of COMET as its fourth part."""
    content = read_json(results_path)
    row = copy.deepcopy(content["metrics"][0])
    row.update({"metric": "comet", "group": "", "signature": "a|b"})
    content["metrics"].append(row)

    message = refusal(results_path, content)

    field = f"field metrics.{len(content['metrics']) - 1}.signature"
    assert f"{field}: 'a|b' is not a signature of COMET" in message
