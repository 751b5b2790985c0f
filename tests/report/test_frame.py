"""The results as a data frame and as CSV: every figure, read back by another reader."""

import io
import json
import os
import re
import subprocess
import sys

import pandas
import pytest

import bleuprint
import processes
from bleuprint.config.published import Published
from bleuprint.report.frame import COLUMNS, RUN_AND_TEST, csv_text, read_without_costs
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.training_costs import costs_csv
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from result_rows import TWO_SYSTEMS, records_from_rows
from root import ROOT

# Columns that a machine measures; costs.csv contains them, and table.csv does not.
MEASURED_COLUMNS = {
    "train_seconds",
    "train_tokens_per_second",
    "peak_memory",
    "device",
    "processes",
    "threads",
    "commit",
    "devices",
    "training_flops_by_time",
    "mfu",
}
# Results of tiny and small on three test sets; the training of small was not measured.
RECORDS = records_from_rows(*TWO_SYSTEMS, missing="small")


@pytest.fixture(scope="module")
def table_csv():
    """Return table.csv of RECORDS as pandas reads it."""
    return pandas.read_csv(io.StringIO(csv_text(RECORDS)), dtype={"signature": str})


def name_of_record(record):
    """Return the name of a test case: the system and the test set of a record."""
    return f"{record['facts']['system']} on {record['facts']['test']}"


@pytest.mark.parametrize("expected", TWO_SYSTEMS, ids=name_of_record)
def test_table_csv_contains_each_metric_of_a_record(table_csv, expected):
    """Table.csv has a row for each metric of a system on a test set; `expected` is one record.

    A metric is given for all lines or for a group of them, as BLEU of lines of 1 to 10 tokens.
    """
    rows = table_csv
    for name in RUN_AND_TEST:  # system, corpus, seed and test set
        rows = rows[rows[name] == expected["facts"][name]]

    csv_metrics = {}
    for row in rows.astype(object).fillna("").to_dict("records"):
        csv_metrics[row["metric"], row["group"]] = row
    assert set(csv_metrics) == set(expected["metrics"])
    for key, entry in expected["metrics"].items():
        for name in ("value", "ci_low", "ci_high", "signature", "units"):
            expected_cell = "" if entry[name] is None else entry[name]
            assert csv_metrics[key][name] == expected_cell, (key, name)


def test_table_csv_contains_the_tests_of_systems(table_csv):
    """On three test sets, small has 10 BLEU more than the baseline tiny, with these p-values.

    Small is the only system tested on each, so Holm's correction changes nothing.
    """
    small_bleu = table_csv[
        (table_csv.system == "small") & (table_csv.metric == "bleu") & table_csv.group.isna()
    ]

    p_values_of_test_sets = [0.000999, 0.05, 0.049]
    assert list(small_bleu.baseline) == ["tiny"] * 3
    assert list(small_bleu.difference) == [10.0] * 3
    assert list(small_bleu.p) == p_values_of_test_sets
    assert list(small_bleu.p_holm) == p_values_of_test_sets
    assert list(small_bleu.p_randomization) == p_values_of_test_sets


def test_table_csv_contains_no_difference_of_the_baseline(table_csv):
    assert table_csv[table_csv.system == "tiny"].difference.isna().all()


def test_no_row_of_table_csv_is_published_without_published_numbers(table_csv):
    assert table_csv.published.isna().all()


def test_table_csv_contains_no_measured_columns(table_csv):
    assert set(table_csv.columns) <= set(COLUMNS)
    assert not MEASURED_COLUMNS & set(table_csv.columns)


@pytest.fixture(scope="module")
def costs():
    """Return costs.csv of RECORDS as pandas reads it."""
    return pandas.read_csv(io.StringIO(costs_csv(RECORDS.runs)))


def test_costs_csv_contains_the_measured_columns(costs):
    assert set(costs.columns) >= MEASURED_COLUMNS | {"versions", "sustained_flops", "peak_flops"}


