"""The tables of BLEU variants and breakdowns: every figure is in its own row and column."""

from bleuprint.config.published import Published
from bleuprint.report import tables
from result_rows import against, frame, measured, record

NO_LOSS = {"loss": None, "perplexity": None, "word_perplexity": None}
RECORDS = [
    record("tiny", "news-en-de", "first", 30.0),
    record("small", "news-en-de", "first", 40.0, length_ratio=1.01, **against("tiny", 0.01)),
    record("tiny", "talks-en-zh", "only", 20.0),
]


def rows_of(grid):
    assert grid is not None
    heads = [column.label for column in grid.columns]
    return [dict(zip(heads, row.cells, strict=True)) for row in grid.rows]


def test_losses_are_means_over_seeds():
    seeds = [
        record("tiny", "news-en-de", "first", 30.0),
        record("tiny", "news-en-de", "first", 30.0, seed=2, loss=2.0, perplexity=7.389),
    ]
    alone = record("tiny", "talks-en-zh", "only", 20.0, **NO_LOSS)
    place = {"System": "tiny", "Corpus": "news-en-de", "Test set": "first"}
    assert rows_of(tables.losses(frame(*seeds, alone))) == [
        {**place, "Loss": "1.750", "Perplexity": "5.94", "Per word": "20.2"},
        {
            **{"System": "tiny", "Corpus": "talks-en-zh", "Test set": "only"},
            **{"Loss": "–", "Perplexity": "–", "Per word": "–"},
        },
    ]
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
    assert grid
    assert [row.kind for row in grid.rows] == ["published", "", "", ""]
    first, ours, *_ = rows_of(grid)
    place = {"Corpus": "news-en-de", "Test set": "first"}
    printed = {"Loss": "1.731", "Perplexity": "5.65", "Per word": "–"}
    assert first == {"System": "A paper (published)", **place, **printed}
    assert ours["System"] == "tiny"


def test_bleu_by_length_and_the_length_ratio():
    place = {"Corpus": "news-en-de", "Test set": "first"}
    third = record("tiny", "talks-en-zh", "only", 20.0)
    third["measures"] |= {
        ("bleu", "length 1-10"): measured("bleu", 11.0, units=7),
        ("bleu", "length 11-20"): measured("bleu", 12.0, units=3),
    }
    del third["measures"]["bleu", "length over 50"]
    records = frame(*RECORDS[:2], third)
    rows = rows_of(tables.by_length(records))
    assert rows[:3] == [
        {
            **{"System": "(lines)", **place, "1-10": "400", "11-20": "–"},
            **{"over 50": "600", "Length ratio": "1,000"},
        },
        {
            **{"System": "tiny", **place, "1-10": "33.0", "11-20": "–"},
            **{"over 50": "27.0", "Length ratio": "0.980"},
        },
        {
            **{"System": "small", **place, "1-10": "43.0", "11-20": "–"},
            **{"over 50": "37.0", "Length ratio": "1.010"},
        },
    ]
    assert [rows[4][name] for name in ("System", "11-20", "over 50")] == ["tiny", "12.0", "–"]
    assert list(rows[4])[3:] == ["1-10", "11-20", "over 50", "Length ratio"]


def test_rare_words_in_percent_where_tokens_are_words():
    of_characters = record("tiny", "talks-en-zh", "only", 20.0)
    for bucket in ("0", "100+"):
        del of_characters["measures"]["word_accuracy", f"count {bucket}"]
    rows = rows_of(tables.by_count(frame(*RECORDS[:2])))
    assert [list(row.values()) for row in rows] == [
        ["(words)", "news-en-de", "first", "50", "1,200"],
        ["tiny", "news-en-de", "first", "20.0", "50.0"],
        ["small", "news-en-de", "first", "20.0", "50.0"],
    ]
    assert list(rows[0])[3:] == ["0", "100+"]
    assert tables.by_count(frame(of_characters)) is None
