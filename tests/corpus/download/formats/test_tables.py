"""The formats csv, jsonl and parquet, compared with pandas, and their errors."""

import gzip
import io
import json

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.text.parallel import Pair
from parallel_formats import PAIRS, published_files, read_error, read_pairs

# Cells with what separates or quotes cells. A cell that is empty or begins with a byte order mark
# is not comparable: pandas skips rows without text, and removes the mark.
CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\ufeff") | st.sampled_from(",;\t\"' "),
    min_size=1,
)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1)


@given(rows=ROWS, separator=st.sampled_from(",;\t"))
def test_any_table_that_pandas_writes_as_csv_is_read(rows, separator):
    table = pandas.DataFrame(rows, columns=["de", "en"])
    content = table.to_csv(index=False, sep=separator, lineterminator="\n").encode()

    assert read_pairs("csv", content) == rows


@given(rows=ROWS, is_ascii=st.booleans())
def test_any_table_that_pandas_writes_as_json_lines_is_read(rows, is_ascii):
    table = pandas.DataFrame(rows, columns=["de", "en"])
    content = table.to_json(orient="records", lines=True, force_ascii=is_ascii).encode()

    assert read_pairs("jsonl", content) == rows


@given(rows=ROWS)
def test_any_table_that_pandas_writes_as_parquet_is_read(rows):
    output = io.BytesIO()
    pandas.DataFrame(rows, columns=["de", "en"]).to_parquet(output, row_group_size=3)

    assert read_pairs("parquet", output.getvalue()) == rows


def write_parquet(**columns):
    """Return a Parquet file with these columns."""
    output = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), output)
    return output.getvalue()


def write_json(*records):
    """Return lines of JSON."""
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("one\ntwo", "one two"),
        ("one \r\n\n two", "one two"),
        ("\none two\n", "one two"),
        ("one\rtwo", "one\rtwo"),
        (" one  two\t", " one  two\t"),
    ],
)
@pytest.mark.parametrize("text_format", ["csv", "jsonl", "parquet"])
def test_a_line_break_in_a_cell_becomes_a_space(text_format, cell, expected):
    """Other white space stays as it is, as in plain text."""
    assert read_pairs(text_format, *published_files(text_format, [Pair("eins", cell)])) == [
        ("eins", expected)
    ]


# Tables of data sets as they are published


def test_columns_of_csv_are_chosen_by_name_or_number():
    content = b'id,"English, old",German\n1,one,eins\n\n2,"two\n""2""",zwei\n'

    by_name = read_pairs("csv", content, columns=("German", "English, old"))
    by_number = read_pairs("csv", content, columns=(3, 2))

    assert by_name == [("eins", "one"), ("zwei", 'two "2"')]
    # With numbers, the first row is a pair, too.
    assert by_number == [("German", "English, old"), *by_name]


def test_cells_of_csv_are_separated_as_the_first_line_shows():
    """Quoted cells may contain other separators; the German Excel writes semicolons."""
    assert read_pairs("csv", b'"a, b";"c, d"\n"e";"f, g, h"\n', columns=(1, 2)) == [
        ("a, b", "c, d"),
        ("e", "f, g, h"),
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["en", "de"], [("x1", "x0")], id="codes"),
        pytest.param(["deu_Latn", "eng_Latn"], [("x0", "x1")], id="FLORES"),
        pytest.param(["id", "fr", "de", "en"], [("x2", "x3")], id="among others"),
        pytest.param(["de-AT", "de", "en"], [("x1", "x2")], id="the very code is preferred"),
        pytest.param(["en_gb", "en_words", "de-Latn-DE"], [("x2", "x0")], id="script and region"),
    ],
)
def test_without_columns_those_named_after_the_languages_are_read(names, expected):
    values = [f"x{index}" for index in range(len(names))]
    record = dict(zip(names, values, strict=True))
    table = ",".join(names) + "\n" + ",".join(values) + "\n"

    assert read_pairs("jsonl", write_json(record)) == expected
    assert read_pairs("jsonl", write_json({"n": 1, "translation": record})) == expected
    assert read_pairs("parquet", write_parquet(translation=[record])) == expected
    assert read_pairs("csv", table.encode()) == expected


def test_names_of_columns_may_be_written_with_spaces_around_them():
    assert read_pairs("csv", b"en , de\none, eins\n") == [(" eins", "one")]


