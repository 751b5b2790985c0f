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
        pytest.param(["1 2 3", "1 2"], "row 1 and row 0 differ in length", id="different lengths"),
        pytest.param(["1"], "bleu cannot be computed from rows of 1 numbers", id="too few numbers"),
    ],
)
def test_impossible_counts_of_bleu_are_refused(experiment_copy, statistics, problem):
    """Scores.json stores what BLEU counts on each line, such as matched n-grams.

    Each line is a row of whole numbers, all of the same length. From damaged rows, significance
    tests would compute wrong p-values without an error.
    """
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
    """The program cannot know what the numbers of another metric mean."""
    root, settings = experiment_copy
    path = root / RUN.results_folder / "scores.json"
    scores = read_json(path)
    scores["only"]["metrics"][0].update({"metric": "unheard-of", "statistics": ["1 2"]})
    write_json(path, scores)

    with pytest.raises(UserError, match="the metric 'unheard-of' must not have statistics"):
        _ = Results.open(settings, RUN, root).scores


def test_scores_of_an_own_metric_without_its_module_are_not_damaged(experiment_copy):
    """The user may have removed own/removed.py, or may be editing it."""
    root, settings = experiment_copy
    path = root / RUN.results_folder / "scores.json"
    scores = read_json(path)
    scores["only"]["metrics"][0].update({"metric": "own.removed", "statistics": ["1 2", "0 2"]})
    write_json(path, scores)

    read_scores = Results.open(settings, RUN, root).scores

    assert read_scores["only"]["metrics"][0]["metric"] == "own.removed"


def refusal(path, content):
    """Write results.json, and return the message with which it is refused."""
    write_json(path, content)
    with pytest.raises(UserError) as error:
        read_results(path, "dvc pull")
    return str(error.value)


@pytest.fixture
def results_path(saved_experiment):
    """Return the path of a sound results.json, which a test may change."""
    path = saved_experiment.root / RESULTS
    read_results(path, "dvc pull")
    return path


@pytest.mark.parametrize("table", ["runs", "metrics"])
def test_results_with_two_equal_rows_are_refused(results_path, table):
    """A run, or a metric of a run, would occur twice."""
    content = read_json(results_path)
    rows = content[table]
    row = rows[1]
    rows.append(copy.deepcopy(row))

    message = refusal(results_path, content)

    repetition = "an earlier run" if table == "runs" else f"{row['metric']} of an earlier row"
    index_of_the_copy = len(rows) - 1
    assert message == (
        f"{results_path} is damaged: field {table}.{index_of_the_copy} repeats {repetition}. "
        "dvc pull"
    )


def test_results_with_a_metric_of_an_unknown_run_are_refused(results_path):
    """The table of metrics names a test set that the table of runs lacks."""
    content = read_json(results_path)
    content["metrics"][2]["test"] = "unheard-of"

    message = refusal(results_path, content)

    assert message == (
        f"{results_path} is damaged: field metrics.2: runs lacks a row of this run. dvc pull"
    )


def test_results_of_a_training_without_updates_are_refused(results_path):
    content = read_json(results_path)
    content["runs"][1]["updates"] = None

    message = refusal(results_path, content)

    assert message == f"{results_path} is damaged: field runs.1.updates is empty. dvc pull"


def test_results_of_a_run_without_bleu_are_refused(results_path):
    """The report ranks systems by BLEU, so each run must have it."""
    content = read_json(results_path)
    del content["metrics"][index_of_bleu(content["metrics"])]

    message = refusal(results_path, content)

    assert message == (
        f"{results_path} is damaged: field runs.0: metrics contains no bleu of this run. dvc pull"
    )


def test_results_with_a_signature_that_comet_does_not_write_are_refused(results_path):
    """COMET writes signatures such as `Python3.11|Comet2.2|fp32|wmt22-comet-da|r1`."""
    content = read_json(results_path)
    metrics = content["metrics"]
    comet = copy.deepcopy(metrics[0])
    comet.update({"metric": "comet", "group": "", "signature": "a|b"})
    metrics.append(comet)

    message = refusal(results_path, content)

    field = f"field metrics.{len(metrics) - 1}.signature"
    assert f"{field}: 'a|b' is not a signature of COMET" in message
