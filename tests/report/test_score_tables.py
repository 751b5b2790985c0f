"""The table's text, and that every number is in its own row and column."""

import itertools

import pytest

import result_rows
from bleuprint.report.cost_columns import COUNTED_COSTS, MEASURED_COSTS, costs_table
from bleuprint.report.frame import Records
from bleuprint.report.notes import all_notes as notes_of
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from bleuprint.report.table import Column
from result_rows import TWO_SYSTEMS, changed, frame, labels_of, record, rows_of

COSTS = (*COUNTED_COSTS, *MEASURED_COSTS)
RECORDS = frame(*TWO_SYSTEMS, missing="small")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_records_moves_no_number(order):
    def tables(rows):
        found = tables_by_test_set(score_frame(frame(*rows)), ["bleu", "chrf2"])
        return {name: rows_of(table) for name, table in found.items()}

    shuffled = [TWO_SYSTEMS[3 * system + i] for i in order for system in (1, 0)]
    assert [row["facts"]["system"] for row in shuffled[:2]] == ["small", "tiny"]
    assert tables(shuffled) == tables(TWO_SYSTEMS)


def test_a_corpus_without_its_pair_in_the_name_shows_it():
    records = frame(record("tiny", "news-en-de", "first", 31.0))
    records = Records(*(e.assign(corpus="news") for e in (records.runs, records.metrics)))
    table = wide_bleu_table(score_frame(records))
    assert table.columns[1] == Column("BLEU", "news (en-de), first")


def test_several_seeds():
    seeds = frame(
        record("tiny", "news-en-de", "only", 30.0, seed=7),
        record("tiny", "news-en-de", "only", 33.0, seed=2),
        record("small", "news-en-de", "only", 40.0, seed=7, **result_rows.against("tiny", 0.2)),
        record("small", "news-en-de", "only", 42.0, seed=2, **result_rows.against("tiny", 0.001)),
    )
    rows = rows_of(wide_bleu_table(score_frame(seeds)))
    # 30 and 33 are 1.5 from their mean: sd sqrt(2 * 1.5^2 / 1) = 2.12; 40 and 42: 1.41.
    assert rows["Baseline: tiny"]["news-en-de, only BLEU"] == "31.5 ± 2.1"
    assert rows["small"]["news-en-de, only BLEU"] == "41.0 ± 1.4"
    # differences of 10 and 9: t = 9.5 / (0.7071 / sqrt 2) = 19 with 1 degree of freedom, where
    # p = 1 - 2/pi * arctan 19 = 0.0335 by the formula of Cauchy's distribution
    assert rows["small"]["news-en-de, only Δ BLEU"] == "+9.5‡ p=0.033"
    notes = " ".join(notes_of(seeds))
    assert "standard deviation over 2 seeds" in notes
    assert "paired t-test over 2 seeds" in notes and "bootstrap" not in notes
    assert "2 seeds" not in " ".join(notes_of(RECORDS))


def test_the_best_of_each_column_is_marked():
    def best(records, metrics=("bleu",)):
        return {
            (name, table.texts(row)[0]): {
                column.label for column in table.columns if row.cell(column).is_best
            }
            for name, table in tables_by_test_set(score_frame(records), metrics).items()
            for row in table.rows
        }

    records = frame(
        *TWO_SYSTEMS[:2],
        record("small", "news-en-de", "first", 30.9, **result_rows.against("tiny", 0.5)),
        record("small", "news-en-de", "second", 32.22, **result_rows.against("tiny", 1.0)),
    )
    assert best(records, ["bleu", "ter"]) == {
        ("news-en-de, first", "Baseline: tiny"): {"BLEU"},
        ("news-en-de, first", "small"): {"TER"},  # where less is better
        ("news-en-de, second", "Baseline: tiny"): {"BLEU", "TER"},
        ("news-en-de, second", "small"): {"BLEU", "TER"},
    }
    assert not any(best(frame(*TWO_SYSTEMS[:3])).values())


