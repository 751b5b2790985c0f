"""Tables of scores and costs: every number is in its own row and column, and notes explain it."""

import itertools
import statistics

import pytest

from bleuprint.report.cost_columns import COUNTED_COSTS, MEASURED_COSTS, costs_table
from bleuprint.report.frame import Records
from bleuprint.report.notes import all_notes
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from bleuprint.report.table import Column
from result_rows import (
    TWO_SYSTEMS,
    changed,
    compared_with,
    labels_of,
    metric_values,
    record,
    records_from_rows,
    rows_of,
)

# The costs that are counted and the same on every machine, and those that a machine measures.
ALL_COSTS = (*COUNTED_COSTS, *MEASURED_COSTS)
# Results of tiny and small on three test sets; the training of small was not measured.
RECORDS = records_from_rows(*TWO_SYSTEMS, missing="small")


def texts_by_test_set(records):
    """Return the texts of the tables of BLEU and chrF2 by test set, row and column."""
    texts = {}
    for name, table in tables_by_test_set(score_frame(records), ["bleu", "chrf2"]).items():
        texts[name] = rows_of(table)
    return texts


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_the_order_of_records_moves_no_number(order):
    """A number must not move to another row or column because results come in another order.

    TWO_SYSTEMS lists three test sets of tiny, then the same three of small. Here, the test sets are
    in any order, and small comes before tiny.
    """
    tiny_rows = TWO_SYSTEMS[:3]
    small_rows = TWO_SYSTEMS[3:]
    shuffled = []
    for test_set in order:
        shuffled.append(small_rows[test_set])
        shuffled.append(tiny_rows[test_set])

    texts = texts_by_test_set(records_from_rows(*shuffled))

    assert texts == texts_by_test_set(records_from_rows(*TWO_SYSTEMS))


def test_languages_are_shown_if_the_name_of_the_corpus_lacks_them():
    """The corpus news-en-de is renamed to news, and its column becomes `news (en-de), first`."""
    records = records_from_rows(record("tiny", "news-en-de", "first", bleu=31.0))
    renamed = Records(records.runs.assign(corpus="news"), records.metrics.assign(corpus="news"))

    table = wide_bleu_table(score_frame(renamed))

    assert table.columns[1] == Column("BLEU", "news (en-de), first")


@pytest.fixture(scope="module")
def two_seeds():
    """Return the records of two systems with the seeds 7 and 2."""
    return records_from_rows(
        record("tiny", "news-en-de", "only", bleu=30.0, seed=7),
        record("tiny", "news-en-de", "only", bleu=33.0, seed=2),
        record("small", "news-en-de", "only", bleu=40.0, seed=7, **compared_with("tiny", p=0.2)),
        record("small", "news-en-de", "only", bleu=42.0, seed=2, **compared_with("tiny", p=0.001)),
    )


def test_scores_of_several_seeds_are_shown_as_mean_and_deviation(two_seeds):
    """With two seeds, tiny has BLEU 30 and 33, and small 40 and 42."""
    rows = rows_of(wide_bleu_table(score_frame(two_seeds)))

    tiny_deviation = statistics.stdev([30, 33])  # 2.12
    small_deviation = statistics.stdev([40, 42])  # 1.41
    assert rows["Baseline: tiny"]["news-en-de, only BLEU"] == f"31.5 ± {tiny_deviation:.1f}"
    assert rows["small"]["news-en-de, only BLEU"] == f"41.0 ± {small_deviation:.1f}"


def test_differences_of_several_seeds_are_tested_by_a_paired_t_test(two_seeds):
    """The differences 10 and 9 have t = 9.5 / (0.7071 / sqrt 2) = 19 with 1 degree of freedom.

    Student's distribution is that of Cauchy then, so p = 1 - 2/pi * arctan 19 = 0.0335.
    """
    rows = rows_of(wide_bleu_table(score_frame(two_seeds)))

    assert rows["small"]["news-en-de, only Δ BLEU"] == "+9.5‡ p=0.033"


def test_notes_explain_deviation_and_test_over_several_seeds(two_seeds):
    """One seed would be tested over lines, by the bootstrap."""
    text = " ".join(all_notes(two_seeds))

    assert "standard deviation over 2 seeds" in text
    assert "paired t-test over 2 seeds" in text
    assert "bootstrap" not in text


def test_notes_on_one_seed_mention_no_number_of_seeds():
    assert "2 seeds" not in " ".join(all_notes(RECORDS))


def best_columns(records, metrics):
    """Return the heads of the columns in which a row is marked as the best, by test set and row."""
    columns_by_row = {}
    for name, table in tables_by_test_set(score_frame(records), metrics).items():
        for row in table.rows:
            columns = {column.label for column in table.columns if row.cell(column).is_bold}
            columns_by_row[name, table.texts(row)[0]] = columns
    return columns_by_row


