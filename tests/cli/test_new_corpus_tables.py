"""new-corpus with a .tsv file: its header, its keys, and the columns that a user names."""

import gzip
from pathlib import Path

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.runtime.errors import UserError
from new_corpus import (
    FIVE_HUNDRED_PAIRS,
    run_command,
    swap_sides,
    write_pairs,
)


@pytest.fixture(params=["memory.en-de.tsv", "packed.en-de.tsv.gz"])
def path_of_table_with_scores(request, project):
    """Write FIVE_HUNDRED_PAIRS as a table, plain or compressed; return its path.

    Its columns are: number, English, German, score from 0 to 1. One score contains a carriage
    return, which does not end a row.
    """
    rows = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS, 1):
        score = "0.5\r0" if number == 250 else f"{number / 500:.2f}"
        rows.append(f"{number}\t{english}\t{german}\t{score}\n")
    content = "".join(rows).encode()
    path = Path("inputs", request.param)
    if path.suffix == ".gz":
        content = gzip.compress(content)
    (project / path).write_bytes(content)
    return path


def test_source_and_target_are_the_columns_of_a_table_that_contain_words(path_of_table_with_scores):
    """The table has four columns: number, English, German, score."""
    new = NewCorpus.from_files([path_of_table_with_scores], None)

    (table,) = new.corpus.files.train.values()
    # Columns count from 1: 2 is English, 3 is German.
    assert table.columns == (2, 3)


def test_each_row_of_a_table_is_a_sentence_pair(path_of_table_with_scores):
    """The table has a row for each of the 500 pairs; the sample has them in random order."""
    new = NewCorpus.from_files([path_of_table_with_scores], None)

    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


def write_rows(project, rows, name):
    """Write rows to a table in inputs/."""
    text = "".join("\t".join(row) + "\n" for row in rows)
    (project / "inputs" / name).write_text(text, encoding="utf-8")


def rows_with_keys():
    """Return rows of a key, an English and a German sentence."""
    rows = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
        rows.append((f"app.item_{number}", english, german))
    return rows


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (("key", "english", "german"), ("english", "german")),
        (("id", "en", "de"), ("en", "de")),
        (("key", "EN-us", "de_DE"), ("EN-us", "de_DE")),
        (("key", "English", "Deutsch"), ("English", "Deutsch")),
        (("", "text_eng", "text_ger"), ("text_eng", "text_ger")),
    ],
    ids="-".join,
)
def test_a_header_names_columns_and_languages(project, capsys, header, columns):
    """Below the header, each row has a key, an English and a German sentence."""
    write_rows(project, [header, *rows_with_keys()], "app.tsv")

    run_command("bleuprint new-corpus inputs/app.tsv")

    source, target = columns
    assert capsys.readouterr().out.startswith(
        f"inputs/app.tsv: source is column 2, {source!r}, target is column 3, {target!r}\n"
        "500 pairs; "
    )
    corpus = load_settings().corpora["app-en-de"]
    assert corpus.languages == ("en", "de")
    (part,) = corpus.files.train.values()
    assert part.columns == columns
    assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (("src", "ref", "mt"), ("src", "ref")),
        (("mt", "src", "tgt"), ("src", "tgt")),
        (("hyp", "source", "reference"), ("source", "reference")),
    ],
    ids="-".join,
)
def test_roles_of_columns_are_not_languages(project, header, columns):
    """`src` is also a code of Sardinian, `mt` of Maltese. COLUMNS are source and target."""
    rows = [header]
    for english, german in FIVE_HUNDRED_PAIRS:
        cells = {columns[0]: english, columns[1]: german}
        rows.append([cells.get(name, f"Output {english}") for name in header])
    write_rows(project, rows, "judged.tsv")

    with pytest.raises(UserError, match="Name both, such as: --languages de en"):
        NewCorpus.from_files([Path("inputs/judged.tsv")])
    new = NewCorpus.from_files([Path("inputs/judged.tsv")], ["en", "de"])

    assert new.text.columns == columns
    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


def test_a_column_of_maltese_is_a_language(project):
    """The sentences are German: a small text whose language is not identified as another."""
    write_rows(project, [("en", "mt"), *FIVE_HUNDRED_PAIRS], "mine.tsv")

    new = NewCorpus.from_files([Path("inputs/mine.tsv")])

    assert new.languages == ("en", "mt")


