"""Below the floor nothing is claimed, wherever a report makes claims."""

import csv
import io
import json
from collections import Counter
from math import isnan

import pytest
from sacrebleu import BLEU

import result_trees as trees
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.report import frame as frames
from bleuprint.report import notes, report, score_tables
from bleuprint.report.compare import compare
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.page.findings import best_systems
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.summary import summary_section
from bleuprint.report.records import collect
from bleuprint.report.render import markdown
from bleuprint.report.score_frame import score_frame
from bleuprint.report.table import Table
from bleuprint.runs.results import Results
from bleuprint.scoring.floor import MATCHED_4_GRAMS, below_floor
from bleuprint.scoring.metrics import METRICS
from bleuprint.text.parallel import read_lines
from measuring import texts_of
from result_rows import against, frame, measured, record, score_of
from tools.readme_tables import recipe_row

PLACE = "news-en-de", "first"
AGAINST = against("base", 0.001)
CLAIMS = ("†", "‡", "n.s.", "**", "human agreement", "p=", "p<", "Minimum detectable")


def pair(lines, low=(), seeds=(1,), **facts):
    """A baseline and a system that is far better, on so many lines; `low` match three 4-grams."""
    rows = []
    for seed in seeds:
        for name, bleu, tested in (("base", 20.0, {}), ("big", 24.0, AGAINST)):
            few = {(MATCHED_4_GRAMS, ""): measured(MATCHED_4_GRAMS, 3.0)} if name in low else {}
            more = {**facts, **tested} if name == "big" else tested
            # differences between seeds that are not all the same
            value = bleu + seed * (0.01 if name == "big" else 0.02)
            rows.append(record(name, *PLACE, value, seed=seed, lines=lines, metrics=few, **more))
    return frame(*rows)


def text_of(records):
    """All that is shown of the scores, without how to read the marks and the names of test sets."""
    tables = score_tables.tables_by_test_set(score_frame(records), ["bleu", "chrf2"]).values()
    shown = [markdown(table) for table in tables]
    shown += [part for part in one_screen(records) if isinstance(part, str)]
    shown += [markdown(part) for part in everything(records) if isinstance(part, Table)]
    lines = "\n".join(shown).replace("&lt;", "<").split("\n")
    return "\n".join(
        line for line in lines if not line.startswith(("Δ is the difference from", "| **"))
    )


def claims(records):
    text = text_of(records)
    return [claim for claim in CLAIMS if claim in text]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "2000")


def test_a_hundred_sentences_are_enough():
    assert claims(pair(100)) == ["‡", "**", "human agreement", "p=", "Minimum detectable"]


@pytest.mark.parametrize(
    ("records", "title"),
    [
        (pair(99), "too few sentences to compare"),
        (pair(500, low=("base", "big")), "too low to compare"),
        (pair(27, low=("base", "big")), "too low to compare"),
        (pair(500, low=("base", "big"), seeds=(1, 2, 3)), "too low to compare"),
    ],
)
def test_below_the_floor_nothing_is_claimed(records, title):
    if title == "too low to compare":  # as the report collects them
        records.metrics[["p", "p_holm", "p_randomization", "standard_error"]] = float("nan")
    assert claims(records) == []
    text = text_of(records)
    assert f"news-en-de, first: {title}" in text or f"base are {title}" in text
    assert "+4.0" in text  # the difference is a fact
    (finding,) = best_systems(score_frame(records), {})
    assert finding.title == f"news-en-de: {title}"
    (row,) = [
        row
        for row in csv.DictReader(io.StringIO(frames.csv_text(records)))
        if row["system"] == "big" and row["metric"] == "bleu" and not row["group"]
    ][:1]
    assert row["difference"] and not row["p"] + row["p_holm"] + row["standard_error"]


def test_a_test_over_seeds_stays():
    records = pair(50, seeds=(1, 2, 3))
    assert claims(records) == ["‡", "**", "human agreement", "p<", "Minimum detectable"]
    # of 50 sentences nothing is said
    (line,) = [each for each in notes.all_notes(records) if each.startswith("Minimum detectable")]
    assert "BLEU over 3 seeds." in line
    assert "50 sentences" not in line


def test_translations_of_others_are_tested_over_sentences():
    records = pair(50, seeds=(1, 2, 3), about="A")
    assert claims(records) == []
    assert "too few sentences to compare" in text_of(records)


OLDER = "nrefs:1|tok:13a|version:2.4.0"


@pytest.mark.parametrize("lines", [60, 500])
def test_scores_that_are_not_comparable_have_no_difference_on_either_side_of_the_floor(lines):
    records = pair(lines)
    is_bleu_of_big = (records.metrics.system == "big") & (records.metrics.metric == "bleu")
    records.metrics.loc[is_bleu_of_big, "signature"] = OLDER
    # as the report collects them
    records.metrics.loc[is_bleu_of_big, ["p", "p_holm", "standard_error"]] = float("nan")
    assert isnan(score_of(records, "big").difference)
    # other metrics are comparable
    of_chrf = score_of(records, "big", "chrf2")
    assert of_chrf.difference == pytest.approx(4.0, abs=0.1)
    assert isnan(of_chrf.p) == (lines != 500)


