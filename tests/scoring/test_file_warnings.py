"""Warnings on translation files: lines that equal the references or the sources."""

import pytest

import result_trees as trees
from bleuprint.scoring.file_warnings import file_warnings

OTHER = ["Der Hund schläft.", "Die Katze ist wach.", "Es regnet heute.", "Wir gehen heim."]


@pytest.fixture
def warnings(tmp_path):
    """Return a function that returns the percentage and the lines of each warning by its text."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")

    def warnings_on_files(translations, sources=(), references=()):
        entries = file_warnings(translations, sources, references, corpus)
        return {entry["group"]: (entry["value"], entry["units"]) for entry in entries}

    return warnings_on_files


@pytest.mark.parametrize(
    ("equal_lines", "expected"),
    [
        pytest.param(
            4, {"all translations are identical to the {}": (100, 4)}, id="all lines equal"
        ),
        pytest.param(
            3,
            {"75% of the translations are identical to the {}": (75, 4)},
            id="three of four lines equal",
        ),
        pytest.param(
            2,
            {"50% of the translations are identical to the {}": (50, 4)},
            id="half of the lines equal",
        ),
        pytest.param(1, {}, id="one of four lines equal"),
    ],
)
@pytest.mark.parametrize("other", ["sources", "references"])
def test_translations_that_equal_another_file(warnings, equal_lines, expected, other):
    ours = [f"Satz {number} ist anders." for number in range(4)]
    translations = [*OTHER[:equal_lines], *ours[equal_lines:]]
    named = {text.format(other): figures for text, figures in expected.items()}
    assert warnings(translations, **{other: OTHER}) == named


def test_translations_equal_the_references_whatever_their_spaces(warnings):
    """A copy of the references would get BLEU 100; two spaces between words must not hide it."""
    references = ["Der Hund schläft.", "Die Katze ist wach.", "Es regnet heute.", "Wir gehen heim."]
    translations = [line.replace(" ", "  ") for line in references]

    texts = list(warnings(translations, references=references))

    assert texts == ["all translations are identical to the references"]


def test_files_with_other_numbers_of_lines_are_not_compared(warnings):
    a_line_less = OTHER[:3]
    a_line_more = [*OTHER, "Noch einer."]

    assert warnings(OTHER, sources=a_line_less, references=a_line_more) == {}


def test_empty_files_have_no_warnings(warnings):
    assert warnings([], sources=[], references=[]) == {}