def test_the_languages_of_the_command_select_columns_of_the_header(project):
    """Codes of one language are equal: `ger` in the command selects the column `de`."""
    rows = [("key", "de", "note", "en")]
    for key, english, german in rows_with_keys():
        rows.append((key, german, "menu", english))
    write_rows(project, rows, "app.tsv")

    new = NewCorpus.from_files([Path("inputs/app.tsv")], languages=["en", "ger"])

    assert new.text.columns == ("en", "de")
    assert new.languages == ("en", "de")
    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


def test_in_a_table_without_a_header_the_column_of_keys_is_ignored(project, capsys):
    """Each row has a key such as app.item_7, an English and a German sentence."""
    write_rows(project, rows_with_keys(), "app.tsv")

    run_command("bleuprint new-corpus inputs/app.tsv --languages en de")

    assert capsys.readouterr().out.startswith(
        "inputs/app.tsv: source is column 2, target is column 3\n500 pairs;"
    )
    (part,) = load_settings().corpora["app-en-de"].files.train.values()
    assert part.columns == (2, 3)


def test_a_first_pair_with_words_that_are_language_codes_is_not_a_header(project):
    """The word "mal" is also the code of Malayalam, and "to" is the code of Tongan."""
    first_pair = ("Ein Hund lief zwei mal nach Hause.", "A dog ran to its home twice.")
    write_rows(project, [first_pair, *swap_sides(FIVE_HUNDRED_PAIRS)], "app.tsv")

    with pytest.raises(UserError, match=r"Name both, such as: --languages"):
        run_command("bleuprint new-corpus inputs/app.tsv")


@pytest.mark.parametrize(
    ("columns", "expected_columns"),
    [
        pytest.param(["3", "2"], (3, 2), id="numbers"),
        pytest.param(["text2", "note"], ("text2", "note"), id="names"),
    ],
)
def test_the_user_names_columns_by_number_or_name(project, columns, expected_columns):
    """Column 3 (text2) is German; column 2 (text) and column 4 (note) are English."""
    rows = [("key", "text", "text2", "note")]
    for key, english, german in rows_with_keys():
        rows.append((key, english, german, english))
    write_rows(project, rows, "app.tsv")

    new = NewCorpus.from_files([Path("inputs/app.tsv")], ["de", "en"], columns)

    assert new.text.columns == expected_columns
    assert set(swap_sides(FIVE_HUNDRED_PAIRS)) <= set(new.sample)


def test_columns_selected_by_name_make_the_first_row_a_header(project):
    """The table has a header and 500 pairs: with the header as a pair, there would be 501."""
    rows = [("key", "text", "text2", "note")]
    for key, english, german in rows_with_keys():
        rows.append((key, english, german, english))
    write_rows(project, rows, "app.tsv")

    new = NewCorpus.from_files(
        [Path("inputs/app.tsv")], languages=["de", "en"], columns=["text2", "note"]
    )

    assert len(new.sample) == 500


def test_a_column_number_selects_one_of_two_columns_with_the_same_name(project):
    """Two columns are named `en`: column 2 has only x, column 4 the English sentences."""
    rows = [("key", "en", "de", "en")]
    for key, english, german in rows_with_keys():
        rows.append((key, "x", german, english))
    write_rows(project, rows, "app.tsv")

    new = NewCorpus.from_files([Path("inputs/app.tsv")], languages=None, columns=["4", "3"])

    assert new.text.columns == (4, 3)
    assert new.languages == ("en", "de")
    assert set(FIVE_HUNDRED_PAIRS) <= set(new.sample)


@pytest.mark.parametrize("is_german_first", [False, True])
@pytest.mark.parametrize(
    ("name", "languages"),
    [
        pytest.param("app.tsv", ["en", "de"], id="languages in the command"),
        pytest.param("app.en-de.tsv", None, id="languages in the name"),
    ],
)
def test_the_source_is_the_column_in_the_first_language(project, is_german_first, name, languages):
    """The table has two columns and no header: their text decides which one is English."""
    rows = swap_sides(FIVE_HUNDRED_PAIRS) if is_german_first else FIVE_HUNDRED_PAIRS
    write_rows(project, rows, name)

    new = NewCorpus.from_files([Path("inputs", name)], languages)

    assert new.languages == ("en", "de")
    assert new.text.columns == ((2, 1) if is_german_first else (1, 2))
    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


