"""Below the floor, that is, with too few lines or too bad translations, no report claims anything.

A score is too low if its translations match fewer than 25 4-grams of the references, and a test set
is too small below 100 lines. Then p-values, marks, bold scores and human agreement would mislead.
"""

import csv
import io
from collections import Counter
from math import isnan

import pytest
from sacrebleu import BLEU

import result_trees as trees
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.report import notes, report, score_tables
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS, Records, csv_text, load, read_without_costs
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.page.findings import best_systems
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.summary import summary_section
from bleuprint.report.records import collect
from bleuprint.report.render import markdown
from bleuprint.report.score_frame import score_frame
from bleuprint.report.table import Table
from bleuprint.runs.results import Results
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.minimum_for_test import MATCHED_4_GRAMS, matched_4_grams_if_few
from bleuprint.text.parallel import read_lines
from measuring import translated_set
from result_rows import compared_with, measured, record, records_from_rows, score_of
from result_trees import Experiment
from tools.readme_tables import recipe_row


def two_systems(lines, too_low=(), seeds=(1,), **big_facts):
    """Return the records of base, and of big, which is 4 BLEU better with p=0.001.

    Args:
        lines: The number of lines of the test set.
        too_low: The systems whose translations match three 4-grams, which is too few.
        seeds: The seeds.
        big_facts: Facts of big, such as `about` if it is an external system.
    """
    rows = []
    for seed in seeds:
        # The differences of the seeds must not be equal: a t-test needs their deviation.
        bleu = {"base": 20.0 + 0.02 * seed, "big": 24.0 + 0.01 * seed}
        for system in ("base", "big"):
            changes = {"seed": seed, "lines": lines}
            if system == "big":
                changes.update(big_facts)
                changes.update(compared_with("base", p=0.001))
            if system in too_low:
                entry = measured(MATCHED_4_GRAMS, 3.0)
                changes["metrics"] = {(MATCHED_4_GRAMS, ""): entry}
            rows.append(record(system, "news-en-de", "first", bleu=bleu[system], **changes))
    return records_from_rows(*rows)


def remove_tests(records, rows=None):
    """Remove the results of significance tests, which `collect` leaves out below the floor.

    Args:
        records: The records, whose metrics are changed.
        rows: Whether each row of the metrics loses its test; all rows if omitted.
    """
    columns = ["p", "p_holm", "p_randomization", "standard_error"]
    if rows is None:
        rows = records.metrics.index
    records.metrics.loc[rows, columns] = float("nan")


def shown_text(records):
    """Return what tables and terminal show of the records' scores.

    The note that explains all marks is left out, and so are the names of test sets, which are bold.
    """
    parts = []
    for table in score_tables.tables_by_test_set(score_frame(records), ["bleu", "chrf2"]).values():
        parts.append(markdown(table))
    for part in one_screen(records):
        if isinstance(part, str):
            parts.append(part)
    for part in everything(records):
        if isinstance(part, Table):
            parts.append(markdown(part))
    lines = []
    for line in "\n".join(parts).replace("&lt;", "<").split("\n"):
        if not line.startswith(("Δ is the difference from", "| **")):
            lines.append(line)
    return "\n".join(lines)


