"""The results as a DataFrame and as CSV: every figure, read back by another reader."""

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
from result_rows import TWO_SYSTEMS, frame
from root import ROOT

MEASURED_HERE = {
    *("train_seconds", "train_tokens_per_second", "peak_memory", "device", "processes", "threads"),
    *("commit", "devices", "training_flops_by_time", "mfu"),
}
RECORDS = frame(*TWO_SYSTEMS, missing="small")


def test_csv_reads_back_whole():
    table = pandas.read_csv(io.StringIO(csv_text(RECORDS)), dtype={"signature": str})
    assert not MEASURED_HERE & {*table.columns} and {*table.columns} <= {*COLUMNS}
    for row in TWO_SYSTEMS:
        place = {name: row["facts"][name] for name in RUN_AND_TEST}
        found = table[(table[[*place]] == [*place.values()]).all(axis=1)]
        by_key = {
            (r["metric"], r["group"]): r for r in found.astype(object).fillna("").to_dict("records")
        }
        assert set(by_key) == set(row["metrics"])
        for key, expected in row["metrics"].items():
            for name in ("value", "ci_low", "ci_high", "signature", "units"):
                value = "" if expected[name] is None else expected[name]
                assert by_key[key][name] == value, (key, name)
    small = table[(table.system == "small") & (table.metric == "bleu") & table.group.isna()]
    assert (small.baseline == "tiny").all()
    assert list(small.p) == list(small.p_holm) == [0.000999, 0.05, 0.049]
    assert list(small.p_randomization) == [0.000999, 0.05, 0.049]
    assert list(small.difference) == [10.0] * 3
    assert table[table.system == "tiny"].difference.isna().all() and table.published.isna().all()
    costs = pandas.read_csv(io.StringIO(costs_csv(RECORDS.runs)))
    assert set(costs.columns) >= MEASURED_HERE | {"versions", "sustained_flops", "peak_flops"}
    tiny, small = (costs[costs.system == name] for name in ("tiny", "small"))
    assert list(tiny.train_seconds) == [43_200.0, 61.0]
    assert list(tiny.training_flops_by_time) == pytest.approx([1.6416e18, 2.318e15])
    assert small.train_seconds.isna().all() and small.device.isna().all()


@pytest.mark.parametrize(
    ("lost", "problem"),
    [
        ("runs", "field metrics.0: runs contains no row of this run"),
        ("metrics", "field runs.0: metrics contains no bleu of this run"),
    ],
)
def test_records_without_a_run_or_its_bleu_are_refused(tmp_path, lost, problem):
    RECORDS.save(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    names = {"metric": "bleu", "group": ""} if lost == "metrics" else {}
    content[lost].remove(next(row for row in content[lost] if names.items() <= row.items()))
    (tmp_path / "results.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=f"json is damaged: {problem}"):
        read_without_costs(tmp_path / "results.json")


def test_published_numbers_come_first_and_say_so():
    numbers = [
        Published("Paper", "Doe 2020, Table 3", "talks-en-fr", "only", 35.0, "tokenized"),
        Published("Paper", "Doe 2020, Table 3", "news-en-de", "second", 36.25, "sacrebleu"),
    ]
    text = csv_text(with_published_numbers(RECORDS, numbers))
    rows = pandas.read_csv(io.StringIO(text), dtype=str).fillna("").to_dict("records")
    names = ("system", "corpus", "test", "metric", "value", "published", "seed")
    assert [[row[name] for name in names] for row in rows[:2]] == [
        ["Paper", "talks-en-fr", "only", "tokenized", "35.0", "Doe 2020, Table 3", ""],
        ["Paper", "news-en-de", "second", "bleu", "36.25", "Doe 2020, Table 3", ""],
    ]
    assert {row["system"] for row in rows[2:]} == {"tiny", "small"}


def test_the_lines_of_the_docs_give_a_row_for_each_metric(tmp_path):
    RECORDS.save(tmp_path / "reports" / "results.json")
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    lines = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    processes.run([sys.executable, "-c", lines], tmp_path, os.environ).check_returncode()
    table = bleuprint.results(tmp_path)
    assert list(table.value) == list(RECORDS.metrics.value)
    assert table.train_seconds.isna().all()  # no outputs of trainings are here
    assert list(table.columns) == list(COLUMNS)


def test_the_rows_that_the_docs_print_are_those_of_the_committed_report(monkeypatch, capsys):
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    lines, printed = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)[0]
    monkeypatch.chdir(ROOT)
    exec(lines, {})
    assert capsys.readouterr().out == printed


def test_the_package_is_imported_without_pandas():
    code = "import sys, bleuprint; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
