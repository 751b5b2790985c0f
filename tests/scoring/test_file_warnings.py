"""Warnings on translation files: lines that equal the references or the sources."""

import pytest

import result_trees as trees
from bleuprint.scoring.file_warnings import file_warnings

OTHER = ["Der Hund schläft.", "Die Katze ist wach.", "Es regnet heute.", "Wir gehen heim."]


@pytest.fixture
def warnings(tmp_path):
    """A function: the warnings by their text, with the share in percent and the line count."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")

    def warnings(translations, sources=(), references=()):
        found = file_warnings(translations, sources, references, corpus)
        return {each["group"]: (each["value"], each["units"]) for each in found}

    return warnings


@pytest.mark.parametrize(
    ("equal_lines", "expected"),
    [
        (4, {"all translations are identical to the {}": (100, 4)}),
        (3, {"75% of the translations are identical to the {}": (75, 4)}),
        (2, {"50% of the translations are identical to the {}": (50, 4)}),
        (1, {}),
    ],
)
@pytest.mark.parametrize("other", ["sources", "references"])
def test_translations_that_equal_another_file(warnings, equal_lines, expected, other):
    ours = [f"Satz {number} ist anders." for number in range(4)]
    translations = [*OTHER[:equal_lines], *ours[equal_lines:]]
    named = {text.format(other): figures for text, figures in expected.items()}
    assert warnings(translations, **{other: OTHER}) == named


def test_spaces_make_no_difference(warnings):
    spaced = [line.replace(" ", "  ") for line in OTHER]
    assert list(warnings(spaced, references=OTHER)) == [
        "all translations are identical to the references"
    ]


def test_files_of_other_lengths_are_not_compared(warnings):
    assert warnings(OTHER, sources=OTHER[:3], references=[*OTHER, "Noch einer."]) == {}
    assert warnings([], sources=[], references=[]) == {}
