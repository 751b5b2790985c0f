"""The results as a DataFrame and as CSV: every figure, read back by another reader."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import bleuprint
import processes
from bleuprint.config.published import Published
from bleuprint.report import main_table
from bleuprint.report.frame import COLUMNS, costs_csv, csv_text, load, save
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from result_rows import TWO_SYSTEMS, frame
from root import ROOT

HASHES = {name: str for name in COLUMNS if name.endswith("_sha256")}
MEASURED = {
    *("train_seconds", "train_tokens_per_second", "peak_memory", "device", "processes", "threads"),
    *("commit", "devices", "sustained_flops", "training_flops_by_time", "peak_flops", "mfu"),
    "translate_seconds",
}
RECORDS = frame(*TWO_SYSTEMS, missing="small")


def test_csv_reads_back_whole() -> None:
    table = pandas.read_csv(io.StringIO(csv_text(RECORDS)), dtype=HASHES)
    assert not MEASURED & set(table.columns)
    assert list(table.columns) == [name for name in COLUMNS if name not in MEASURED]
    for row, given in zip(table.to_dict("records"), TWO_SYSTEMS, strict=True):
        for name in set(table.columns) & given.keys():
            read = None if pandas.isna(row[name]) else row[name]
            assert read == given[name], name
    small = table[table.system == "small"]
    assert (small.baseline == "tiny").all()
    assert list(small.p_bootstrap) == [0.000999, 0.05, 0.049]
    assert list(small.p_randomization) == [0.000999, 0.05, 0.049]
    assert list(small.difference) == [10.0] * 3
    assert list(small.p) == list(small.p_holm) == [0.000999, 0.05, 0.049]
    assert list(small.ter) == pytest.approx([32.11, 33.22, 34.33])
    assert list(small.length_ratio) == [0.98] * 3
    tiny = table[table.system == "tiny"]
    assert tiny.p_bootstrap.isna().all() and tiny.difference.isna().all()
    assert table.published.isna().all() and (table.scored == "sacrebleu").all()
    costs = pandas.read_csv(io.StringIO(costs_csv(RECORDS)), dtype=HASHES)
    assert set(costs.columns) - set(table.columns) == MEASURED | {"versions"}
    tiny, small = (costs[costs.system == name] for name in ("tiny", "small"))
    assert list(tiny.train_seconds) == [43_200.0, 61.0]
    assert list(tiny.training_flops_by_time) == pytest.approx([1.6416e18, 2.318e15])
    rates = tiny[["devices", "sustained_flops", "peak_flops", "mfu"]]
    assert list(rates.iloc[0]) == [4, 9.5e12, 9.3e12, 0.3509]
    assert small.train_seconds.isna().all() and small.device.isna().all()


def test_published_numbers_come_first_and_say_so() -> None:
    numbers = [
        Published("Paper", "Doe 2020, Table 3", "talks-en-fr", "only", 35.0, "tokenized"),
        Published("Paper", "Doe 2020, Table 3", "news-en-de", "second", 36.25, "otherwise"),
    ]
    text = csv_text(RECORDS, numbers)
    rows = pandas.read_csv(io.StringIO(text), dtype=str).fillna("").to_dict("records")
    names = ("system", "corpus", "test", "bleu", "published", "scored", "seed")
    assert [[row[name] for name in names] for row in rows[:2]] == [
        ["Paper", "talks-en-fr", "only", "35.0", "Doe 2020, Table 3", "tokenized", ""],
        ["Paper", "news-en-de", "second", "36.25", "Doe 2020, Table 3", "otherwise", ""],
    ]
    assert [row["system"] for row in rows[2:]] == list(RECORDS.system)


def test_the_lines_of_the_docs_plot_bleu_by_flops(tmp_path: Path) -> None:
    save(RECORDS, tmp_path / "reports" / "results.json")
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    lines = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    environment = {**os.environ, "MPLBACKEND": "agg"}
    processes.run([sys.executable, "-c", lines], tmp_path, environment).check_returncode()
    assert (tmp_path / "bleu_by_flops.png").stat().st_size > 1000
    table = bleuprint.results(tmp_path)
    assert list(table.bleu) == list(RECORDS.bleu)
    assert table.train_seconds.isna().all()  # no outputs of trainings are here
    assert list(table.columns) == list(COLUMNS)


def test_the_rows_that_the_docs_print_are_those_of_the_committed_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    lines, printed = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)[0]
    monkeypatch.chdir(ROOT)
    exec(lines, {})
    assert capsys.readouterr().out == printed


def test_the_package_is_imported_without_pandas() -> None:
    code = "import sys, bleuprint; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_report_of_an_earlier_version_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "reports" / "results.json"
    save(RECORDS, path)
    rows = read_json(path)
    for row in rows:
        for name in [*row]:
            if "chrf2pp" in name or "human_agreement" in name or "standard_error" in name:
                del row[name]
    write_json(path, rows)
    records = load(tmp_path)
    assert list(records.bleu) == list(RECORDS.bleu) and records.chrf2pp.isna().all()
    note = f"{path}: of an earlier version, without 17 columns such as chrf2pp; run: dvc repro\n"
    assert capsys.readouterr().err == f"bleuprint: note: {note}"
    heads = [column.label for column in main_table.scores(records, ["bleu", "chrf2pp"]).columns]
    assert "people agree" in heads and "chrF2++" not in heads
    del rows[0]["p_holm"]
    write_json(path, rows)
    with pytest.raises(UserError, match="was not written by this version; run: dvc repro"):
        load(tmp_path)