def test_the_best_score_of_each_test_set_is_marked():
    """TER counts errors, so less is better; in these records it is 9 below BLEU.

    On the test set `second`, both systems have the same scores, and both are marked.
    """
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=31.11),
        record("tiny", "news-en-de", "second", bleu=32.22),
        record("small", "news-en-de", "first", bleu=30.9, **compared_with("tiny", p=0.5)),
        record("small", "news-en-de", "second", bleu=32.22, **compared_with("tiny", p=1.0)),
    )

    marked_columns = best_columns(records, ["bleu", "ter"])

    assert marked_columns == {
        ("news-en-de, first", "Baseline: tiny"): {"BLEU"},
        ("news-en-de, first", "small"): {"TER"},
        ("news-en-de, second", "Baseline: tiny"): {"BLEU", "TER"},
        ("news-en-de, second", "small"): {"BLEU", "TER"},
    }


def test_the_score_of_an_only_system_is_not_marked_as_the_best():
    only_tiny = records_from_rows(*TWO_SYSTEMS[:3])

    assert not any(best_columns(only_tiny, ["bleu"]).values())


def test_notes_name_engines_and_precisions_if_they_differ():
    """Rounding to int8 changes translations, so the reader must know which system was rounded."""
    mixed = changed(RECORDS, {"system": "small"}, engine="ctranslate2", precision="int8")

    note = (
        "Not all systems translated with the same engine and precision. "
        "pytorch float32: tiny; ctranslate2 int8: small."
    )
    assert note in all_notes(mixed)


def test_notes_do_not_mention_an_engine_that_all_systems_use():
    assert "engine" not in " ".join(all_notes(RECORDS))


@pytest.fixture(scope="module")
def all_costs():
    """Return the table of all costs of RECORDS."""
    return costs_table(score_frame(RECORDS), ALL_COSTS)


def cost_cells(table):
    """Return the cells of a table of costs by system and corpus."""
    cells = {}
    for system, corpus, *costs in map(table.texts, table.rows):
        cells[system, corpus] = costs
    return cells


def test_the_table_of_costs_has_a_row_for_each_system_and_corpus(all_costs):
    """News-en-de has two test sets; its costs are those of one training, so it has one row."""
    assert list(cost_cells(all_costs)) == [
        ("tiny", "news-en-de"),
        ("tiny", "talks-en-fr"),
        ("small", "news-en-de"),
        ("small", "talks-en-fr"),
    ]


def test_the_table_of_costs_has_counted_and_measured_columns(all_costs):
    assert labels_of(all_costs) == [
        "System",
        "Corpus",
        # What the program counts, which is the same on every machine.
        "Parameters",
        "Updates",
        "Target tokens",
        "FLOPs",
        # What a machine measures.
        "Training time",
        "Tokens/s",
        "Memory",
        "Seconds x devices x sustained FLOPS",
        "MFU",
        "Device",
    ]


def test_costs_of_a_measured_training_are_shown(all_costs):
    """Twelve hours on 4 devices with 9.5e12 sustained operations per second are 1.6e18."""
    counted = ["2.57M", "8,000", "8.12M", "3.3e18"]
    measured = ["12:00:00", "51,234", "2.5 GB", "1.6e18", "35.1%", "Fast Chip, 8 x 4 threads"]
    assert cost_cells(all_costs)["tiny", "news-en-de"] == counted + measured


def test_costs_are_those_of_the_training_on_the_same_corpus(all_costs):
    """The training on talks took 61 seconds and 5.0e17 operations."""
    flops, training_time = cost_cells(all_costs)["tiny", "talks-en-fr"][3:5]
    assert flops == "5.0e17"
    assert training_time == "0:01:01"


def test_costs_that_were_not_measured_are_dashes(all_costs):
    counted = ["2.57M", "8,000", "8.12M", "3.3e18"]
    six_measured_columns = ["–"] * 6
    assert cost_cells(all_costs)["small", "news-en-de"] == counted + six_measured_columns


def test_costs_are_means_over_seeds_and_name_all_devices():
    """The seeds trained on 1.0 and 2.0 million target tokens, on different devices.

    Each training has two records, one for each test set, and must count once.
    """
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0, seed=1, target_tokens=1_000_000),
        record("tiny", "news-en-de", "second", bleu=30.0, seed=1, target_tokens=1_000_000),
        record("tiny", "news-en-de", "first", bleu=30.0, seed=2, target_tokens=2_000_000),
        record("tiny", "news-en-de", "second", bleu=30.0, seed=2, target_tokens=2_000_000),
    )
    records.runs.loc[records.runs.seed == 1, "device"] = "Fast Chip"
    records.runs.loc[records.runs.seed == 2, "device"] = "Slow Chip"

    table = costs_table(score_frame(records), ALL_COSTS)

    (row,) = rows_of(table).values()
    assert row["Target tokens"] == "1.50M"
    assert row["Device"] == "Fast Chip, 8 x 4 threads; Slow Chip, 8 x 4 threads"