def test_notes_name_engines_where_they_differ():
    same = " ".join(notes_of(RECORDS))
    assert "engine" not in same
    mixed = changed(RECORDS, {"system": "small"}, engine="ctranslate2", precision="int8")
    expected = (
        "Not all systems translated with the same engine and precision. "
        "pytorch float32: tiny; ctranslate2 int8: small."
    )
    assert expected in notes_of(mixed)


def test_costs_counted_and_measured():
    table = costs_table(score_frame(RECORDS), COSTS)
    texts = [table.texts(row) for row in table.rows]
    rows = {(system, corpus): tuple(others) for system, corpus, *others in texts}
    counted = ("2.57M", "8,000", "8.12M", "3.3e18")
    measured = ("12:00:00", "51,234", "2.5 GB", "1.6e18", "35.1%")
    where = ("Fast Chip, 8 x 4 threads",)
    assert rows["tiny", "news-en-de"] == (*counted, *measured, *where)
    assert rows["tiny", "talks-en-fr"][3:5] == ("5.0e17", "0:01:01")
    assert rows["small", "news-en-de"] == (*counted, *"––––––")
    assert labels_of(table) == [
        *("System", "Corpus", "Parameters", "Updates", "Target tokens", "FLOPs"),
        *("Training time", "Tokens/s", "Memory"),
        *("Seconds x devices x sustained FLOPS", "MFU", "Device"),
    ]
    assert list(rows) == [
        ("tiny", "news-en-de"),
        ("tiny", "talks-en-fr"),
        ("small", "news-en-de"),
        ("small", "talks-en-fr"),
    ]


def test_costs_are_means_over_seeds():
    seeds = [
        record("tiny", "news-en-de", test, 30.0, seed=seed, target_tokens=tokens)
        for seed, tokens in ((1, 1_000_000), (2, 2_000_000))
        for test in ("first", "second")
    ]
    records = frame(*seeds)
    records.runs.loc[records.runs.seed == 2, "device"] = "Slow Chip"
    table = costs_table(score_frame(records), COSTS)
    (row,) = table.rows
    assert table.texts(row)[4] == "1.50M"
    assert table.texts(row)[-1] == "Fast Chip, 8 x 4 threads; Slow Chip, 8 x 4 threads"


def test_chrf_stands_in_its_own_table():
    of_chrf = tables_by_test_set(score_frame(RECORDS), ["chrf2"], costs=())
    small = {name: list(rows_of(table)["small"].values()) for name, table in of_chrf.items()}
    # BLEU is 10 above the baseline, chrF2 20 above BLEU
    assert small == {
        "news-en-de, first": ["small", "61.1 [60.1, 62.1]", "+10.0‡ p=0.001", "≥ 90%"],
        "news-en-de, second": ["small", "62.2 [61.2, 63.2]", "+10.0 n.s. p=0.050"],
        "talks-en-fr, only": ["small", "63.3 [62.3, 64.3]", "+10.0‡ p=0.049", "≥ 90%"],
    }
    # nobody has measured how people judge differences in chrF2++
    of_words = tables_by_test_set(score_frame(RECORDS), ["chrf2pp"], costs=())
    assert rows_of(of_words["talks-en-fr, only"])["small"] == {
        "System": "small",
        "chrF2++": "61.3 [60.3, 62.3]",
        "Δ chrF2++": "+10.0‡ p=0.049",
    }


def test_notes_name_the_baseline_and_what_is_not_significant():
    text = " ".join(notes_of(RECORDS))
    assert (
        "Δ is the difference from tiny. † marks p below 0.05 (paired bootstrap, one tail)." in text
    )
    assert "‡ marks p below 0.05 after Holm's" in text
    assert "after Holm's correction" in text
    assert "n.s. means not significant" in text
    assert "Brackets give the 95% confidence interval (95% CI, bootstrap)." in text
    # of what no table shows nothing is said
    alone = " ".join(notes_of(frame(*TWO_SYSTEMS[:3])))
    assert "Δ" not in alone
    assert "†" not in alone
    assert "n.s." not in alone
    assert "published" not in text.lower()