def shown_claims(records):
    """Return the signs and words that claim a difference, as far as they are shown.

    They are marks of significance, bold for the best score, human agreement, p-values, and the
    difference that could be detected.
    """
    text = shown_text(records)
    signs = ["†", "‡", "n.s.", "**", "human agreement", "p=", "p<", "Minimum detectable"]
    return [sign for sign in signs if sign in text]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Let each note be one line."""
    monkeypatch.setenv("COLUMNS", "2000")


def test_differences_on_a_hundred_lines_are_claimed():
    records = two_systems(lines=100)

    assert shown_claims(records) == ["‡", "**", "human agreement", "p=", "Minimum detectable"]


def untested(records):
    """Return records without tests, as they are collected if scores are too low."""
    remove_tests(records)
    return records


BELOW_FLOOR = [
    pytest.param(two_systems(99), "too few sentences to compare", id="99 lines"),
    pytest.param(
        untested(two_systems(500, too_low=("base", "big"))), "too low to compare", id="both too low"
    ),
    pytest.param(
        untested(two_systems(27, too_low=("base", "big"))),
        "too low to compare",
        id="both too low on 27 lines",
    ),
    pytest.param(
        untested(two_systems(500, too_low=("base", "big"), seeds=(1, 2, 3))),
        "too low to compare",
        id="both too low with three seeds",
    ),
]


@pytest.mark.parametrize(("records", "reason"), BELOW_FLOOR)
def test_tables_claim_nothing_below_the_floor(records, reason):
    """Below the floor, a test set has fewer than 100 lines, or translations are useless.

    Significance marks, p-values and bold scores would mislead there, so `shown_claims` must find
    none. The difference itself, 4.0 BLEU, is a fact and is shown.
    """
    assert shown_claims(records) == []
    text = shown_text(records)
    assert f"news-en-de, first: {reason}" in text or f"base are {reason}" in text
    assert "+4.0" in text


@pytest.mark.parametrize(("records", "reason"), BELOW_FLOOR)
def test_the_summary_names_no_best_system_below_the_floor(records, reason):
    (finding,) = best_systems(score_frame(records), {})

    assert finding.title == f"news-en-de: {reason}"


def csv_rows(records, system, metric):
    """Return the rows of table.csv with a metric of a system on all lines, one for each seed."""
    rows = []
    for row in csv.DictReader(io.StringIO(csv_text(records))):
        if row["system"] == system and row["metric"] == metric and not row["group"]:
            rows.append(row)
    return rows


@pytest.mark.parametrize(("records", "reason"), BELOW_FLOOR)
def test_table_csv_contains_the_difference_without_p_below_the_floor(records, reason):
    """Below the floor, a test set has fewer than 100 lines, or translations are useless.

    Programs that read table.csv must not find a p-value that means nothing.
    """
    row, *_ = csv_rows(records, "big", "bleu")

    assert row["difference"] != "", reason
    assert row["p"] == ""
    assert row["p_holm"] == ""
    assert row["standard_error"] == ""


def test_a_test_over_seeds_is_claimed_on_few_lines():
    """It compares the means of trainings, which do not depend on the number of lines."""
    records = two_systems(lines=50, seeds=(1, 2, 3))

    assert shown_claims(records) == ["‡", "**", "human agreement", "p<", "Minimum detectable"]


def test_the_detectable_difference_is_that_of_seeds_on_few_lines():
    """50 lines are too few for a test over lines; a t-test over three seeds is still possible.

    So the note says which difference three seeds can detect, and does not mention 50 sentences.
    """
    records = two_systems(lines=50, seeds=(1, 2, 3))

    (note,) = [note for note in notes.all_notes(records) if note.startswith("Minimum detectable")]

    assert "BLEU over 3 seeds." in note
    assert "50 sentences" not in note


def test_an_external_system_needs_enough_lines_whatever_the_number_of_seeds():
    """An external system is a file with one translation of each line, so the test is over lines.

    The record of `big` is external because it has a description, `about`.
    """
    records = two_systems(lines=50, seeds=(1, 2, 3), about="A")

    assert shown_claims(records) == []
    assert "too few sentences to compare" in shown_text(records)


@pytest.fixture(params=[60, 500], ids=["60 lines", "500 lines"])
def records_of_two_versions(request):
    """Return records in which the BLEU of big is from another version of sacreBLEU."""
    records = two_systems(lines=request.param)
    metrics = records.metrics
    is_bleu_of_big = (metrics.system == "big") & (metrics.metric == "bleu")
    metrics.loc[is_bleu_of_big, "signature"] = "nrefs:1|tok:13a|version:2.4.0"
    remove_tests(records, is_bleu_of_big)
    return records


def test_scores_of_different_versions_have_no_difference(records_of_two_versions):
    assert isnan(score_of(records_of_two_versions, "big").difference)


def test_other_scores_have_a_difference_that_is_tested_on_enough_lines(records_of_two_versions):
    """Only BLEU of `big` is by another version of sacreBLEU; chrF2 can still be compared.

    There are records on 60 lines, which are too few for a test, and on 500.
    """
    chrf2 = score_of(records_of_two_versions, "big", "chrf2")

    assert chrf2.difference == pytest.approx(4.0, abs=0.1)
    has_enough_lines = chrf2.lines == 500
    is_tested = not isnan(chrf2.p)
    assert is_tested == has_enough_lines


@pytest.fixture
def records_without_baseline_bleu():
    """Return records on 60 lines in which base has no BLEU."""
    records = two_systems(lines=60)
    metrics = records.metrics
    is_bleu_of_base = (metrics.system == "base") & (metrics.metric == "bleu")
    return Records(records.runs, metrics[~is_bleu_of_base])


def test_a_score_that_the_baseline_lacks_has_no_difference_below_the_floor(
    records_without_baseline_bleu,
):
    assert isnan(score_of(records_without_baseline_bleu, "big").difference)


def test_scores_that_the_baseline_has_keep_their_difference_below_the_floor(
    records_without_baseline_bleu,
):
    """The baseline has TER and no BLEU, on a test set of 60 lines, which is too small for tests."""
    ter = score_of(records_without_baseline_bleu, "big", "ter")

    assert ter.difference == pytest.approx(4.0, abs=0.1)


def test_a_good_system_is_compared_with_a_too_low_baseline():
    records = two_systems(lines=500, too_low=("base",))

    assert shown_claims(records) == ["‡", "**", "human agreement", "p=", "Minimum detectable"]


def test_a_too_low_system_is_not_marked_as_the_best():
    """It has 4 BLEU more than the baseline, which is not too low."""
    records = two_systems(lines=500, too_low=("big",))

    assert "**" not in shown_claims(records)


def test_a_baseline_is_not_called_the_best_on_few_lines():
    """60 lines are too few to say that base, with 20.0 BLEU, is better than big with 19.0."""
    records = records_from_rows(
        record("base", "news-en-de", "first", bleu=20.0, lines=60),
        record("big", "news-en-de", "first", bleu=19.0, lines=60, **compared_with("base", p=0.001)),
    )

    (finding,) = best_systems(score_frame(records), {})

    assert finding.title == "news-en-de: too few sentences to compare"


@pytest.mark.parametrize(
    ("perfect_lines", "is_below_floor"),
    [
        pytest.param(0, True, id="0 matches"),
        pytest.param(4, True, id="20 matches"),
        pytest.param(5, False, id="25 matches"),
        pytest.param(6, False, id="30 matches"),
    ],
)
def test_matched_4_grams_are_recorded_below_25_as_sacrebleu_counts_them(
    perfect_lines, is_below_floor
):
    """With fewer than 25 matched 4-grams, BLEU is mostly smoothing, and systems are not compared.

    Each of the 200 references has eight tokens, and so five 4-grams; other lines match none.
    """
    references = [f"the cat {number} sat on the mat today" for number in range(200)]
    translations = references[:perfect_lines] + ["essssss"] * (200 - perfect_lines)
    matched = BLEU().corpus_score(translations, [references]).counts[3]
    assert matched == 5 * perfect_lines

    counts = METRICS["bleu"].count(translated_set(translations, references))
    recorded = [entry["value"] for entry in matched_4_grams_if_few(counts)]

    assert recorded == ([matched] if is_below_floor else [])


def test_the_table_of_the_readme_says_that_lines_are_too_few(tmp_path):
    """The README shows one row for each recipe; that of `copy` has 60 test lines here."""
    (tmp_path / "reports/copy").mkdir(parents=True)
    two_systems(lines=60).save(tmp_path / "reports/copy/results.json")

    row = recipe_row("| `copy` | a task | | | |", "copy", tmp_path)

    assert "base 20.0 [19.0, 22.0]; big too few sentences to compare" in row


@pytest.fixture(scope="module")
def unusable(tmp_path_factory):
    """Return results, after the report stage, of two systems whose translations are useless.

    Each line repeats the first word of the reference only. One line of small is right, so that the
    systems differ.
    """
    root = tmp_path_factory.mktemp("unusable")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
    trees.write_all(root, settings)
    references = list(read_lines(corpus_folder("news-en-de", "split", root) / "test.first.de"))
    useless = [f"{line.split()[0]} essssss ." for line in references]
    trees.translate(root, settings, Run("tiny", "news-en-de", 1), "first", useless)
    one_right = references[:1] + useless[1:]
    trees.translate(root, settings, Run("small", "news-en-de", 1), "first", one_right)
    report.write_reports(settings, root)
    return Experiment(root, settings)


def test_the_results_of_useless_translations_contain_their_matched_4_grams(unusable):
    """Both systems translate almost every line as one word of the reference and a nonsense word.

    Results.json records how few 4-grams match, so that later reports know why p is missing.
    """
    matched = {}
    for row in read_json(unusable.root / RESULTS)["metrics"]:
        if row["metric"] == MATCHED_4_GRAMS:
            matched[row["system"]] = row["value"]

    assert set(matched) == {"tiny", "small"}
    assert max(matched.values()) < 25


def test_useless_translations_are_not_tested(unusable):
    """Both systems translate almost every line as one word of the reference and a nonsense word."""
    records = load(unusable.root)

    assert records.metrics.p.isna().all()
    assert records.metrics.p_holm.isna().all()
    assert shown_claims(records) == []


@pytest.mark.parametrize("name", ["table.md", "table.tex", "index.html"])
def test_reports_say_why_useless_translations_are_not_compared(unusable, name):
    """Both systems translate almost every line as one word of the reference and a nonsense word."""
    text = (unusable.root / "reports" / name).read_text("utf-8")

    assert (
        "news-en-de, first: small and tiny are too low to compare: they match fewer than 25 "
    ) in text


def test_the_summary_says_that_useless_translations_are_too_low(unusable):
    """A reader of the summary must not take the higher of two useless scores for the best."""
    page = (unusable.root / "reports" / "index.html").read_text("utf-8")
    summary = summary_section(ReportData(unusable.settings, load(unusable.root), unusable.root))

    assert "news-en-de: too low to compare" in page
    assert "too low to compare" in summary.body


def test_compare_shows_useless_translations_without_p(unusable, monkeypatch):
    """`bleuprint compare` shows the scores of two useless systems, and a dash for p."""
    monkeypatch.chdir(unusable.root)

    parts = list(compare("tiny", "small", sentences=1))

    assert "news-en-de, first: too low to compare, so without p." in parts
    *_, scores = [part for part in parts if isinstance(part, Table)]
    for row in scores.rows:
        p_value, agreement = scores.texts(row)[6:]
        assert p_value == "–"
        assert agreement == "–"


def test_matched_4_grams_are_recorded_once(unusable):
    """A second row of the same metric would make results.json invalid."""
    results = Results.open(unusable.settings, Run("small", "news-en-de", 1), unusable.root)

    rows_by_metric = Counter(metric for metric, _group in results.metrics("first"))

    assert rows_by_metric[MATCHED_4_GRAMS] == 1


def test_p_values_below_the_floor_that_an_older_version_wrote_are_ignored(unusable, tmp_path):
    """Older versions tested any number of lines, and wrote p-values of test sets of 60 lines."""
    records = collect(unusable.settings, unusable.root)
    old = Records(records.runs.assign(lines=60), records.metrics.assign(p=0.01))
    old.save(tmp_path / "results.json")
    assert '"p": 0.01' in (tmp_path / "results.json").read_text()

    metrics = read_without_costs(tmp_path / "results.json").metrics

    assert metrics.p.isna().all()
