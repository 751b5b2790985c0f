"""Output errors in the report: translations without a number of the source are counted and tested.

An output error, such as a lost number or a repetition, is found without a reference.
"""

import random
import shutil
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
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.scoring.score import score_run
from bleuprint.text.parallel import TextFolder, read_lines
from bleuprint.tracking.run_content import score_metrics
from result_rows import labels_of, rows_of, score_of
from result_trees import Experiment

CORPUS = "news-en-de"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return results in which tiny loses the number of 3 of 100 lines, and small of 12.

    Small loses the same three numbers and nine more. All other translations are the reference.
    """
    root = tmp_path_factory.mktemp("errors")
    settings = trees.settings_in(root, corpora={CORPUS: ("first",)})
    trees.write_all(root, settings)
    split = TextFolder(corpus_folder(CORPUS, "split", root), "en", "de")
    source_file, target_file = split.files("test.first")
    for path in (source_file, target_file):
        trees.write_lines(path, [f"7 {line}" for line in list(read_lines(path))])
    trees.describe(root, settings, CORPUS)
    damaged_lines = random.Random(1).sample(range(40), 12)
    for system, count in (("tiny", 3), ("small", 12)):
        translations = list(read_lines(target_file))
        for number in damaged_lines[:count]:
            translations[number] = translations[number].removeprefix("7 ")
        trees.translate(root, settings, Run(system, CORPUS, 1), "first", translations)
    with pytest.MonkeyPatch.context() as patch:
        trees.all_samples(patch)
        collect(settings, root).save(root / RESULTS)
    return Experiment(root, settings)


@pytest.mark.parametrize(("system", "lost_numbers"), [("tiny", 3), ("small", 12)])
def test_lines_with_a_lost_number_are_counted_with_an_interval(experiment, system, lost_numbers):
    score = score_of(load(experiment.root), system, "numbers")

    assert score.value == lost_numbers
    assert 0 < score.ci_low < lost_numbers < score.ci_high < 40


def test_lost_numbers_are_tested_against_the_baseline(experiment):
    """The baseline `tiny` loses a number in 3 lines, `small` in the same three and nine more.

    If the error were equally likely in both, small alone would have it in nine of nine lines with
    the probability 0.5^9, and one of the two systems with twice that (McNemar's exact test).
    """
    records = load(experiment.root)

    mcnemar_p_value = 2 * 0.5**9  # 0.0039
    assert score_of(records, "small", "numbers").p == pytest.approx(mcnemar_p_value, abs=0.002)
    assert isnan(score_of(records, "tiny", "numbers").difference)


def test_results_with_output_errors_contain_no_sentence(experiment):
    """Each word of the corpus begins with WORD."""
    assert trees.WORD not in (experiment.root / RESULTS).read_text("utf-8")


def error_cells(records, system):
    """Return the cells of a system in the table of output errors, by the heads of the columns."""
    return rows_of(pivot_tables.error_table(score_frame(records)))[system]


def test_the_error_table_shows_count_interval_and_significance(experiment):
    text = error_cells(load(experiment.root), "small")["numbers"]

    assert text.startswith("12 [")
    assert text.endswith("]‡")


def test_table_md_shows_output_errors(experiment):
    root, settings = experiment
    records = load(root)

    assert error_cells(records, "small")["numbers"] in table_md(settings, records, root)


def test_the_page_shows_output_errors(experiment):
    """A text such as `12 [7, 20]‡` is the same as in table.md, with <span> around the interval."""
    root, settings = experiment
    records = load(root)
    markdown_text = error_cells(records, "small")["numbers"]

    section = errors_section(ReportData(settings, records, root))

    assert markdown_text.replace("[", "<span>[") in section.body


def test_compare_shows_output_errors_with_difference_and_p_value(experiment, monkeypatch):
    """Tiny loses a number in 3 lines, small in 12."""
    monkeypatch.chdir(experiment.root)

    *_, error_table = [part for part in compare("tiny", "small") if isinstance(part, Table)]

    rows = [error_table.texts(row) for row in error_table.rows]
    (numbers_row,) = [texts for texts in rows if texts[2] == "numbers"]
    tiny_errors, small_errors, difference, p_value = numbers_row[3:7]
    assert tiny_errors == "3"
    assert small_errors == "12"
    assert difference == "+9.0"
    assert p_value.startswith("0.00")


def test_tracked_metrics_count_lines_with_errors(experiment):
    """MLflow gets the number of lines with an error; small loses a number in 12 lines."""
    root, settings = experiment
    results = Results.open(settings, Run("small", CORPUS, 1), root)

    metrics = score_metrics(CORPUS, results.scores)

    assert metrics[f"test_lines_with_errors/{CORPUS}/first"] >= 12


@pytest.fixture
def corrected_p_values():
    """Return p-values after Holm's correction, by system and metric.

    Five tests of output errors form a family: the smallest p-value is multiplied by five, the next
    one by four. The test of BLEU is alone in its family.
    """
    p_values = {
        ("a", "any error"): 0.009,
        ("a", "numbers"): 0.02,
        ("a", "repetition"): 1.0,
        ("b", "any error"): 0.3,
        ("b", "numbers"): 0.5,
        ("a", "bleu"): 0.02,
    }
    tests = []
    for (system, metric), p_value in p_values.items():
        tests.append(SharedPValue(p_value, [{"system": system, "metric": metric, "group": ""}]))
    add_corrected_p_values(tests)
    corrected = {}
    for test in tests:
        (row,) = test.rows
        corrected[row["system"], row["metric"]] = row["p_holm"]
    return corrected


def test_holms_correction_covers_all_systems_and_kinds_of_errors(corrected_p_values):
    assert corrected_p_values["a", "any error"] == pytest.approx(5 * 0.009)
    assert corrected_p_values["a", "numbers"] == pytest.approx(4 * 0.02)


def test_holms_correction_of_bleu_does_not_count_tests_of_errors(corrected_p_values):
    assert corrected_p_values["a", "bleu"] == 0.02


@pytest.fixture(scope="module")
def uncut_experiment(tmp_path_factory):
    """Return results with two seeds, in which no translation reached its maximum length."""
    root = tmp_path_factory.mktemp("uncut")
    settings = trees.settings_in(root, corpora={CORPUS: ("first",)}, seeds=(1, 2))
    trees.write_all(root, settings)
    return Experiment(root, settings)


@pytest.fixture(scope="module")
def uncut_records(uncut_experiment):
    """Return the records before any translation was cut."""
    return collect(uncut_experiment.settings, uncut_experiment.root)


@pytest.fixture(scope="module")
def cut_records(uncut_experiment, tmp_path_factory):
    """Return the records if three lines of small with seed 2 ended at the maximum length."""
    settings = uncut_experiment.settings
    root = shutil.copytree(uncut_experiment.root, tmp_path_factory.mktemp("cut") / "copy")
    run = Run("small", CORPUS, 2)
    translation_file = root / run.results_folder / "translation.json"
    translation = read_json(translation_file)
    write_json(translation_file, {**translation, "cut": {"first": [3, 7, 40]}})
    score_run(settings, *run, root)
    return collect(settings, root)


def test_cut_translations_are_no_metric_if_there_are_none(uncut_records):
    assert "cut off" not in set(uncut_records.metrics.metric)


def test_cut_translations_are_counted_for_each_run(cut_records):
    """In `cut_records`, the run of small with seed 2 reached the maximum length in three lines."""
    rows = cut_records.metrics[cut_records.metrics.metric == "cut off"]

    counts = {}
    for row in rows.itertuples():
        counts[row.system, row.seed] = row.value
    assert counts == {("tiny", 1): 0, ("tiny", 2): 0, ("small", 1): 0, ("small", 2): 3}


def test_the_count_of_cut_translations_is_the_mean_over_seeds(cut_records):
    mean_of_0_and_3 = 1.5
    assert score_of(cut_records, "small", "cut off").value == mean_of_0_and_3


def test_table_md_explains_cut_translations_if_there_are_any(
    uncut_experiment, uncut_records, cut_records
):
    """The column `cut off` needs a note; without the column the note would be confusing."""
    root, settings = uncut_experiment
    note = "cut off: the translation ended at the maximum length"

    assert note in table_md(settings, cut_records, root)
    assert note not in table_md(settings, uncut_records, root)


@pytest.mark.parametrize("records_fixture", ["uncut_records", "cut_records"])
def test_the_section_on_errors_ends_with_one_empty_line_in_table_md(
    uncut_experiment, records_fixture, request
):
    """Table.md is in Git, where a second empty line would appear as a change of the results.

    The section on errors, above `Training cost`, ends with a note on cut translations or without.
    """
    root, settings = uncut_experiment
    records = request.getfixturevalue(records_fixture)

    section_on_errors, title, _ = table_md(settings, records, root).partition(
        "\n\n## Training cost\n"
    )

    assert title
    assert not section_on_errors.endswith("\n")


def test_the_error_table_has_a_column_of_cut_translations_if_there_are_any(
    uncut_records, cut_records
):
    assert "cut off" in labels_of(pivot_tables.error_table(score_frame(cut_records)))
    assert "cut off" not in labels_of(pivot_tables.error_table(score_frame(uncut_records)))


def test_the_page_explains_cut_translations(uncut_experiment, cut_records):
    """In `cut_records`, three translations of small with seed 2 ended at the maximum length.

    The page reads only settings from the experiment, whose own translations are not cut.
    """
    root, settings = uncut_experiment

    section = errors_section(ReportData(settings, cut_records, root))

    *_, explanations = section.data["notes"]  # a line for each error
    last_explanation = explanations.splitlines()[-1]
    assert last_explanation.startswith("- cut off: the translation ended at the maximum length")
    # The settings with which the user allows longer translations.
    assert "decode.max_len_a" in last_explanation
    assert "decode.max_len_b" in last_explanation
