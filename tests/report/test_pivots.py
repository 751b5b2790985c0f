"""The tables of BLEU variants and breakdowns: every figure is in its own row and column."""

import math
import statistics

import pytest

from bleuprint.config.published import Published
from bleuprint.report import pivot_tables, score_tables
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.score_frame import score_frame
from bleuprint.report.table import DASH, TITLE_ROW
from result_rows import compared_with, labels_of, measured, record, records_from_rows


@pytest.fixture(scope="module")
def records():
    """Return the records of tiny and small on news-en-de, and of tiny on talks-en-zh."""
    return records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record(
            "small",
            "news-en-de",
            "first",
            bleu=40.0,
            length_ratio=1.01,
            **compared_with("tiny", p=0.01),
        ),
        record("tiny", "talks-en-zh", "only", bleu=20.0),
    )


def rows_of(table):
    """Return the texts of each row of a table by the heads of the columns."""
    heads = labels_of(table)
    rows = []
    for row in table.rows:
        rows.append(dict(zip(heads, table.texts(row), strict=True)))
    return rows


def texts_of(table):
    """Return the texts of a table, row by row."""
    return [table.texts(row) for row in table.rows]


def without_loss(system, corpus, test, bleu):
    """Return the record of a system whose loss was not computed."""
    return record(system, corpus, test, bleu=bleu, loss=None, perplexity=None, word_perplexity=None)


def test_losses_and_perplexities_are_means_over_seeds():
    """Perplexity is averaged, too, and not computed from the mean loss: exp(1.75) = 5.75."""
    first = record("tiny", "news-en-de", "first", bleu=30.0, loss=1.5, perplexity=4.4817)
    second = record("tiny", "news-en-de", "first", bleu=30.0, seed=2, loss=2.0, perplexity=7.389)

    title, row = rows_of(pivot_tables.loss_table(score_frame(records_from_rows(first, second))))

    assert title["System"] == "news-en-de, first"
    mean_loss = (1.5 + 2.0) / 2
    mean_perplexity = (4.4817 + 7.389) / 2
    assert row == {
        "System": "tiny",
        "Loss": f"{mean_loss:.3f}",
        "Perplexity": f"{mean_perplexity:.2f}",
        "Per word": "20.2",  # 20.25 in both records
    }


def test_a_system_without_a_loss_is_not_in_the_table_of_losses():
    """Of tiny on talks-en-zh no loss is known, so the table ends after news-en-de."""
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        without_loss("tiny", "talks-en-zh", "only", 20.0),
    )

    title, row = rows_of(pivot_tables.loss_table(score_frame(records)))

    assert title["System"] == "news-en-de, first"
    assert row["System"] == "tiny"


def test_without_any_loss_there_is_no_table_of_losses():
    records = records_from_rows(without_loss("tiny", "talks-en-zh", "only", 20.0))

    assert pivot_tables.loss_table(score_frame(records)) is None


@pytest.fixture
def loss_table_with_paper(records):
    """Return the table of losses with a paper's perplexity, which is named with two scores.

    A number without a perplexity and one on another corpus are not shown.
    """
    numbers = [
        Published("A paper", "there", "news-en-de", "first", 30.0, "tokenized", perplexity=5.647),
        Published("A paper", "there", "news-en-de", "first", 30.0, "unknown", perplexity=5.647),
        Published("No perplexity", "there", "news-en-de", "first", 30.0, "tokenized"),
        Published("Elsewhere", "x", "other", "first", 3.0, "tokenized", perplexity=2.0),
    ]
    return pivot_tables.loss_table(score_frame(with_published_numbers(records, numbers)))


def test_a_published_perplexity_stands_once_above_ours(loss_table_with_paper):
    row_kinds = [row.kind for row in loss_table_with_paper.rows]

    assert row_kinds == [TITLE_ROW, "published", "", "", TITLE_ROW, ""]


def test_a_published_perplexity_is_shown_with_its_loss(loss_table_with_paper):
    """A paper reports the perplexity 5.647; the loss is its logarithm."""
    _title, paper, ours, *_ = rows_of(loss_table_with_paper)

    assert paper == {
        "System": "A paper (published)",
        "Loss": f"{math.log(5.647):.3f}",
        "Perplexity": "5.65",
        "Per word": DASH,
    }
    assert ours["System"] == "tiny"


@pytest.fixture
def length_table():
    """Return the table of BLEU by length of the source.

    On news-en-de, lines have up to 10 or over 50 tokens; on talks-en-zh up to 20.
    """
    talks = record("tiny", "talks-en-zh", "only", bleu=20.0)
    del talks["metrics"]["bleu", "length over 50"]
    talks["metrics"]["bleu", "length 1-10"] = measured("bleu", 11.0, units=7)
    talks["metrics"]["bleu", "length 11-20"] = measured("bleu", 12.0, units=3)
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record(
            "small",
            "news-en-de",
            "first",
            bleu=40.0,
            length_ratio=1.01,
            **compared_with("tiny", p=0.01),
        ),
        talks,
    )
    return pivot_tables.length_table(score_frame(records))


def test_bleu_by_length_has_a_column_for_each_range_that_any_test_set_has(length_table):
    assert labels_of(length_table) == ["System", "1-10", "11-20", "over 50", "Length ratio"]


def test_bleu_by_length_shows_the_number_of_lines_above_the_scores(length_table):
    """BLEU of few lines says little, so the reader must see how many there are.

    Columns after the name: lines of 1 to 10 tokens, of 11 to 20, of more than 50, and the length
    ratio, which is that of all lines.
    """
    assert texts_of(length_table) == [
        ["news-en-de, first (lines)", "400", "", "600", "1,000"],
        ["tiny", "33.0", DASH, "27.0", "0.980"],
        ["small", "43.0", DASH, "37.0", "1.010"],
        ["talks-en-zh, only (lines)", "7", "3", "", "1,000"],
        ["tiny", "11.0", "12.0", DASH, "0.980"],
    ]