def test_below_the_floor_a_score_that_the_baseline_lacks_has_no_difference():
    records = pair(60)
    is_bleu_of_base = (records.metrics.system == "base") & (records.metrics.metric == "bleu")
    without = frames.Records(records.runs, records.metrics[~is_bleu_of_base])
    assert isnan(score_of(without, "big").difference)
    assert score_of(without, "big", "ter").difference == pytest.approx(4.0, abs=0.1)


def test_one_usable_system_is_compared_with_one_that_is_not():
    assert claims(pair(500, low=("base",))) == [
        "‡",
        "**",
        "human agreement",
        "p=",
        "Minimum detectable",
    ]
    # the best is too low to be marked, whatever the other is
    assert "**" not in claims(pair(500, low=("big",)))


def test_the_baseline_is_not_called_the_best_either():
    rows = [
        record("base", *PLACE, 20.0, lines=60),
        record("big", *PLACE, 19.0, lines=60, **AGAINST),
    ]
    (finding,) = best_systems(score_frame(frame(*rows)), {})
    assert finding.title == "news-en-de: too few sentences to compare"


def test_few_matches_are_those_that_sacrebleu_counts():
    references = [f"the cat {n} sat on the mat today" for n in range(200)]
    for good in (0, 4, 5, 6):
        lines = [*references[:good], *["essssss"] * (200 - good)]
        matched = BLEU().corpus_score(lines, [references]).counts[3]
        stored = [*below_floor(METRICS["bleu"].count(texts_of(lines, references)))]
        # eight tokens have five 4-grams
        assert matched == 5 * good
        assert [each["value"] for each in stored] == ([matched] if good < 5 else [])


def test_readmes_table_says_it(tmp_path):
    (tmp_path / "reports/copy").mkdir(parents=True)
    pair(60).save(tmp_path / "reports/copy/results.json")
    text = recipe_row("| `copy` | a task | | | |", "copy", tmp_path)
    assert "base 20.0 [19.0, 22.0]; big too few sentences to compare" in text


@pytest.fixture(scope="module")
def unusable(tmp_path_factory):
    """Two systems on 120 sentences whose output is hardly a translation, one a little less."""
    root = tmp_path_factory.mktemp("unusable")
    settings = trees.settings_in(root, corpora={PLACE[0]: (PLACE[1],)})
    trees.write_all(root, settings)
    references = [*read_lines(corpus_folder(PLACE[0], "split", root) / "test.first.de")]
    for system, good in (("tiny", 0), ("small", 1)):
        lines = [*references[:good], *(f"{of.split()[0]} essssss ." for of in references[good:])]
        trees.translate(root, settings, Run(system, PLACE[0], 1), "first", lines)
    report.write_reports(settings, root)
    return root, settings


def test_unusable_outputs_are_not_compared(unusable, monkeypatch):
    root, settings = unusable
    records = frames.load(root)
    stored = {
        row["system"]: row["value"]
        for row in json.loads((root / frames.RESULTS).read_text())["metrics"]
        if row["metric"] == MATCHED_4_GRAMS
    }
    assert stored.keys() == {"tiny", "small"} and max(stored.values()) < 25
    assert records.metrics.p.isna().all() and records.metrics.p_holm.isna().all()
    assert claims(records) == []
    reports = {
        name: (root / "reports" / name).read_text("utf-8")
        for name in ("table.md", "table.tex", "index.html")
    }
    said = "news-en-de, first: small and tiny are too low to compare: they match fewer than 25 "
    for name, text in reports.items():
        assert said in text, name
    assert "news-en-de: too low to compare" in reports["index.html"]
    assert "too low to compare" in summary_section(ReportData(settings, records, root)).body
    monkeypatch.chdir(root)
    parts = [*compare("tiny", "small", sentences=1)]
    assert "news-en-de, first: too low to compare, so without p." in parts
    scores = [part for part in parts if isinstance(part, Table)][-1]
    assert [scores.texts(row)[6:] for row in scores.rows] == [["–", "–"]] * len(scores.rows)


def test_of_a_file_that_an_older_version_wrote(unusable, tmp_path):
    root, settings = unusable
    run = Results.open(settings, Run("small", PLACE[0], 1), root)
    assert Counter(key for key, _ in run.metrics("first"))[MATCHED_4_GRAMS] == 1
    records = collect(settings, root)
    old = frames.Records(records.runs.assign(lines=60), records.metrics.assign(p=0.01))
    old.save(tmp_path / "results.json")
    assert '"p": 0.01' in (tmp_path / "results.json").read_text()
    assert frames.read_without_costs(tmp_path / "results.json").metrics.p.isna().all()
