"""The report stage, from a tree of results to the files in reports/."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys

import pandas
import pytest
from ruamel.yaml import YAML

import result_trees as trees
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.report import notes, report
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.records import check_settings, collect
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import wide_bleu_table
from bleuprint.report.table import NONE
from bleuprint.report.terminal import show
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, write_json
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.training.history import EarlyEnd
from pages import Page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """As conftest's, with one seed, so that a score is a row's."""
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root)
    trees.write_all(root, settings)
    return root, settings


def contents(root):
    files = [file for file in (root / "reports").iterdir() if file.name != "resolved.json"]
    return {file.name: file.read_bytes() for file in files}


def test_a_training_that_patience_ended_is_noted(tmp_path, capsys, monkeypatch):
    settings = trees.settings_in(tmp_path, ("tiny", "small"), {"news-en-de": ("first",)})
    trees.write_all(tmp_path, settings)
    path = tmp_path / "results" / "small" / "news-en-de" / "1" / "training.json"
    early_end = EarlyEnd(30, 700, "bleu", 3, 0.003, 15, warmup_updates=4000)
    write_json(path, {**json.loads(path.read_text()), "early_end": dataclasses.asdict(early_end)})
    report.write_reports(settings, tmp_path)
    expected = (
        "small on news-en-de, seed 1, ended at update 30 of 700: bleu has not improved in 3 "
        "validations (best 0.003 at update 15); warmup of 4,000 updates was not over: raise "
        "train.patience or train.validate_interval"
    )
    assert f"- {expected}." in contents(tmp_path)["table.md"].decode()
    page = " ".join(contents(tmp_path)["index.html"].decode().split())
    assert "Training runs that may have ended too early" in page
    assert expected in page
    monkeypatch.chdir(tmp_path)
    records = load(tmp_path)
    for parts in (one_screen(records), everything(records)):
        show(parts)
        assert f"{expected}." in " ".join(capsys.readouterr().out.split())


def test_writes_all_reports(written):
    root, _ = written
    names = {
        "index.html",
        "results.json",
        "metrics.json",
        "table.md",
        "table.csv",
        "costs.csv",
        "table.tex",
    }
    assert set(contents(root)) == names | {"training.csv", "validation.csv"}
    page = contents(root)["table.md"].decode()
    records = load(root)
    for row in records.to_frame().itertuples():
        if row.metric in ("bleu", "chrf2", "chrf2pp", "ter") and not row.group:
            assert f"{row.value:.1f} [{row.ci_low:.1f}, {row.ci_high:.1f}]" in page
            assert f"`{row.signature}`" in page
        elif row.metric == "length_ratio":
            assert f"{row.value:.3f}" in page
    for run in records.runs.itertuples():
        split = root / "data" / "split" / run.corpus
        assert sha256_of(split / f"test.{run.test}.{run.target}")[:12] in page
    for title in ("news-en-de, first", "talks-en-fr, only", "Word recall by training frequency"):
        assert f"## {title}\n\n| System " in page
    funnel = " ".join(page.split())
    for corpus in ("news-en-de", "talks-en-fr"):
        assert (
            f"| {corpus} | clean | train | clean_rule 1 | clean_edit 7 | 9,999 | 9,998 |" in funnel
        )
    assert "Test CPU" not in page
    latex = contents(root)["table.tex"].decode()
    assert latex.startswith("% Needs \\usepackage{booktabs,graphicx}.\n")
    assert "\\caption{Results of trial\\_run." in latex
    assert latex.count("\\begin{tabular}") == latex.count("\\end{tabular}") == 2


def test_counted_costs_are_in_the_tables_and_measured_ones_beside_them(written):
    root, _ = written
    page, latex = (contents(root)[f"table.{kind}"].decode() for kind in ("md", "tex"))
    scores = next(line for line in page.splitlines() if line.startswith("| Baseline: tiny"))
    assert [cell.strip() for cell in scores.split("|")][-2] == "4.2e12"
    assert "MFU, model FLOPs utilization" in page and "& 4.2e12 &" in latex
    costs = pandas.read_csv(root / "reports" / "costs.csv")
    # 3,725 s x 1 x 3e12
    assert (costs.train_seconds[0], costs.training_flops_by_time[0]) == (3725.0, 1.1175e16)
    assert b"1.1e16" in contents(root)[report.HTML_REPORT]
    assert b"1.5 GB" in contents(root)[report.HTML_REPORT]


def test_the_page_is_written_again_where_results_came_without_it(copy):
    root, settings = copy
    report.write_reports(settings, root)
    page, results = root / "reports" / report.HTML_REPORT, root / RESULTS
    before = page.stat().st_mtime_ns
    report.write_html_report_if_outdated(settings, load(root), root)
    assert page.stat().st_mtime_ns == before
    later = page.stat().st_mtime + 10
    os.utime(results, (later, later))
    report.write_html_report_if_outdated(settings, load(root), root)
    assert page.stat().st_mtime_ns > before
    page.unlink()
    report.write_html_report_if_outdated(settings, load(root), root)
    assert b"1.5 GB" in page.read_bytes()
    page.unlink()
    (output, _) = sorted(root.glob("results/tiny/*/1/hypotheses/*"))[:2]
    shown = output.read_bytes()
    output.write_bytes(shown.replace(b"a", b"b"))  # of another commit than the results
    report.write_html_report_if_outdated(settings, load(root), root)
    assert not page.exists()
    output.write_bytes(shown)
    report.write_html_report_if_outdated(settings, load(root), root)
    page.unlink()
    shutil.rmtree(root / "data")
    report.write_html_report_if_outdated(settings, load(root), root)
    assert not page.exists() and not list(page.parent.glob(".*"))


def test_without_a_filter_stats_no_report_is_written(copy):
    root, settings = copy
    (root / "data" / "filter_stats" / "talks-en-fr" / "dedup.json").unlink()
    with pytest.raises(UserError, match=r"talks-en-fr/dedup\.json: no such file"):
        report.write_reports(settings, root)
    assert contents(root) == {}


def test_no_sentence_of_a_corpus_in_what_is_committed(written):
    root, _ = written
    hypotheses = (root / Run("tiny", "news-en-de", 1).results_folder) / "hypotheses"
    assert trees.WORD in (hypotheses / "test.first.de").read_text("utf-8")
    assert trees.WORD in (root / "data/filter_stats/news-en-de/clean.json").read_text("utf-8")
    for name, content in contents(root).items():
        # the page quotes sentences, and so is not committed
        assert (trees.WORD.encode() in content) == (name == report.HTML_REPORT), name


def test_results_repeat_and_hold_nothing_measured(copy):
    root, settings = copy
    report.write_reports(settings, root)
    before = contents(root)
    report.write_reports(settings, root)
    assert contents(root) == before
    shutil.rmtree(root / "timings")
    report.write_reports(settings, root)
    after = contents(root)
    measured = {"index.html", "costs.csv"}
    assert {name for name in before if b"Test CPU" in before[name]} == measured
    # costs.csv keeps what it had of the same trainings
    assert after["costs.csv"] == before["costs.csv"] and after["table.csv"] == before["table.csv"]
    (root / "reports/costs.csv").unlink()
    report.write_reports(settings, root)
    after = contents(root)
    assert {name for name in before if after[name] != before[name]} == measured


def test_a_low_bleu_ceiling_stands_at_the_scores(copy, monkeypatch):
    root, settings = copy
    whole, low = {"clean": 100.0, "tokenize": 99.5}, {"clean": 99.8, "tokenize": 58.94}
    path = root / "data" / "corpus_stats" / "news-en-de" / "bleu_ceiling.json"
    write_json(path, {"first": whole, "second": low})
    report.write_reports(settings, root)
    note = "BLEU ceiling of second on news-en-de: 58.9 (clean -0.2, tokenize -40.9). "
    table = contents(root)["table.md"].decode()
    assert table.count("BLEU ceiling") == table.split("## Other scores")[0].count(f"- {note}") == 1
    assert note in contents(root)["table.tex"].decode()
    text = Page(contents(root)["index.html"].decode()).sections["summary"]
    assert text.count("BLEU ceiling") == text.count(note.replace(":", ".", 1)) == 1
    monkeypatch.chdir(root)
    for parts in (everything(load()), one_screen(load())):
        texts = [" ".join(part.split()) for part in parts if isinstance(part, str)]
        assert [text.startswith(note) for text in texts].count(True) == 1
    assert "Reachable" not in " ".join(notes.all_notes(load()))


def test_a_run_left_out_is_a_dash(tmp_path, monkeypatch):
    """`tiny` is on both corpora, `small` on the first, `last` on the second alone."""
    settings = trees.settings_in(tmp_path, systems=("tiny", "small", "last"))
    trees.write_all(tmp_path, settings)
    params = tmp_path / "params.yaml"
    document = load_yaml(params)
    document["systems"]["small"]["corpora"] = {"news-en-de": {}}
    document["systems"]["last"]["corpora"] = {"talks-en-fr": {}}
    with params.open("w") as file:
        YAML().dump(document, file)
    settings = load_settings(params)
    report.write_reports(settings, tmp_path)
    records = load(tmp_path)
    expected = [("tiny", "news-en-de"), ("tiny", "talks-en-fr")]
    expected += [("small", "news-en-de"), ("last", "talks-en-fr")]
    places = records.runs[["system", "corpus"]].drop_duplicates()
    assert list(places.itertuples(index=False, name=None)) == expected
    assert set(records.metrics.baseline.dropna()) == {"tiny"}
    check_settings(records, settings, RESULTS)

    table = wide_bleu_table(score_frame(records))
    groups = [column.group.partition(",")[0] for column in table.columns]
    for system, left_out in (("small", "talks-en-fr"), ("last", "news-en-de")):
        (texts,) = [texts for texts in map(table.texts, table.rows) if texts[0] == system]
        dashes = {group for group, text in zip(groups, texts, strict=True) if text == NONE}
        full = {group for group, text in zip(groups, texts, strict=True) if text != NONE}
        assert dashes == {left_out} and left_out not in full
    texts = {name: text.decode() for name, text in contents(tmp_path).items()}
    bleu = json.loads(texts["metrics.json"])["BLEU"]
    assert {(name, corpus) for name, each in bleu.items() for corpus in each} == set(expected)
    runs = pandas.read_csv(tmp_path / "reports/validation.csv")[["system", "corpus"]]
    assert set(runs.itertuples(index=False, name=None)) == set(expected)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^small and last: have no test set in common"):
        list(compare("small", "last"))


def test_a_baseline_is_the_first_system_of_its_corpus(tmp_path):
    settings = trees.settings_in(tmp_path, systems=("tiny", "small", "last"))
    trees.write_all(tmp_path, settings)
    runs = {**settings.runs, "tiny": {**settings.runs["tiny"], "talks-en-fr": None}}
    settings = dataclasses.replace(settings, runs=runs)
    report.write_reports(settings, tmp_path)
    records = load(tmp_path)
    baselines = records.metrics.groupby("corpus").baseline.agg(
        lambda names: "".join(set(names.dropna()))
    )
    assert baselines.to_dict() == {"news-en-de": "tiny", "talks-en-fr": "small"}
    table = wide_bleu_table(score_frame(records))
    heads = [table.texts(row)[0] for row in table.rows]
    assert heads == ["Baseline: tiny", "small", "last"]  # small has a difference from tiny, too
    (note,) = [note for note in notes.all_notes(records) if note.startswith("Δ is")]
    assert "from tiny, on corpora without it from small." in note


def test_the_terminals_table_loads_no_torch(made):
    """It takes two seconds; the page, which shows the model, is written after a run only."""
    root, settings = made
    collect(settings, root).save(root / RESULTS)
    (root / "reports" / "index.html").touch()
    code = """
import sys
from pathlib import Path
from bleuprint.config.experiment import load_settings
from bleuprint.report import frame, overview, report
from bleuprint.report.terminal import show
records = frame.load(Path())
report.write_html_report_if_outdated(load_settings(), records)
show(overview.one_screen(records))
sys.exit('torch' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0 and "tiny" in done.stdout, done.stderr
