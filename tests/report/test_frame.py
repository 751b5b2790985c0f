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
from bleuprint.config.published import Published
from bleuprint.report import records
from bleuprint.report.frame import COLUMNS, csv_text
from result_trees import against, record, timings
from root import ROOT

RECORDS = [
    record("tiny", "news-en-de", "first", 31.11),
    record("tiny", "news-en-de", "second", 32.22),
    record("tiny", "talks-en-fr", "only", 33.33, training_flops=5e17),
    record("small", "news-en-de", "first", 41.11, paired=against("tiny", 0.000999)),
    record("small", "news-en-de", "second", 42.22, paired=against("tiny", 0.05)),
    record("small", "talks-en-fr", "only", 43.33, paired=against("tiny", 0.049)),
]


def test_csv_reads_back_whole() -> None:
    text = csv_text(RECORDS, timings(RECORDS, missing="small"))
    frame = pandas.read_csv(io.StringIO(text), dtype={"hypotheses_sha256": str})
    assert len(frame) == len(RECORDS)
    for row, one in zip(frame.to_dict("records"), RECORDS, strict=True):
        assert [row[name] for name in ("system", "corpus", "seed", "test", "source", "target")] == [
            *(one.system, one.corpus, one.seed, one.test, one.source, one.target),
        ]
        assert (row["bleu"], row["bleu_low"], row["bleu_high"]) == (
            *(one.bleu.score, one.bleu.low, one.bleu.high),
        )
        assert (row["chrf2"], row["chrf2_low"], row["chrf2_high"]) == (
            *(one.chrf.score, one.chrf.low, one.chrf.high),
        )
        assert (row["bleu_signature"], row["chrf2_signature"]) == (
            *(one.bleu.signature, one.chrf.signature),
        )
        assert row["training_flops"] == one.training_flops
        for name in ("engine", "precision", "beam"):
            assert row[name] == one.decode[name]
        penalty = {key: row[f"length_penalty.{key}"] for key in ("kind", "alpha")}
        assert penalty == one.decode["length_penalty"]
        assert row["hypotheses_sha256"] == one.data.hypotheses
    small = frame[frame.system == "small"]
    assert small.train_seconds.isna().all() and small.device.isna().all()
    assert (small.baseline == "tiny").all()
    assert list(small.p_bootstrap) == [0.000999, 0.05, 0.049]
    assert list(small.p_randomisation) == [0.000999, 0.05, 0.049]
    assert list(small.difference) == [10.0] * 3
    assert list(small.p) == list(small.p_holm) == [0.000999, 0.05, 0.049]
    assert list(small.ter) == pytest.approx([32.11, 33.22, 34.33])
    assert list(small.length_ratio) == [0.98] * 3
    tiny = frame[frame.system == "tiny"]
    assert tiny.p_bootstrap.isna().all() and tiny.difference.isna().all()
    assert frame.published.isna().all() and (frame.scored == "sacrebleu").all()
    assert list(tiny.train_seconds) == [43_200.0, 43_200.0, 61.0]
    assert list(tiny.training_flops_by_time) == pytest.approx([1.6416e18, 1.6416e18, 2.318e15])
    told = tiny[["devices", "sustained_flops", "sustained_from", "peak_flops", "peak_from", "mfu"]]
    assert list(told.iloc[0]) == [4, 9.5e12, "paper", 9.3e12, "known", 0.3509]
    assert small.training_flops_by_time.isna().all() and small.mfu.isna().all()


def test_published_numbers_come_first_and_say_so() -> None:
    numbers = [
        Published("Paper", "Doe 2020, Table 3", "talks-en-fr", "only", 35.0, "tokenised"),
        Published("Paper", "Doe 2020, Table 3", "news-en-de", "second", 36.25, "otherwise"),
    ]
    text = csv_text(RECORDS, timings(RECORDS), numbers)
    rows = pandas.read_csv(io.StringIO(text), dtype=str).fillna("").to_dict("records")
    names = ("system", "corpus", "test", "bleu", "published", "scored", "seed")
    assert [[row[name] for name in names] for row in rows[:2]] == [
        ["Paper", "talks-en-fr", "only", "35.0", "Doe 2020, Table 3", "tokenised", ""],
        ["Paper", "news-en-de", "second", "36.25", "Doe 2020, Table 3", "otherwise", ""],
    ]
    assert [row["system"] for row in rows[2:]] == [one.system for one in RECORDS]


def test_the_lines_of_the_docs_plot_bleu_by_flops(tmp_path: Path) -> None:
    records.save(RECORDS, tmp_path / "reports" / "results.json")
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([line for line in lines.split("\n") if line]) <= 5
    environment = {**os.environ, "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "bleu_by_flops.png").stat().st_size > 1000
    frame = bleuprint.results(tmp_path)
    assert list(frame.bleu) == [record.bleu.score for record in RECORDS]
    assert frame.train_seconds.isna().all()  # no outputs of trainings are here
    documented = re.findall(r"^\| `(.*?)` \| (.*) \|$", text.partition("| meaning, unit")[2], re.M)
    assert dict(documented[: len(COLUMNS)]) == COLUMNS and list(frame.columns) == list(COLUMNS)


def test_the_package_is_imported_without_pandas() -> None:
    code = "import sys, bleuprint; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