def test_word_recall_shows_the_number_of_words_by_their_training_frequency():
    """Word recall: the percentage of reference words that the translation contains.

    `record` gives each system the recall of two groups of words: 50 words that the training text
    lacks, with a recall of 20%, and 1,200 words that it contains 100 times or more, with 50%.
    """
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record("small", "news-en-de", "first", bleu=40.0, **compared_with("tiny", p=0.01)),
    )

    table = pivot_tables.word_recall_table(score_frame(records))

    _name, *frequencies = labels_of(table)
    assert frequencies == ["0", "100+"]
    assert texts_of(table) == [
        ["news-en-de, first (words)", "50", "1,200"],
        ["tiny", "20.0", "50.0"],
        ["small", "20.0", "50.0"],
    ]


def test_without_words_there_is_no_table_of_word_recall():
    """Chinese is split into characters, so its records lack the recall of words."""
    chinese = record("tiny", "talks-en-zh", "only", bleu=20.0)
    del chinese["metrics"]["word_accuracy", "count 0"]
    del chinese["metrics"]["word_accuracy", "count 100+"]

    assert pivot_tables.word_recall_table(score_frame(records_from_rows(chinese))) is None


@pytest.fixture
def tables_with_papers(records):
    """Return the tables of scores with a paper for each of four variants of BLEU."""
    numbers = []
    for variant in ("lower-cased", "intl", "tokens", "compound-split"):
        numbers.append(Published(f"Paper {variant}", "there", "news-en-de", "first", 35.0, variant))
    scores = score_frame(with_published_numbers(records, numbers))
    return score_tables.tables_by_test_set(scores)


def test_our_systems_are_scored_in_the_bleu_variants_of_papers(tables_with_papers):
    """Papers compute BLEU in different ways; only the same variant can be compared.

    In the records of tiny, BLEU is 30, lower-cased BLEU 1.5 higher, that of tokens 0.25 higher, and
    that with the tokenizer intl 0.5 lower. Compound-split BLEU was not computed.
    """
    rows = {row["System"]: row for row in rows_of(tables_with_papers["news-en-de, first"])}

    tiny = rows["Baseline: tiny"]
    assert tiny["BLEU"] == "30.0 [29.0, 32.0]"
    assert tiny["BLEU lower-cased"] == "31.5"
    assert tiny["BLEU intl"] == "29.5"
    assert tiny["BLEU tokens"] == "30.2"  # 30.25
    assert tiny["BLEU compound-split"] == DASH
    bleu_of_small = 40.0
    assert rows["small"]["BLEU intl"] == f"{bleu_of_small - 0.5}"


def test_a_paper_has_a_score_in_its_own_bleu_variant_only(tables_with_papers):
    rows = {row["System"]: row for row in rows_of(tables_with_papers["news-en-de, first"])}

    assert rows["Paper intl (published)"]["BLEU intl"] == "35.0"
    assert rows["Paper intl (published)"]["BLEU tokens"] == DASH


def test_a_test_set_without_papers_has_no_columns_of_bleu_variants(tables_with_papers):
    assert labels_of(tables_with_papers["talks-en-zh, only"]) == ["System", "BLEU", "FLOPs"]


@pytest.fixture
def scores_of_two_seeds():
    """Return the score frame of tiny with two seeds, and a paper with lower-cased BLEU."""
    word_accuracy = {
        ("word_accuracy", "count 0"): measured("word_accuracy", 40.0, units=50),
        ("word_accuracy", "count 100+"): measured("word_accuracy", 25.0, units=1200),
    }
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.0),
        record(
            "tiny",
            "news-en-de",
            "first",
            32.0,
            seed=2,
            length_ratio=1.0,
            metrics=word_accuracy,
        ),
    )
    number = Published("Paper", "there", "news-en-de", "first", 35.0, "lower-cased")
    return score_frame(with_published_numbers(records, [number]))


def test_bleu_variants_are_means_over_seeds(scores_of_two_seeds):
    """With two seeds, BLEU is 30 and 32, and lower-cased BLEU 1.5 higher."""
    (table,) = score_tables.tables_by_test_set(scores_of_two_seeds).values()

    _paper, tiny = rows_of(table)

    deviation = statistics.stdev([30, 32])
    assert tiny["BLEU"] == f"31.0 ± {deviation:.1f}"
    assert tiny["BLEU lower-cased"] == f"{31.0 + 1.5}"


def test_bleu_by_length_and_the_length_ratio_are_means_over_seeds(scores_of_two_seeds):
    """With two seeds, BLEU of short lines is 33 and 35, and the length ratio is 0.98 and 1.0."""
    _title, tiny = rows_of(pivot_tables.length_table(scores_of_two_seeds))

    assert tiny["1-10"] == f"{(33 + 35) / 2}"
    assert tiny["Length ratio"] == f"{(0.98 + 1.0) / 2:.3f}"


def test_word_recall_is_the_mean_over_seeds(scores_of_two_seeds):
    """With two seeds, it is 20 and 40 for unseen words, and 50 and 25 for frequent ones."""
    _title, tiny = rows_of(pivot_tables.word_recall_table(scores_of_two_seeds))

    assert tiny["0"] == f"{(20 + 40) / 2}"
    assert tiny["100+"] == f"{(50 + 25) / 2}"
