"""Errors in the report: damaged outputs are seen, tested against the baseline, and shown."""

import random
from math import isnan

import pytest

import result_trees as trees
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.report import pivot_tables
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.metric_rows import SharedPValue, add_corrected_p_values
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.scores import errors_section
from bleuprint.report.records import collect
from bleuprint.report.report import table_md
from bleuprint.report.score_frame import score_frame
from bleuprint.report.table import Table
from bleuprint.runs.results import Results
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring.score import score_run
from bleuprint.text.parallel import TextFolder, read_lines
from bleuprint.tracking.run_content import score_metrics
from result_rows import labels_of, rows_of, score_of

CORPUS, TEST = "news-en-de", "first"
# Of 100 lines: the baseline loses three numbers, the damaged system these and nine more.
LOST = {"tiny": 3, "small": 12}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Sources with a number, references with the same, and outputs without some of them."""
    root = tmp_path_factory.mktemp("errors")
    settings = trees.settings_in(root, corpora={CORPUS: (TEST,)})
    trees.write_all(root, settings)
    source, target = TextFolder(corpus_folder(CORPUS, "split", root), "en", "de").files(
        f"test.{TEST}"
    )
    for path in (source, target):
        trees.write_lines(path, [f"7 {line}" for line in [*read_lines(path)]])
    trees.describe(root, settings, CORPUS)
    lost = random.Random(1).sample(range(40), 12)
    for system, count in LOST.items():
        numbered = enumerate(read_lines(target))
        broken = [line[2:] if n in lost[:count] else line for n, line in numbered]
        trees.translate(root, settings, Run(system, CORPUS, 1), TEST, broken)
    with pytest.MonkeyPatch.context() as patch:
        trees.all_samples(patch)
        collect(settings, root).save(root / RESULTS)
    return root, settings


def test_damaged_outputs_are_in_the_record(made):
    root, _ = made
    records = load(root)
    for system, lost in LOST.items():
        score = score_of(records, system, "numbers")
        assert score.value == lost
        assert 0 < score.ci_low < lost < score.ci_high < 40
    assert isnan(score_of(records, "tiny", "numbers").difference)
    # McNemar's exact test of nine lines against none: 2 * 0.5 ** 9
    assert score_of(records, "small", "numbers").p == pytest.approx(0.003906, abs=0.002)
    # a committed report has no sentence
    assert trees.WORD not in (root / RESULTS).read_text("utf-8")


def test_damage_is_in_every_table(made, monkeypatch):
    root, settings = made
    records = load(root)
    small = rows_of(pivot_tables.error_table(score_frame(records)))["small"]
    assert small["numbers"].startswith("12 [") and small["numbers"].endswith("]‡")
    assert small["numbers"] in table_md(settings, records, root)
    section = errors_section(ReportData(settings, records, root))
    assert small["numbers"].replace("[", "<span>[") in section.body
    monkeypatch.chdir(root)
    shown = [part for part in compare("tiny", "small") if isinstance(part, Table)]
    rows = [shown[-1].texts(row) for row in shown[-1].rows]
    (row,) = (row for row in rows if row[2] == "numbers")
    assert row[3:6] == ["3", "12", "+9.0"] and row[6].startswith("0.00")
    results = Results.open(settings, Run("small", CORPUS, 1))
    assert score_metrics(CORPUS, results.scores)[f"test_lines_with_errors/{CORPUS}/first"] >= 12


def test_holms_correction_is_over_all_systems_and_errors():
    """Of five tests, 0.009 holds (times five), and 0.02 does not (times four)."""
    p = {
        ("a", "any error"): 0.009,
        ("a", "numbers"): 0.02,
        ("a", "repetition"): 1.0,
        ("b", "any error"): 0.3,
        ("b", "numbers"): 0.5,
        ("a", "bleu"): 0.02,
    }
    tested = [
        SharedPValue(each, [{"system": system, "metric": metric, "group": ""}])
        for (system, metric), each in p.items()
    ]
    add_corrected_p_values(tested)
    corrected = {(row["system"], row["metric"]): row["p_holm"] for _, (row,) in tested}
    assert corrected["a", "any error"] == pytest.approx(0.045)
    assert corrected["a", "numbers"] == pytest.approx(0.08)
    assert corrected["a", "bleu"] == 0.02


def test_outputs_cut_at_their_maximum_length_are_counted(tmp_path):
    """Of the second seed of one system; the other runs, without a count, have none."""
    root, run = tmp_path / "cut", Run("small", CORPUS, 2)
    settings = trees.settings_in(root, corpora={CORPUS: (TEST,)}, seeds=(1, 2))
    trees.write_all(root, settings)
    whole = collect(settings, root)
    assert "cut off" not in set(whole.metrics.metric)
    text = table_md(settings, whole, root)
    record = root / run.results_folder / "translation.json"
    write_json(record, {**read_json(record), "cut": {TEST: [3, 7, 40]}})
    score_run(settings, *run, root)
    records = collect(settings, root)
    rows = records.metrics[records.metrics.metric == "cut off"]
    counts = {(row.system, row.seed): row.value for row in rows.itertuples()}
    assert counts == {("tiny", 1): 0, ("tiny", 2): 0, ("small", 1): 0, ("small", 2): 3}
    assert score_of(records, "small", "cut off").value == 1.5
    cut_text = table_md(settings, records, root)
    assert "cut off: the translation ended at the maximum length" in cut_text
    assert "cut off: the" not in text
    for table in (text, cut_text):
        notes, _, _ = table.partition("\n\n## Training cost\n")
        assert notes != table and not notes.endswith("\n")
    assert "cut off" in labels_of(pivot_tables.error_table(score_frame(records)))
    assert "cut off" not in labels_of(pivot_tables.error_table(score_frame(whole)))
    shown = errors_section(ReportData(settings, records, root)).data
    assert shown["notes"][-1].endswith("where the model preferred to go on")