def test_a_column_in_an_object_whose_name_contains_a_dot_is_found():
    """Of `a.b.de`, `a` alone is not the name of an object, or the object has no `b.de`."""
    plain = {"a.b": {"de": "eins", "en": "one"}}
    also_a = {"a": {"b": {"fr": "un"}}, "a.b": {"de": "zwei", "en": "two"}}
    empty_end = {"a": {"": "drei"}, "en": "three"}

    assert read_pairs("jsonl", write_json(plain, also_a)) == [("eins", "one"), ("zwei", "two")]
    assert read_pairs("jsonl", write_json(empty_end), columns=("a.", "en")) == [("drei", "three")]


def test_nested_columns_are_named_with_dots():
    """A name that contains a dot itself is preferred to a nested column."""
    record = {"id": 7, "a": {"b": {"c": "eins"}}, "x": {"y": "two"}, "x.y": "one"}
    columns = ("a.b.c", "x.y")

    assert read_pairs("jsonl", write_json(record), columns=columns) == [("eins", "one")]


@pytest.mark.parametrize("text_format", ["jsonl", "parquet"])
def test_a_row_with_a_null_is_dropped_and_counted(text_format):
    """A null stands for a missing translation; an empty text is kept, as in plain text."""
    translations = [{"de": "eins", "en": "one"}, {"de": None, "en": "two"}, None]
    translations.append({"de": "", "en": "four"})
    content = write_json(*({"translation": translation} for translation in translations))
    if text_format == "parquet":
        content = write_parquet(translation=translations)
    counts = SetCounts()

    pairs = read_pairs(
        text_format, content, columns=("translation.de", "translation.en"), counts=counts
    )

    assert pairs == [("eins", "one"), ("", "four")]
    assert counts.dropped == {"one_language": 2}


def test_a_first_row_without_translations_does_not_hide_the_columns():
    """The columns translation.de and translation.en are known from the second row on."""
    first = {"translation": None, "note": None}
    second = {"translation": {"de": "eins", "en": "one"}, "note": None}
    counts = SetCounts()

    pairs = read_pairs("jsonl", write_json(first, second), counts=counts)

    assert pairs == [("eins", "one")]
    assert counts.dropped == {"one_language": 1}


def test_later_rows_do_not_add_columns_if_the_first_has_no_null():
    """A second column in German would make it unclear which one is the source."""
    first = {"de": "eins", "en": "one"}
    second = {"de": "zwei", "en": "two", "old": {"de": "zwo"}}

    assert read_pairs("jsonl", write_json(first, second)) == [("eins", "one"), ("zwei", "two")]


def test_a_column_of_parquet_may_be_stored_as_a_dictionary_or_large_text():
    words = pyarrow.array(["ja", "ja", "nein"]).dictionary_encode()
    translations = pyarrow.array(["yes", "yes", "no"], type=pyarrow.large_string())

    assert read_pairs("parquet", write_parquet(de=words, en=translations)) == [
        ("ja", "yes"),
        ("ja", "yes"),
        ("nein", "no"),
    ]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.parquet.gz"])