def test_costs_csv_contains_the_costs_of_each_training(costs):
    """Tiny trained for 12 hours and for 61 seconds on 4 devices with 9.5e12 operations a second."""
    tiny = costs[costs.system == "tiny"]

    seconds = [12 * 60 * 60.0, 61.0]
    assert list(tiny.train_seconds) == seconds
    expected_flops = [seconds[0] * 4 * 9.5e12, seconds[1] * 4 * 9.5e12]
    assert list(tiny.training_flops_by_time) == pytest.approx(expected_flops)


def test_costs_csv_has_empty_cells_for_a_training_that_was_not_measured(costs):
    small = costs[costs.system == "small"]

    assert small.train_seconds.isna().all()
    assert small.device.isna().all()


@pytest.fixture
def results_path(tmp_path):
    """Return the path of a results.json with RECORDS, which a test may change."""
    path = tmp_path / "results.json"
    RECORDS.save(path)
    return path


def test_results_with_metrics_of_a_missing_run_are_refused(results_path):
    """Results.json has a table of runs and one of metrics; here a row of runs is deleted."""
    content = json.loads(results_path.read_text())
    del content["runs"][0]
    write_json(results_path, content)

    message = "json is damaged: field metrics.0: runs lacks a row of this run"
    with pytest.raises(UserError, match=message):
        read_without_costs(results_path)


def test_results_without_the_bleu_of_a_run_are_refused(results_path):
    """The report ranks systems by BLEU. Here, BLEU over all lines of the first run is deleted."""
    content = json.loads(results_path.read_text())
    for row in content["metrics"]:
        if row["metric"] == "bleu" and row["group"] == "":
            content["metrics"].remove(row)
            break
    write_json(results_path, content)

    message = "json is damaged: field runs.0: metrics contains no bleu of this run"
    with pytest.raises(UserError, match=message):
        read_without_costs(results_path)


def test_published_numbers_are_the_first_rows_of_table_csv():
    """The rows of our own systems, tiny and small, follow them."""
    numbers = [
        Published("Paper", "Doe 2020, Table 3", "talks-en-fr", "only", 35.0, "tokenized"),
        Published("Paper", "Doe 2020, Table 3", "news-en-de", "second", 36.25, "sacrebleu"),
    ]

    text = csv_text(with_published_numbers(RECORDS, numbers))

    table = pandas.read_csv(io.StringIO(text), dtype=str).fillna("")
    columns = ["system", "corpus", "test", "metric", "value", "published", "seed"]
    first_rows = table[columns].to_numpy().tolist()[:2]
    assert first_rows == [
        ["Paper", "talks-en-fr", "only", "tokenized", "35.0", "Doe 2020, Table 3", ""],
        ["Paper", "news-en-de", "second", "bleu", "36.25", "Doe 2020, Table 3", ""],
    ]
    assert set(table.system[2:]) == {"tiny", "small"}


def test_the_code_in_the_docs_reads_any_report(tmp_path):
    """Users copy the Python code of docs/report.md and run it in the folder of their experiment."""
    RECORDS.save(tmp_path / "reports" / "results.json")
    docs = (ROOT / "docs" / "report.md").read_text("utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", docs, re.DOTALL))

    process = processes.run([sys.executable, "-c", code], tmp_path, os.environ)

    process.check_returncode()


def test_results_return_a_row_for_each_metric(tmp_path):
    """`bleuprint.results(FOLDER)` is for notebooks, and returns a pandas table.

    This folder contains results.json alone; the times of trainings are in other files.
    """
    RECORDS.save(tmp_path / "reports" / "results.json")

    table = bleuprint.results(tmp_path)

    assert list(table.columns) == list(COLUMNS)
    assert list(table.value) == list(RECORDS.metrics.value)
    assert table.train_seconds.isna().all()


def test_the_docs_show_what_their_code_prints_of_the_committed_report(monkeypatch, capsys):
    """Docs/report.md shows Python code, and below it what it prints in this repository."""
    docs = (ROOT / "docs" / "report.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", docs, re.DOTALL)
    code, shown_output = blocks[0]
    monkeypatch.chdir(ROOT)

    exec(code, {})

    assert capsys.readouterr().out == shown_output


def test_importing_the_package_does_not_load_pandas():
    """Commands that read no results would wait for it."""
    code = "import sys, bleuprint; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
