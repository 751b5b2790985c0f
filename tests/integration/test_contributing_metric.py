"""The example of a metric in docs/contributing.md, followed in a copy of a small project.

The metric "exact match" is the percentage of translations that equal their reference.
"""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from scipy.stats import binomtest

import micro
from contributing import Example, follow_section, metric_rows
from root import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exact_match_example(by_dvc, tmp_path_factory):
    """Return the Example in which DVC has scored all translations with exact match as well."""
    project = by_dvc.copy(tmp_path_factory.mktemp("metric") / "project")
    follow_section(project, "A metric")
    return Example(project, project.repro())


def test_a_new_metric_scores_again_and_trains_and_translates_nothing(exact_match_example):
    kinds_of_stages = {stage.partition("@")[0] for stage in exact_match_example.stages}

    assert kinds_of_stages <= {"resolve", "score", "report"}


@pytest.mark.parametrize("system", ["tiny", "wide"])
def test_a_new_metric_has_the_value_that_its_definition_says(exact_match_example, system):
    """The example, exact match, is the percentage of translations that equal their reference."""
    project = exact_match_example.project
    translations = project.read(f"results/{system}/own/1/hypotheses/test.held-out.de").splitlines()
    references = project.read("data/split/own/test.held-out.de").splitlines()
    equal_count = 0
    for translation, reference in zip(translations, references, strict=True):
        if translation == reference:
            equal_count += 1
    expected_percentage = 100 * equal_count / len(references)

    (row,) = metric_rows(project, system=system, metric="exact")

    assert row["value"] == round(expected_percentage, 6)
    assert row["ci_low"] <= expected_percentage <= row["ci_high"]


@pytest.mark.parametrize("system", ["tiny", "wide"])
def test_a_new_metric_has_no_p_value_on_a_test_set_that_is_too_small(exact_match_example, system):
    """The test set has 15 sentences."""
    (row,) = metric_rows(exact_match_example.project, system=system, metric="exact")

    assert row["p"] is None


@pytest.mark.parametrize("file_name", ["table.md", "index.html"])
def test_the_reports_show_a_new_metric(exact_match_example, file_name):
    assert "Exact match" in exact_match_example.project.read(f"reports/{file_name}")


# The code of the example is not the code of this process, so another process measures with it.
MEASURE = """
import json, sys
from pathlib import Path
import result_trees as trees
from bleuprint.report.records import collect
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, measured_scores
root = Path(sys.argv[1])
settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
trees.write_all(root, settings)
records = collect(settings, root)
scores = score_frame(records)
(table,) = tables_by_test_set(scores, measured_scores(scores)).values()
rows = records.metrics[records.metrics.metric == "exact"]
heads = [column.label for column in table.columns]
print(json.dumps({"rows": json.loads(rows.to_json(orient="records")), "heads": heads}))
"""


@pytest.fixture(scope="module")
def measured_systems(tmp_path_factory):
    """Return the exact match of the systems tiny and small on a test set of 100 sentences.

    Attributes of the result: `rows`, the rows of the metric by system; `heads`, those of the
    columns of the table; `is_equal`, for each system whether its translations equal the references.
    """
    folder = tmp_path_factory.mktemp("measured")
    checkout = folder / "checkout"
    shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__"))
    follow_section(micro.Project(checkout), "A metric")
    project = folder / "project"
    path = os.pathsep.join([str(checkout / "src"), str(ROOT / "tests" / "support")])
    process = subprocess.run(
        [sys.executable, "-c", MEASURE, str(project)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    printed = json.loads(process.stdout)

    references = (project / "data/split/news-en-de/test.first.de").read_text("utf-8").splitlines()
    is_equal = {}
    for system in ("tiny", "small"):
        path = project / f"results/{system}/news-en-de/1/hypotheses/test.first.de"
        translations = path.read_text("utf-8").splitlines()
        pairs = zip(translations, references, strict=True)
        is_equal[system] = [translation == reference for translation, reference in pairs]
    return SimpleNamespace(
        rows={row["system"]: row for row in printed["rows"]},
        heads=printed["heads"],
        is_equal=is_equal,
    )


def test_a_new_metric_is_measured_once_for_each_system(measured_systems):
    assert list(measured_systems.rows) == ["tiny", "small"]


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_a_new_metric_that_is_a_share_has_a_wilson_interval(measured_systems, system):
    """The example, exact match, is the percentage of translations that equal their reference.

    `is_equal` has True for each sentence of the test set whose translation is equal. The expected
    interval is computed by SciPy.
    """
    sentence_count = 100
    equal_count = measured_systems.is_equal[system].count(True)
    interval = binomtest(equal_count, sentence_count).proportion_ci(method="wilson")

    row = measured_systems.rows[system]

    assert row["value"] == 100 * equal_count / sentence_count
    assert row["ci_low"] == pytest.approx(100 * interval.low, abs=1e-3)
    assert row["ci_high"] == pytest.approx(100 * interval.high, abs=1e-3)


def test_systems_are_compared_by_a_new_metric_with_mcnemars_exact_test(measured_systems):
    """The metric, exact match, says for each sentence whether a system translates it right.

    McNemar's exact test counts the sentences that only one of both systems has right. It is a
    binomial test whether each system has half of them, here computed by SciPy.
    """
    is_right = measured_systems.is_equal
    results_of_sentences = list(zip(is_right["tiny"], is_right["small"], strict=True))
    only_small_is_right = results_of_sentences.count((False, True))
    only_tiny_is_right = results_of_sentences.count((True, False))
    only_one_is_right = only_small_is_right + only_tiny_is_right
    assert only_one_is_right > 5, "the test needs sentences that differ"
    expected_p = binomtest(only_small_is_right, only_one_is_right).pvalue

    p = measured_systems.rows["small"]["p"]

    assert p == pytest.approx(expected_p, abs=0.02)


def test_the_baseline_has_no_p_value_of_a_new_metric(measured_systems):
    """The first system, tiny, is the baseline with which others are compared."""
    assert measured_systems.rows["tiny"]["p"] is None


def test_the_table_has_columns_of_a_new_metric_and_of_its_differences(measured_systems):
    assert {"Exact match", "Δ Exact match"} <= set(measured_systems.heads)