def test_a_table_may_be_compressed(tmp_path, monkeypatch, name):
    """A Parquet file is read from its end, which a compressed file cannot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    text_format = name.split(".")[1]
    (tmp_path / "inputs" / name).write_bytes(gzip.compress(*published_files(text_format)))
    text = Text("x", text_format, both=File(path=f"inputs/{name}"))

    assert list(read_text_pairs(text, ("de", "en"))) == PAIRS


# Errors


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        pytest.param(
            b'de,en\neins,one\nzwei,"two\nthree\n',
            None,
            "inputs/both:3: not valid CSV: unexpected end of data. A quotation mark ",
            id="missing quotation mark",
        ),
        pytest.param(
            b'de,en\neins,"one" or two\n',
            None,
            "inputs/both:2: not valid CSV: ',' expected after '\"'. A quotation mark ",
            id="quotation mark inside of a cell",
        ),
        pytest.param(
            b"de,en\nei\rns,one\n",
            None,
            "inputs/both:2: not valid CSV: the row contains \\r, a carriage return. Write "
            "quotation marks around its cell, or remove it. If all lines end in \\r, set "
            "line_ends: cr",
            id="carriage return outside of quotation marks",
        ),
        pytest.param(
            b"de_words,is,en_us\neins,e,one\n",
            None,
            "inputs/both:1: no column is named after the language de. Name source and target, ",
            id="a column whose name only begins like a tag",
        ),
        pytest.param(
            b"de,en\neins,one\nzwei\n",
            None,
            "inputs/both:3: the line has 1 column, but columns 1 and 2 are needed",
            id="short row",
        ),
        pytest.param(
            b"de,fr\neins,un\n",
            None,
            "inputs/both:1: no column is named after the language en. Name source and target, such "
            "as columns: [text_de, text_en]. Columns: 'de', 'fr'",
            id="no column of a language",
        ),
        pytest.param(
            b"de,fr\neins,un\n",
            ("de", "en"),
            "inputs/both:1: no column is named 'en'. Columns: 'de', 'fr'",
            id="no column of a name",
        ),
    ],
)
def test_csv_that_cannot_be_read_is_an_error_with_its_line(content, columns, message):
    assert read_error("csv", content, columns=columns).startswith(message)


def test_a_message_shows_only_the_start_of_long_names():
    """The first row of a table without a header is a pair of sentences."""
    message = read_error("csv", b"x" * 100 + b"," + b"y" * 100 + b"\n")

    assert message.endswith(f". Columns: 'x{'x' * 38}..., 'y{'y' * 38}...")


@pytest.mark.parametrize(
    ("text_format", "content"),
    [
        ("csv", b"zh,en\n\xe6\x98\xaf,yes\n"),
        ("jsonl", b'{"zh": "\\u662f", "en": "yes"}\n'),
        ("parquet", write_parquet(zh=["是"], en=["yes"])),
    ],
)
def test_source_and_target_are_never_the_same_column(text_format, content):
    """A column `zh` is in both languages, but a text is not the translation of itself."""
    message = read_error(text_format, content, languages=("zh-Hans", "zh-Hant"))

    assert "only the column 'zh' is named after zh-Hans and zh-Hant. Name source and " in message


def test_a_quotation_mark_that_swallows_a_long_file_is_an_error():
    """Without a limit, the rest of a large file would become one cell in memory."""
    content = b'de,en\neins,"one\n' + b"zwei,two\n" * 2_000_000

    assert read_error("csv", content).startswith(
        "inputs/both:2: not valid CSV: field larger than field limit"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(b"[1, 2]", "the line is [1, 2], not a JSON object. Write ", id="list"),
        pytest.param(b'"Ja"', 'the line is "Ja", not a JSON object. Write ', id="text"),
        pytest.param(b'{"de": "Ja"', "not JSON: Expecting ',' delimiter: ", id="cut short"),
        pytest.param(b"[" * 100_000, "not JSON: maximum recursion depth", id="nested too deeply"),
        pytest.param(
            b'{"de": "Ja", "fr": "Oui"}',
            "no column is named 'en'. Columns: 'de', 'fr'",
            id="missing column",
        ),
        pytest.param(
            b'{"de": "Ja", "en": {"x": "Yes"}}',
            'column \'en\' contains {"x": "Yes"}, not text',
            id="object",
        ),
        pytest.param(b'{"de": 5, "en": "five"}', "column 'de' contains 5, not text", id="number"),
        pytest.param(
            b'{"de": "\\ud83d", "en": "x"}',
            "column 'de' contains half of a surrogate pair, such as \\ud83d, which is not a ",
            id="half of a surrogate pair",
        ),
    ],
)
def test_a_line_of_json_that_is_not_a_pair_is_an_error(line, message):
    content = b'{"de": "eins", "en": "one"}\n\n' + line + b"\n"

    assert read_error("jsonl", content).startswith(f"inputs/both:3: {message}")


def test_a_name_that_leads_into_a_text_is_not_a_column():
    content = write_json({"de": "eins", "en": "one"})

    assert read_error("jsonl", content, columns=("de.x", "en")) == (
        "inputs/both:1: no column is named 'de.x'. Columns: 'de', 'en'"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param(
            ("de", "score"),
            "column 'score' contains double, not text. Name two others under columns. There are: "
            "'de', 'score', 'translation.en'",
            id="numbers",
        ),
        pytest.param(
            ("de", "translation"),
            "no column is named 'translation'. Columns: 'de', 'score', 'translation.en'",
            id="the name of an object",
        ),
        pytest.param(
            None,
            "no column is named after the language en.",
            id="no column of the language",
        ),
    ],
)
def test_a_column_of_parquet_that_is_not_text_is_an_error(columns, message):
    content = write_parquet(de=["ja"], score=[0.5], translation=[{"en": "yes"}])
    if columns is None:
        content = write_parquet(de=["ja"], score=[0.5])

    assert read_error("parquet", content, columns=columns).startswith(f"inputs/both: {message}")


def test_text_of_parquet_that_is_not_utf_8_is_an_error():
    """Arrow does not check texts when it reads them."""
    wrong = pyarrow.array([b"sch\xf6n"], type=pyarrow.binary()).view(pyarrow.string())

    message = read_error("parquet", write_parquet(de=wrong, en=["nice"]))

    assert message.startswith("inputs/both: not a valid Parquet file: 'utf-8' codec can't decode")
