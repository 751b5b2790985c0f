"""A column of scores: pairs of a table below a limit are dropped, and wrong scores are refused."""

import io
import json
from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest

from bleuprint.config.corpus_files import File, Text
from bleuprint.config.text_formats import PairScore
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError

# Sources, targets and scores; the limit of the tests is 0.5.
ROWS = [("eins", "one", 0.9), ("zwei", "three", 0.1), ("drei", "three", 0.5), ("vier", "5", -2.0)]
KEPT = [("eins", "one"), ("drei", "three")]


def table(separator, rows, header):
    """Return a table with a header, if wanted, as bytes."""
    lines = [separator.join(map(str, row)) + "\n" for row in rows]
    if header:
        lines.insert(0, separator.join(["de", "en", "bicleaner"]) + "\n")
    return "".join(lines).encode()


def json_lines(rows):
    """Return a .jsonl file, whose scores are in an object."""
    lines = []
    for source, target, score in rows:
        lines.append(json.dumps({"de": source, "en": target, "scores": {"laser": score}}) + "\n")
    return "".join(lines).encode()


def parquet(rows):
    """Return a Parquet file with the columns de, en and bicleaner."""
    sources, targets, scores = zip(*rows, strict=True)
    output = io.BytesIO()
    columns = {"de": list(sources), "en": list(targets), "bicleaner": list(scores)}
    pyarrow.parquet.write_table(pyarrow.table(columns), output)
    return output.getvalue()


# By format: the content of the file, and the column of the scores.
TABLES = {
    "tsv": (table("\t", ROWS, header=False), 3, (1, 2)),
    "tsv with header": (table("\t", ROWS, header=True), "bicleaner", ("de", "en")),
    "csv": (table(",", ROWS, header=True), "bicleaner", None),
    "csv with numbers": (table(";", ROWS, header=False), 3, (1, 2)),
    "jsonl": (json_lines(ROWS), "scores.laser", None),
    "parquet": (parquet(ROWS), "bicleaner", None),
}


def read(text_format, content, column, columns, counts=None):
    """Return the pairs of a table whose score is at least 0.5."""
    text = Text(
        "x",
        text_format,
        both=File(path="inputs/t"),
        columns=columns,
        score=PairScore(column=column, min=0.5),
    )
    return list(read_text(text, [io.BytesIO(content)], ("de", "en"), counts or SetCounts(), []))


@pytest.mark.parametrize("name", TABLES)
def test_pairs_with_a_low_score_are_dropped_and_counted(name):
    content, column, columns = TABLES[name]
    counts = SetCounts()

    assert read(name.split()[0], content, column, columns, counts) == KEPT
    assert counts.dropped == {"score": 2}


def test_scores_may_be_decimal_numbers():
    """Spark writes such columns to Parquet."""
    rows = [(source, target, Decimal(str(score))) for source, target, score in ROWS]

    assert read("parquet", parquet(rows), "bicleaner", None) == KEPT


@pytest.mark.parametrize(
    ("text_format", "content", "column", "columns", "message"),
    [
        pytest.param(
            "tsv",
            b"a\tb\t0.5\nc\td\thigh\n",
            3,
            (1, 2),
            "inputs/t:2: the score in column 3 is 'high', not a number. Correct the row",
            id="word",
        ),
        pytest.param(
            "csv",
            b"de,en,s\na,b,nan\n",
            "s",
            None,
            "inputs/t:2: the score in column 's' is 'nan', not a number",
            id="NaN",
        ),
        pytest.param(
            "csv",
            b"de,en,s\na,b,the whole sentence of the other column stands here\n",
            "s",
            None,
            "inputs/t:2: the score in column 's' is 'the whole sentence of the other column s...', "
            "not a number",
            id="sentence",
        ),
        pytest.param(
            "tsv",
            b"a\tb\n",
            3,
            (1, 2),
            "inputs/t:1: the line has 2 columns, but columns 1, 2 and 3 are needed",
            id="too few columns",
        ),
        pytest.param(
            "csv",
            b"de,en\na,b\n",
            "s",
            None,
            "inputs/t:1: no column is named 's'. Columns: 'de', 'en'",
            id="unknown column of csv",
        ),
        pytest.param(
            "jsonl",
            json_lines([("a", "b", None)]),
            "scores.laser",
            None,
            "inputs/t:1: the score in column 'scores.laser' is None, not a number",
            id="null",
        ),
        pytest.param(
            "jsonl",
            json_lines([("a", "b", True)]),
            "scores.laser",
            None,
            "inputs/t:1: the score in column 'scores.laser' is True, not a number",
            id="true",
        ),
        pytest.param(
            "jsonl",
            json_lines([("a", "b", 1)]),
            "score",
            None,
            "inputs/t:1: no column is named 'score'. Columns: 'de', 'en', 'scores.laser'",
            id="unknown column of jsonl",
        ),
        pytest.param(
            "parquet",
            parquet([("a", "b", "x")]),
            "bicleaner",
            None,
            "inputs/t:1: the score in column 'bicleaner' is 'x', not a number",
            id="text in parquet",
        ),
        pytest.param(
            "parquet",
            parquet(ROWS),
            "laser",
            None,
            "inputs/t: no column is named 'laser'. Columns: 'de', 'en', 'bicleaner'",
            id="unknown column of parquet",
        ),
    ],
)
def test_a_wrong_score_is_one_line(text_format, content, column, columns, message):
    with pytest.raises(UserError) as error:
        read(text_format, content, column, columns)

    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text_format", "score", "message"),
    [
        ("tmx", PairScore(3, 0.5), "score.column is 3, but only a table has columns"),
        ("jsonl", PairScore(3, 0.5), "score.column is 3, but the columns of format jsonl have"),
    ],
)
def test_only_a_table_may_have_scores(text_format, score, message):
    with pytest.raises(ValueError, match=message):
        Text("x", text_format, both=File(path="inputs/t"), score=score)
