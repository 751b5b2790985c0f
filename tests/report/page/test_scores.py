"""Figures in the report page against the records, and against numbers made by hand."""

import dataclasses

import pytest

import result_rows
import result_trees as trees
from bleuprint.config.published import Published
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.summary import summary_section
from bleuprint.report.published.literature import with_published_numbers
from pages import page_of

CORPUS = "wmt14-en-de"
TEST = "newstest2014"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Settings, and the folder where a page made by hand finds filtering statistics."""
    root = tmp_path_factory.mktemp("tree")
    settings = trees.settings_in(root, ("base", "big", "odd"), {CORPUS: (TEST,)})
    trees.write_texts(root, settings)
    return settings, root


def record(system, bleu, p=None, seed=1, **changes):
    tested = {} if p is None else result_rows.against("base", p)
    return result_rows.record(system, CORPUS, TEST, bleu, seed=seed, **{**tested, **changes})


def page_with(tree, *rows, **changes):
    """The page's summary of these rows, with other settings."""
    settings = dataclasses.replace(tree[0], **changes)
    records = with_published_numbers(result_rows.frame(*rows), settings.published)
    return page_of(summary_section(ReportData(settings, records, tree[1])))


def test_a_row_has_the_scores_and_the_cost(tree):
    page = page_with(tree, record("base", 20.0), record("big", 22.5, 0.001, loss=1.25))
    table, further, losses = page.tables["summary"]
    assert table.row("big") == {
        "System": "big",
        "BLEU tokenized": "–",
        "BLEU compound-split": "–",
        "BLEU": "22.5 [21.5, 24.5]",
        "95% CI": "",
        "Δ BLEU": "+2.5‡ p=0.001",
        # 88.333 / (1 + e^(-0.96639 * 2.5)) and 93.0 / (1 + e^(-1.11427 * 2.5))
        "human agreement": "81%",
        "chrF2": "42.5 [41.5, 43.5]",
        "Parameters": "2.57M",
        "FLOPs": "3.3e18",
        "FLOPs, by time": "–",
        "Training time": "0:01:01",
    }
    assert further.row("big") == {
        "System": "big",
        "chrF2": "42.5 [41.5, 43.5]",
        "Δ chrF2": "+2.5‡ p=0.001",
        "chrF2 human agreement": "88%",
        "chrF2++": "40.5 [39.5, 41.5]",
        "Δ chrF2++": "+2.5‡ p=0.001",
        "TER": "13.5 [12.5, 14.5]",
        "Δ TER": "+2.5‡ p=0.001",
    }
    assert [losses.row(name)["Loss"] for name in ("base", "big")] == ["1.500", "1.250"]
    assert table.row("Baseline: base")["Δ BLEU"] == "–"
    assert table.rows[0][0] == "wmt14-en-de, test set newstest2014 (1,000 sentences)"


def test_a_difference_is_marked_by_its_significance_after_holms_correction(tree):
    """Two systems are tested, so the smaller p is doubled: 0.03 is significant alone, 0.06 not."""
    base = record("base", 20.0)
    big = record("big", 21.0, 0.03)
    odd = record("odd", 19.8, 0.41)

    page = page_with(tree, base, big, odd)

    table, *_ = page.tables["summary"]
    assert table.row("big")["Δ BLEU"] == "+1.0† p=0.030"
    assert table.row("odd")["Δ BLEU"] == "-0.2 n.s. p=0.410"
    assert table.marks[-3:] == ["baseline", "", ""]
    explanation = "significant alone (p=0.030), not corrected for all systems (p=0.060)"
    assert explanation in page.sections["summary"]


def test_published_rows_are_marked(tree):
    number = Published("Ours <before>", "A thesis", CORPUS, TEST, 25.5, "lower-cased")
    page = page_with(tree, record("base", 20.0), published=(number,))
    table, *_ = page.tables["summary"]
    assert table.marks == ["group"] + ["published"] * 9 + [""]
    big = table.row("Transformer (big) (published)")
    assert (big["BLEU compound-split"], big["FLOPs, by time"]) == ("28.4", "2.3e19")
    number = table.row("Ours <before> (published)")
    assert number.pop("BLEU lower-cased") == "25.5" and not number.pop("95% CI")
    assert set(list(number.values())[1:]) == {"–"}
    assert "Ours <before> (published): A thesis; lower-cased BLEU" in page.sections["summary"]
    assert "comparable only with ours" in page.sections["summary"]