def test_columns_in_the_other_order_are_refused_with_a_command_that_works(project):
    """The user asks for German to English, but `Source text` is English, `Target text` German."""
    write_rows(project, [("id", "Source text", "Target text"), *rows_with_keys()], "app.tsv")
    files = [Path("inputs/app.tsv")]

    with pytest.raises(UserError) as error:
        NewCorpus.from_files(files, ["de", "en"], ["Source text", "Target text"])

    message = str(error.value)
    assert message.startswith("inputs/app.tsv: 100% of the pairs are en and de, not")
    assert message.endswith(": --columns 'Target text' 'Source text' --languages de en")
    assert "rename" not in message  # This is the advice for two files in the wrong order.
    new = NewCorpus.from_files(files, ["de", "en"], ["Target text", "Source text"])
    assert sorted(new.sample) == sorted(swap_sides(FIVE_HUNDRED_PAIRS))


def test_columns_named_source_and_target_are_the_two_sides(project):
    """The languages come from the command then."""
    write_rows(project, [("id", "Source", "Target"), *rows_with_keys()], "app.tsv")

    new = NewCorpus.from_files([Path("inputs/app.tsv")], languages=["en", "de"])

    assert new.text.columns == ("Source", "Target")
    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param(
            "1 3", r"app\.tsv: column 1 contains keys such as 'app\.item_0', not", id="keys"
        ),
        pytest.param(
            "3 5", r"app\.tsv:1: no column '5'\. Columns: 1 \('app\.item_0'\)", id="number too high"
        ),
        pytest.param("3 ²", r"app\.tsv:1: no column '²'\. Columns: 1 \(", id="raised number"),
        pytest.param("3 x", r"app\.tsv:1: no column 'x'\. Columns: 1 \(", id="unknown name"),
        pytest.param("3 3", r"app\.tsv: column 3 is given twice", id="same column"),
        pytest.param("3 4", r"app\.tsv: column 4 has hardly any words", id="scores"),
    ],
)
def test_a_column_that_cannot_be_source_or_target_is_refused(project, columns, message):
    """The table has four columns and no header: a key, English, German, the score 0.5."""
    rows = [(key, english, german, "0.5") for key, english, german in rows_with_keys()]
    write_rows(project, rows, "app.tsv")

    with pytest.raises(UserError, match=message):
        run_command(f"bleuprint new-corpus inputs/app.tsv --languages en de --columns {columns}")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param(
            [("a.b", "One.")] * 200,
            r"app\.tsv: two columns of sentences are needed, but column",
            id="keys and one language",
        ),
        pytest.param(
            [("only one",)] * 200,
            r"app\.tsv:1: the line has no tab",
            id="one column",
        ),
        pytest.param(
            [("en", "de", "fr"), *((a, b, a) for a, b in FIVE_HUNDRED_PAIRS)],
            r"app\.tsv:1: columns are named after en, de, fr\. Name two .* --languages en de",
            id="three languages",
        ),
        pytest.param(
            [("en", "en-GB", "de"), *((a, a, b) for a, b in FIVE_HUNDRED_PAIRS)],
            r"app\.tsv:1: several columns are in one language\. Name two: --columns",
            id="two columns of English",
        ),
        pytest.param(
            [(a, a, b) for a, b in FIVE_HUNDRED_PAIRS],
            r"app\.tsv: 3 columns contain text\. Name two: --columns SOURCE TARGET\. Columns: 1",
            id="three columns without a header",
        ),
    ],
)
def test_a_table_without_two_clear_columns_is_refused(project, rows, message):
    write_rows(project, rows, "app.tsv")

    with pytest.raises(UserError, match=message):
        run_command("bleuprint new-corpus inputs/app.tsv")


def test_the_advised_option_contains_the_language_of_the_file_name(project):
    """app.nl.tsv names one language, Dutch (nl), of the two that are needed."""
    write_rows(project, FIVE_HUNDRED_PAIRS, "app.nl.tsv")

    with pytest.raises(UserError, match=r"Name both, such as: --languages nl en$"):
        run_command("bleuprint new-corpus inputs/app.nl.tsv")


def test_the_option_columns_is_refused_for_two_text_files(project):
    write_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.en", "mine.de"))

    with pytest.raises(UserError, match=r"mine\.en: --columns is only for a \.tsv, \.csv, "):
        run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de --columns 1 2")
