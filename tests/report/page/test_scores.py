"""Figures of the report page against the records, and against numbers made by hand."""

import dataclasses
import math

import pytest

import result_rows
import result_trees as trees
from bleuprint.config.published import Published
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.summary import summary_section
from bleuprint.report.published.literature import with_published_numbers
from pages import page_of
from result_trees import Experiment

CORPUS = "wmt14-en-de"
TEST = "newstest2014"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return settings, and a folder with the filtering statistics that a page needs."""
    root = tmp_path_factory.mktemp("tree")
    settings = trees.settings_in(root, ("base", "big", "odd"), {CORPUS: (TEST,)})
    trees.write_texts(root, settings)
    return Experiment(root, settings)


def record(system, bleu, p_value=None, **changes):
    """Return the record of a system, tested against the system base if it has a p-value."""
    test = {} if p_value is None else result_rows.against("base", p_value)
    test.update(changes)
    return result_rows.record(system, CORPUS, TEST, bleu, **test)


def summary_of(experiment, *rows, **changes):
    """Return the page's summary of some records, with other settings."""
    settings = dataclasses.replace(experiment.settings, **changes)
    records = with_published_numbers(result_rows.frame(*rows), settings.published)
    return page_of(summary_section(ReportData(settings, records, experiment.root)))


@pytest.fixture(scope="module")
def summary(experiment):
    """Return the summary of base with BLEU 20, and of big with BLEU 22.5 and the loss 1.25."""
    return summary_of(
        experiment, record("base", 20.0), record("big", 22.5, p_value=0.001, loss=1.25)
    )


def test_the_table_of_scores_shows_bleu_chrf2_and_costs(summary):
    """The columns of two BLEU variants and of FLOPs by time are those of published numbers."""
    table, *_ = summary.tables["summary"]

    agreement = 88.333 / (1 + math.exp(-0.96639 * 2.5))  # Kocmi et al. 2024
    assert table.row("big") == {
        "System": "big",
        "BLEU tokenized": "–",
        "BLEU compound-split": "–",
        "BLEU": "22.5 [21.5, 24.5]",
        "95% CI": "",
        "Δ BLEU": "+2.5‡ p=0.001",
        "human agreement": f"{agreement:.0f}%",
        "chrF2": "42.5 [41.5, 43.5]",
        "Parameters": "2.57M",
        "FLOPs": "3.3e18",
        "FLOPs, by time": "–",
        "Training time": "0:01:01",
    }
    assert table.row("Baseline: base")["Δ BLEU"] == "–"


def test_the_table_of_scores_is_titled_by_the_test_set(summary):
    table, *_ = summary.tables["summary"]

    title = table.rows[0][0]
    assert title == "wmt14-en-de, test set newstest2014 (1,000 sentences)"


def test_the_second_table_shows_the_other_scores(summary):
    _, other_scores, _ = summary.tables["summary"]

    agreement = 93.0 / (1 + math.exp(-1.11427 * 2.5))  # Kocmi et al. 2024
    assert other_scores.row("big") == {
        "System": "big",
        "chrF2": "42.5 [41.5, 43.5]",
        "Δ chrF2": "+2.5‡ p=0.001",
        "chrF2 human agreement": f"{agreement:.0f}%",
        "chrF2++": "40.5 [39.5, 41.5]",
        "Δ chrF2++": "+2.5‡ p=0.001",
        "TER": "13.5 [12.5, 14.5]",
        "Δ TER": "+2.5‡ p=0.001",
    }


def test_the_third_table_shows_the_losses(summary):
    _, _, losses = summary.tables["summary"]

    assert losses.row("base")["Loss"] == "1.500"
    assert losses.row("big")["Loss"] == "1.250"


def test_a_difference_is_marked_by_its_significance_after_holms_correction(experiment):
    """Two systems are tested, so the smaller p is doubled: 0.03 is significant alone, 0.06 not."""
    base = record("base", 20.0)
    big = record("big", 21.0, p_value=0.03)
    odd = record("odd", 19.8, p_value=0.41)

    page = summary_of(experiment, base, big, odd)

    table, *_ = page.tables["summary"]
    assert table.row("big")["Δ BLEU"] == "+1.0† p=0.030"
    assert table.row("odd")["Δ BLEU"] == "-0.2 n.s. p=0.410"
    assert table.marks[-3:] == ["baseline", "", ""]
    explanation = "significant alone (p=0.030), not corrected for all systems (p=0.060)"
    assert explanation in page.sections["summary"]


@pytest.fixture(scope="module")
def summary_with_thesis(experiment):
    """Return the summary of base, and of a published number whose name contains markup.

    The corpus is that of Table 2 in Vaswani et al. (2017), so its eight systems are shown, too.
    """
    number = Published("Ours <before>", "A thesis", CORPUS, TEST, 25.5, "lower-cased")
    return summary_of(experiment, record("base", 20.0), published=(number,))


def test_published_rows_are_marked_and_stand_above_ours(summary_with_thesis):
    table, *_ = summary_with_thesis.tables["summary"]

    published = ["published"] * 9
    assert table.marks == ["group", *published, ""]


def test_a_published_row_shows_bleu_and_cost_as_printed(summary_with_thesis):
    table, *_ = summary_with_thesis.tables["summary"]

    row = table.row("Transformer (big) (published)")
    assert row["BLEU compound-split"] == "28.4"
    assert row["FLOPs, by time"] == "2.3e19"


def test_a_published_row_has_dashes_for_what_was_not_published(summary_with_thesis):
    table, *_ = summary_with_thesis.tables["summary"]

    row = table.row("Ours <before> (published)")
    bleu = row.pop("BLEU lower-cased")
    drawn_interval = row.pop("95% CI")
    name, *other_cells = row.values()
    assert name == "Ours <before> (published)"
    assert bleu == "25.5"
    assert drawn_interval == ""
    assert set(other_cells) == {"–"}


def test_the_summary_says_where_published_numbers_come_from(summary_with_thesis):
    text = summary_with_thesis.sections["summary"]

    assert "Ours <before> (published): A thesis; lower-cased BLEU" in text
    assert "comparable only with ours" in text
