"""The tables of BLEU variants and breakdowns: every figure is in its own row and column."""

from bleuprint.config.published import Published
from bleuprint.report import tables
from bleuprint.report.grid import GROUP, NONE
from result_rows import against, frame, measured, record

NO_LOSS = {"loss": None, "perplexity": None, "word_perplexity": None}
RECORDS = [
    record("tiny", "news-en-de", "first", 30.0),
    record("small", "news-en-de", "first", 40.0, length_ratio=1.01, **against("tiny", 0.01)),
    record("tiny", "talks-en-zh", "only", 20.0),
]


def rows_of(grid):
    heads = [column.label for column in grid.columns]
    return [dict(zip(heads, row.cells, strict=True)) for row in grid.rows]


def test_losses_are_means_over_seeds():
    seeds = [
        record("tiny", "news-en-de", "first", 30.0),
        record("tiny", "news-en-de", "first", 30.0, seed=2, loss=2.0, perplexity=7.389),
    ]
    alone = record("tiny", "talks-en-zh", "only", 20.0, **NO_LOSS)
    name, row = rows_of(tables.losses(frame(*seeds, alone)))
    assert name["System"] == "news-en-de, first"
    assert row == {"System": "tiny", "Loss": "1.750", "Perplexity": "5.94", "Per word": "20.2"}
    assert tables.losses(frame(alone)) is None


def test_published_perplexities_stand_above_ours():
    known = {"corpus": "news-en-de", "test": "first", "bleu": 30.0}
    numbers = (
        Published("A paper", "there", **known, scored="tokenized", perplexity=5.647),
        Published("A paper", "there", **known, scored="otherwise", perplexity=5.647),
        Published("No perplexity", "there", **known, scored="tokenized"),
        Published("Elsewhere", "x", "other", "first", 3.0, "tokenized", perplexity=2.0),
    )
    grid = tables.losses(frame(*RECORDS), numbers)
    assert [row.kind for row in grid.rows] == [GROUP, "published", "", "", GROUP, ""]
    _, first, ours, *_ = rows_of(grid)
    printed = {"Loss": "1.731", "Perplexity": "5.65", "Per word": NONE}
    assert first == {"System": "A paper (published)", **printed}
    assert ours["System"] == "tiny"


def test_bleu_by_length_and_the_length_ratio():
    third = record("tiny", "talks-en-zh", "only", 20.0)
    third["measures"] |= {
        ("bleu", "length 1-10"): measured("bleu", 11.0, units=7),
        ("bleu", "length 11-20"): measured("bleu", 12.0, units=3),
    }
    del third["measures"]["bleu", "length over 50"]
    grid = tables.by_length(frame(*RECORDS[:2], third))
    assert [list(row.values()) for row in rows_of(grid)] == [
        ["news-en-de, first (lines)", "400", "", "600", "1,000"],
        ["tiny", "33.0", NONE, "27.0", "0.980"],
        ["small", "43.0", NONE, "37.0", "1.010"],
        ["talks-en-zh, only (lines)", "7", "3", "", "1,000"],
        ["tiny", "11.0", "12.0", NONE, "0.980"],
    ]
    heads = [column.label for column in grid.columns]
    assert heads == ["System", "1-10", "11-20", "over 50", "Length ratio"]


def test_rare_words_in_percent_where_tokens_are_words():
    of_characters = record("tiny", "talks-en-zh", "only", 20.0)
    for bucket in ("0", "100+"):
        del of_characters["measures"]["word_accuracy", f"count {bucket}"]
    rows = rows_of(tables.by_count(frame(*RECORDS[:2])))
    assert [list(row.values()) for row in rows] == [
        ["news-en-de, first (words)", "50", "1,200"],
        ["tiny", "20.0", "50.0"],
        ["small", "20.0", "50.0"],
    ]
    assert list(rows[0])[1:] == ["0", "100+"]
    assert tables.by_count(frame(of_characters)) is None