@pytest.mark.parametrize(
    ("test_set", "cells"),
    [
        pytest.param(
            "news-en-de, first",
            ["small", "61.1 [60.1, 62.1]", "+10.0‡ p=0.001", "≥ 90%"],
            id="p of 0.001",
        ),
        pytest.param(
            "news-en-de, second",
            ["small", "62.2 [61.2, 63.2]", "+10.0 n.s. p=0.050"],
            id="p of 0.050",
        ),
        pytest.param(
            "talks-en-fr, only",
            ["small", "63.3 [62.3, 64.3]", "+10.0‡ p=0.049", "≥ 90%"],
            id="p of 0.049",
        ),
    ],
)
def test_chrf2_has_its_own_differences_and_human_agreement(test_set, cells):
    """Small is 10 BLEU and 10 chrF2 above tiny; chrF2 is 20 above BLEU for both."""
    tables = tables_by_test_set(score_frame(RECORDS), ["chrf2"], costs=())

    assert list(rows_of(tables[test_set])["small"].values()) == cells


def test_a_difference_in_chrf2pp_does_not_show_how_often_people_would_agree():
    """A difference in BLEU has a column `human agreement`: how many people would see it, too.

    No study has measured this for chrF2++, so its table has these three columns only.
    """
    tables = tables_by_test_set(score_frame(RECORDS), ["chrf2pp"], costs=())

    row = rows_of(tables["talks-en-fr, only"])["small"]

    assert row == {
        "System": "small",
        "chrF2++": "61.3 [60.3, 62.3]",
        "Δ chrF2++": "+10.0‡ p=0.049",
    }


@pytest.mark.parametrize(
    "note",
    [
        pytest.param("Δ is the difference from tiny.", id="baseline"),
        pytest.param("† marks p below 0.05 (paired bootstrap, one tail).", id="dagger"),
        pytest.param("‡ marks p below 0.05 after Holm's", id="double dagger"),
        pytest.param("after Holm's correction", id="correction"),
        pytest.param("n.s. means not significant", id="n.s."),
        pytest.param(
            "Brackets give the 95% confidence interval (95% CI, bootstrap).", id="interval"
        ),
    ],
)
def test_notes_explain_the_signs_of_the_tables(note):
    assert note in " ".join(all_notes(RECORDS))


def test_the_note_on_the_baseline_precedes_that_on_significance():
    expected = "Δ is the difference from tiny. † marks p below 0.05 (paired bootstrap, one tail)."
    assert expected in " ".join(all_notes(RECORDS))


@pytest.mark.parametrize("sign", ["Δ", "†", "n.s."])
def test_notes_do_not_explain_signs_that_no_table_shows(sign):
    """An only system has no differences."""
    only_tiny = records_from_rows(*TWO_SYSTEMS[:3])

    assert sign not in " ".join(all_notes(only_tiny))


def test_notes_do_not_mention_published_numbers_if_there_are_none():
    only_tiny = records_from_rows(*TWO_SYSTEMS[:3])

    assert "published" not in " ".join(all_notes(only_tiny)).lower()


def test_holms_correction_covers_external_systems():
    """Two systems are tested: small with p = 0.02, and the external system `a` with p = 0.04.

    Holm's correction doubles the smaller one of two p-values, and keeps the larger one.
    """
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record("small", "news-en-de", "first", bleu=40.0, **compared_with("tiny", p=0.02)),
        record("a", "news-en-de", "first", bleu=41.0, about="A", **compared_with("tiny", p=0.04)),
    )

    _baseline, small_p, external_p = metric_values(records, "bleu", column="p_holm")

    assert small_p == 0.04
    assert external_p == 0.04


def test_an_external_system_can_have_the_best_score():
    """The best score is bold; the baseline is the first trained system."""
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record("small", "news-en-de", "first", bleu=40.0, **compared_with("tiny", p=0.02)),
        record("a", "news-en-de", "first", bleu=41.0, about="A", **compared_with("tiny", p=0.04)),
    )

    table = wide_bleu_table(score_frame(records))

    bleu = table.column("BLEU")
    is_bold = {}
    for row in table.rows:
        name, *_ = table.texts(row)
        is_bold[name] = row.cell(bleu).is_bold
    assert is_bold == {"Baseline: tiny": False, "small": False, "a (external)": True}
    assert [row.kind for row in table.rows] == ["baseline", "", ""]
