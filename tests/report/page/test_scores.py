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
    test = {} if p_value is None else result_rows.compared_with("base", p=p_value)
    test.update(changes)
    return result_rows.record(system, CORPUS, TEST, bleu, **test)


def summary_of(experiment, *rows, **changes):
    """Return the page's summary of some records, with other settings."""
    settings = dataclasses.replace(experiment.settings, **changes)
    records = with_published_numbers(result_rows.records_from_rows(*rows), settings.published)
    return page_of(summary_section(ReportData(settings, records, experiment.root)))


@pytest.fixture(scope="module")
def summary(experiment):
    """Return the summary of base with BLEU 20, and of big with BLEU 22.5 and the loss 1.25.

    The other scores of a record follow from BLEU: chrF2 is 20 higher, chrF2++ 18 higher, and TER 9
    lower. Their intervals reach from 1 below the score to 1 above it, that of BLEU to 2 above.
    """
    return summary_of(
        experiment, record("base", bleu=20.0), record("big", bleu=22.5, p_value=0.001, loss=1.25)
    )


def test_the_table_of_scores_shows_bleu_chrf2_and_costs(summary):
    """The system `big` has 22.5 BLEU, the baseline 20.0.

    The corpus is WMT 2014, whose table also shows the systems of Vaswani et al. (2017). Ours have a
    dash in the columns of these published numbers.
    """
    table, *_ = summary.tables["summary"]

    bleu = 22.5
    difference = bleu - 20.0
    chrf2 = bleu + 20
    agreement = 88.333 / (1 + math.exp(-0.96639 * difference))  # Kocmi et al. 2024
    assert table.row("big") == {
        "System": "big",
        "BLEU tokenized": "–",
        "BLEU compound-split": "–",
        "BLEU": f"{bleu} [{bleu - 1}, {bleu + 2}]",
        "95% CI": "",  # It is drawn.
        "Δ BLEU": f"+{difference}‡ p=0.001",
        "human agreement": f"{agreement:.0f}%",
        "chrF2": f"{chrf2} [{chrf2 - 1}, {chrf2 + 1}]",
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
    """All scores of the system `big` follow from its 22.5 BLEU, those of the baseline from 20.0."""
    _, other_scores, _ = summary.tables["summary"]

    chrf2 = 22.5 + 20
    chrf2pp = 22.5 + 18
    ter = 22.5 - 9
    difference = 22.5 - 20.0
    agreement = 93.0 / (1 + math.exp(-1.11427 * difference))  # Kocmi et al. 2024
    assert other_scores.row("big") == {
        "System": "big",
        "chrF2": f"{chrf2} [{chrf2 - 1}, {chrf2 + 1}]",
        "Δ chrF2": f"+{difference}‡ p=0.001",
        "chrF2 human agreement": f"{agreement:.0f}%",
        "chrF2++": f"{chrf2pp} [{chrf2pp - 1}, {chrf2pp + 1}]",
        "Δ chrF2++": f"+{difference}‡ p=0.001",
        "TER": f"{ter} [{ter - 1}, {ter + 1}]",
        "Δ TER": f"+{difference}‡ p=0.001",
    }


def test_the_third_table_shows_the_losses(summary):
    _, _, losses = summary.tables["summary"]

    assert losses.row("base")["Loss"] == "1.500"
    assert losses.row("big")["Loss"] == "1.250"


def test_a_difference_is_marked_by_its_significance_after_holms_correction(experiment):
    """With two systems to test, Holm's correction doubles the smaller p-value.

    0.03 is below 0.05, but doubled it is not. † marks such a difference, which is significant
    alone; ‡ would mark one that stays significant after the correction.
    """
    base = record("base", bleu=20.0)
    big = record("big", bleu=21.0, p_value=0.03)
    odd = record("odd", bleu=19.8, p_value=0.41)

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
    return summary_of(experiment, record("base", bleu=20.0), published=(number,))


def test_published_rows_are_marked_and_stand_above_ours(summary_with_thesis):
    table, *_ = summary_with_thesis.tables["summary"]

    published = ["published"] * 9
    assert table.marks == ["group", *published, ""]


def test_a_published_row_shows_bleu_and_cost_as_printed(summary_with_thesis):
    """Table 2 of Vaswani et al. (2017) prints 28.4 BLEU and 2.3 * 10^19 FLOPs for English-German.

    The authors counted BLEU after splitting compounds, and FLOPs by the time of training.
    """
    table, *_ = summary_with_thesis.tables["summary"]

    row = table.row("Transformer (big) (published)")
    assert row["BLEU compound-split"] == "28.4"
    assert row["FLOPs, by time"] == "2.3e19"


def test_a_published_row_has_dashes_for_what_was_not_published(summary_with_thesis):
    """A thesis reports 25.5 lower-cased BLEU for its system `Ours <before>`, and nothing else."""
    table, *_ = summary_with_thesis.tables["summary"]

    row = table.row("Ours <before> (published)")

    assert row.pop("System") == "Ours <before> (published)"
    assert row.pop("BLEU lower-cased") == "25.5"
    assert row.pop("95% CI") == ""  # The page draws an interval here, or nothing.
    assert set(row.values()) == {"–"}


def test_the_summary_says_where_published_numbers_come_from(summary_with_thesis):
    text = summary_with_thesis.sections["summary"]

    assert "Ours <before> (published): A thesis; lower-cased BLEU" in text
    assert "comparable only with ours" in text
