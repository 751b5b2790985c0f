"""Warnings of translations of an external system that look damaged, copied or not detokenized."""

import shutil

import pytest

from bleuprint.scoring.external_files import check_external_files
from external_translations import (
    FILE,
    REFERENCES,
    SETTING,
    SOURCES,
    as_text,
    copy_and_score,
    in_subwords,
    in_tokens,
    lines_of,
    scores_of,
    translations_in,
    write_project,
)


def warnings_of_file(root, lines):
    """Copy and score a file with these lines, and return the warnings that its scores contain.

    `check` gives the same warnings as notes.
    """
    settings = write_project(root, as_text(lines))
    notes = list(check_external_files(settings, root))
    copy_and_score(settings, root)
    warnings = []
    for entry in scores_of(root)["metrics"]:
        if entry["metric"] == "warning":
            warnings.append(entry["group"])
    notes_without_location = [note.partition(SETTING)[2] for note in notes]
    assert notes_without_location == [f"{root / FILE}: {warning}" for warning in warnings]
    return warnings


def test_detokenized_translations_have_no_warning(root):
    assert warnings_of_file(root, translations_in(root)) == []


def test_translations_in_subwords_get_a_warning(root, capsys):
    """In 36 of the 40 lines, 90%, the first word has the mark @@ of BPE, from line 5 on."""
    translations = translations_in(root)
    lines = translations[:4] + in_subwords(translations[4:])

    (warning,) = warnings_of_file(root, lines)

    assert warning == (
        "90% of the lines look like BPE subwords (@@), such as line 5. BLEU compares sentences. "
        "Join the subwords first: sed -E 's/@@( |$)//g'"
    )
    assert f"note: {FILE}: {warning}\n" in capsys.readouterr().err


def test_tokenized_translations_have_a_warning(root):
    (warning,) = warnings_of_file(root, in_tokens(translations_in(root)))

    assert "tokens set apart by spaces" in warning


@pytest.mark.parametrize(
    ("line_format", "form"),
    [
        pytest.param("{number}\t{text}", "columns of a table (tabs)", id="table"),
        pytest.param(
            "{number} ||| {text} ||| -1.5",
            "fields with ||| between them (n-best list, fast_align)",
            id="n-best list",
        ),
        pytest.param('{number},"{text}"', "quoted or numbered fields (CSV)", id="CSV"),
    ],
)
def test_a_table_in_place_of_plain_translations_gets_a_warning(root, line_format, form):
    """Each line has a translation and other fields, such as numbers or scores."""
    lines = []
    for number, text in enumerate(translations_in(root)):
        lines.append(line_format.format(number=number, text=text))

    (warning,) = warnings_of_file(root, lines)

    assert warning == (
        f"100% of the lines look like {form}, such as line 1. BLEU compares sentences. "
        "Write the translations alone, one per line"
    )


def test_tokenized_translations_get_no_warning_if_the_references_are_tokenized_too(root):
    """Text is tokenized if a space precedes the full stop. BLEU then compares equal forms."""
    references = root / REFERENCES
    references.write_text(references.read_text().replace(".", " ."))
    assert (root / "data/test_stats/news-en-de/first.json").exists()

    assert warnings_of_file(root, in_tokens(translations_in(root))) == []


def test_copies_of_all_references_get_a_warning(root, capsys):
    """The user probably named the file of the references instead of the translations."""
    references = lines_of(root / REFERENCES)

    warnings = warnings_of_file(root, references)

    assert warnings == ["all translations are identical to the references"]
    note = f"{FILE}: all translations are identical to the references\n"
    assert capsys.readouterr().err.endswith(note)


def test_copies_of_some_references_get_a_warning(root):
    """Of the 40 lines, 30 are references: 75%."""
    lines = lines_of(root / REFERENCES)[:30] + translations_in(root)[30:]

    assert warnings_of_file(root, lines) == [
        "75% of the translations are identical to the references"
    ]


def test_copies_of_half_of_the_sources_have_a_warning(root):
    lines = lines_of(root / SOURCES)[:20] + translations_in(root)[20:]

    assert warnings_of_file(root, lines) == ["50% of the translations are identical to the sources"]


def test_copies_of_fewer_sources_have_no_warning(root):
    """Sentences such as names are the same in both languages."""
    lines = lines_of(root / SOURCES)[:19] + translations_in(root)[19:]

    assert warnings_of_file(root, lines) == []


@pytest.mark.parametrize(
    ("empty_lines", "warning"),
    [
        pytest.param({40: " "}, "1 of 40 translations is empty: line 40", id="one"),
        pytest.param(
            {2: "", 3: ""}, "2 of 40 translations are empty: line 2 and others", id="several"
        ),
    ],
)
def test_empty_translations_get_a_warning(root, empty_lines, warning):
    """The file has 40 translations; `empty_lines` replaces some, by number from 1."""
    lines = translations_in(root)
    for number, line in empty_lines.items():
        lines[number - 1] = line

    assert warnings_of_file(root, lines) == [warning]


def test_check_notes_that_it_cannot_compare_a_file_with_an_unprepared_test_set(root):
    """Without data/split/, the number of lines to expect, 40, is unknown.

    `check` still warns of what the file alone shows: empty lines, and subwords.
    """
    lines = ["", *in_subwords(translations_in(root)[1:]), "", "x"]
    settings = write_project(root, as_text(lines))
    shutil.rmtree(root / "data" / "split")

    line_count_note, empty_lines_note, form_note = check_external_files(settings, root)

    assert line_count_note.endswith(
        "/a.de: has 42 lines, to be compared with the test set first of news-en-de once it is "
        "prepared. To prepare it now: dvc repro split"
    )
    assert empty_lines_note.endswith("/a.de: 2 of 42 translations are empty: line 1 and others")
    assert "look like BPE subwords (@@)" in form_note
