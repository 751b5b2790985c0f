"""The tables of BLEU variants and breakdowns: every figure is in its own row and column."""

from bleuprint.config.published import Published
from bleuprint.report import pivot_tables, score_tables
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.score_frame import score_frame
from bleuprint.report.table import GROUP, NONE
from result_rows import against, frame, labels_of, measured, record

NO_LOSS = {"loss": None, "perplexity": None, "word_perplexity": None}
RECORDS = [
    record("tiny", "news-en-de", "first", 30.0),
    record("small", "news-en-de", "first", 40.0, length_ratio=1.01, **against("tiny", 0.01)),
    record("tiny", "talks-en-zh", "only", 20.0),
]


def rows_of(table):
    return [dict(zip(labels_of(table), table.texts(row), strict=True)) for row in table.rows]


def test_losses_are_means_over_seeds():
    seeds = [
        record("tiny", "news-en-de", "first", 30.0),
        record("tiny", "news-en-de", "first", 30.0, seed=2, loss=2.0, perplexity=7.389),
    ]
    alone = record("tiny", "talks-en-zh", "only", 20.0, **NO_LOSS)
    name, row = rows_of(pivot_tables.loss_table(score_frame(frame(*seeds, alone))))
    assert name["System"] == "news-en-de, first"
    assert row == {"System": "tiny", "Loss": "1.750", "Perplexity": "5.94", "Per word": "20.2"}
    assert pivot_tables.loss_table(score_frame(frame(alone))) is None


def test_published_perplexities_stand_above_ours():
    known = {"corpus": "news-en-de", "test": "first", "bleu": 30.0}
    numbers = (
        Published("A paper", "there", **known, metric="tokenized", perplexity=5.647),
        Published("A paper", "there", **known, metric="unknown", perplexity=5.647),
        Published("No perplexity", "there", **known, metric="tokenized"),
        Published("Elsewhere", "x", "other", "first", 3.0, "tokenized", perplexity=2.0),
    )
    table = pivot_tables.loss_table(score_frame(with_published_numbers(frame(*RECORDS), numbers)))
    assert [row.kind for row in table.rows] == [GROUP, "published", "", "", GROUP, ""]
    _, first, ours, *_ = rows_of(table)
    printed = {"Loss": "1.731", "Perplexity": "5.65", "Per word": NONE}
    assert first == {"System": "A paper (published)", **printed}
    assert ours["System"] == "tiny"


def test_bleu_by_length_and_the_length_ratio():
    third = record("tiny", "talks-en-zh", "only", 20.0)
    third["metrics"] |= {
        ("bleu", "length 1-10"): measured("bleu", 11.0, units=7),
        ("bleu", "length 11-20"): measured("bleu", 12.0, units=3),
    }
    del third["metrics"]["bleu", "length over 50"]
    table = pivot_tables.length_table(score_frame(frame(*RECORDS[:2], third)))
    assert [list(row.values()) for row in rows_of(table)] == [
        ["news-en-de, first (lines)", "400", "", "600", "1,000"],
        ["tiny", "33.0", NONE, "27.0", "0.980"],
        ["small", "43.0", NONE, "37.0", "1.010"],
        ["talks-en-zh, only (lines)", "7", "3", "", "1,000"],
        ["tiny", "11.0", "12.0", NONE, "0.980"],
    ]
    assert labels_of(table) == ["System", "1-10", "11-20", "over 50", "Length ratio"]


def test_rare_words_in_percent_where_tokens_are_words():
    of_characters = record("tiny", "talks-en-zh", "only", 20.0)
    for bucket in ("0", "100+"):
        del of_characters["metrics"]["word_accuracy", f"count {bucket}"]
    rows = rows_of(pivot_tables.word_recall_table(score_frame(frame(*RECORDS[:2]))))
    assert [list(row.values()) for row in rows] == [
        ["news-en-de, first (words)", "50", "1,200"],
        ["tiny", "20.0", "50.0"],
        ["small", "20.0", "50.0"],
    ]
    assert list(rows[0])[1:] == ["0", "100+"]
    assert pivot_tables.word_recall_table(score_frame(frame(of_characters))) is None


def test_scores_as_papers_with_the_difference():
    """BLEU as papers count it stands beside BLEU, a dash where it was not counted so."""
    numbers = [
        Published(f"Paper {variant}", "there", "news-en-de", "first", 35.0, variant)
        for variant in ("lower-cased", "intl", "tokens", "compound-split")
    ]
    scores = score_frame(with_published_numbers(frame(*RECORDS), numbers))
    tables = score_tables.tables_by_test_set(scores)
    rows = {row["System"]: row for row in rows_of(tables["news-en-de, first"])}
    # the variants of the records are 1.5 and 0.25 above BLEU, and 0.5 below; none is split
    shown = {
        "BLEU lower-cased": "31.5",
        "BLEU intl": "29.5",
        "BLEU tokens": "30.2",
        "BLEU compound-split": NONE,
    }
    assert shown.items() <= rows["Baseline: tiny"].items()
    assert rows["Baseline: tiny"]["BLEU"] == "30.0 [29.0, 32.0]"
    assert rows["small"]["BLEU intl"] == "39.5"
    assert rows["Paper intl (published)"]["BLEU intl"] == "35.0"
    assert rows["Paper intl (published)"]["BLEU tokens"] == NONE
    # no paper is about the other test set
    assert labels_of(tables["talks-en-zh, only"]) == ["System", "BLEU", "FLOPs"]


def test_means_over_seeds():
    other = record(
        "tiny",
        "news-en-de",
        "first",
        32.0,
        seed=2,
        length_ratio=1.0,
        metrics={
            ("word_accuracy", "count 0"): measured("word_accuracy", 40.0, units=50),
            ("word_accuracy", "count 100+"): measured("word_accuracy", 25.0, units=1200),
        },
    )
    numbers = [Published("Paper", "there", "news-en-de", "first", 35.0, "lower-cased")]
    scores = score_frame(with_published_numbers(frame(RECORDS[0], other), numbers))
    (table,) = score_tables.tables_by_test_set(scores).values()
    _, tiny = rows_of(table)
    # 30 and 32 are 1 from their mean: sd sqrt(2); lower-cased 1.5 more
    assert (tiny["BLEU"], tiny["BLEU lower-cased"]) == ("31.0 ± 1.4", "32.5")
    _, lengths = rows_of(pivot_tables.length_table(scores))
    assert (lengths["1-10"], lengths["Length ratio"]) == ("34.0", "0.990")
    _, words = rows_of(pivot_tables.word_recall_table(scores))
    assert (words["0"], words["100+"]) == ("30.0", "37.5")
