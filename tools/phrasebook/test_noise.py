"""The training text with faults: known lines, each with its fault between any two languages."""

import re
from collections import Counter
from functools import cache

import pytest

from tools.phrasebook import FAULTS, Line, generate, noisy_lines

pytestmark = pytest.mark.slow  # The whole training text is written and compared.


@cache
def train() -> tuple[tuple[str, str, str], ...]:
    return generate("train")


def lines(fault: str) -> list[Line]:
    """Return the lines with a fault."""
    return [line for line in noisy_lines() if line.fault == fault]


def right_of(line: Line) -> tuple[str, str, str]:
    """Return a line without its fault."""
    assert line.right is not None
    return line.right


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, sorted."""
    return sorted(re.findall(r"\d+", text))


def test_one_line_in_eight_has_a_fault() -> None:
    counts = Counter(line.fault for line in noisy_lines())
    assert counts == {**FAULTS, "": 12_950}
    assert sum(FAULTS.values()) * 8 == len(noisy_lines())


def test_without_faults_the_text_is_that_of_train() -> None:
    assert [line.right for line in noisy_lines() if line.right] == list(train())
    for line in noisy_lines():
        assert (line.text == line.right) == (not line.fault)


def test_repeated_lines_follow_the_first() -> None:
    first_numbers = dict[tuple[str, str, str], int]()
    for number, line in enumerate(noisy_lines()):
        first_numbers.setdefault(line.text, number)
        if line.fault == "duplicate":
            first_number = first_numbers[line.text]
            assert first_number < number
            assert noisy_lines()[first_number].fault == ""
        if line.fault == "near_duplicate":
            # English or both translations are those of an earlier line, and the others differ.
            (row,) = [row for row in train() if row[0] == line.text[0] or row[1:] == line.text[1:]]
            assert first_numbers[row] < number
            assert line.text[0] != row[0] or line.text[1] != row[1]
            assert line.text[0] != row[0] or line.text[2] != row[2]


def test_inserted_lines() -> None:
    assert {line.text for line in lines("test_sentence")} <= set(generate("test"))
    for line in lines("overlong"):
        assert all(text.count(". ") + text.count("? ") == 13 for text in line.text)


def test_translations_of_misaligned_lines_are_those_of_another_line() -> None:
    for line in lines("misaligned"):
        assert line.text[0] == right_of(line)[0]
        (row,) = [row for row in train() if row[1:] == line.text[1:]]
        assert row != line.right
    translations = Counter(line.text[1:] for line in lines("misaligned"))
    assert set(translations.values()) == {1}


def test_empty_sides_are_the_source_or_all_translations() -> None:
    for line in lines("empty_side"):
        is_filled = [bool(text.strip()) for text in line.text]
        assert is_filled in ([False, True, True], [True, False, False])


def test_copied_lines_are_the_source_in_all_languages() -> None:
    for line in lines("copied_source"):
        assert set(line.text) == {right_of(line)[0]}


def test_lines_in_the_other_language_exchange_german_and_french() -> None:
    for line in lines("other_language"):
        english, german, french = line.text
        assert (english, french, german) == right_of(line)


def test_cut_translations_are_beginnings() -> None:
    for line in lines("cut"):
        for text, right in zip(line.text[1:], right_of(line)[1:], strict=True):
            assert right.startswith(f"{text} ")


def test_joined_translations_continue_with_another_sentence() -> None:
    for line in lines("joined"):
        for text, right in zip(line.text[1:], right_of(line)[1:], strict=True):
            assert text.startswith(f"{right} ")
            assert text[-1] in ".?"


def test_mojibake_is_undone_by_the_right_encoding() -> None:
    for line in lines("mojibake"):
        _, german, french = line.text
        right_translations = right_of(line)[1:]
        assert (german, french) != right_translations
        decoded = (german.encode("cp1252").decode(), french.encode("cp1252").decode())
        assert decoded == right_translations


def test_markup_surrounds_the_right_text() -> None:
    for line in lines("markup"):
        for text, right in zip(line.text, right_of(line), strict=True):
            assert re.fullmatch(rf"&lt;(\w+)&gt;{re.escape(right)}&lt;/\1&gt;", text)


def test_lost_numbers_are_in_no_translation() -> None:
    for line in lines("lost_number"):
        english, german, french = line.text
        right = right_of(line)
        assert numbers(english) == numbers(right[0]) == numbers(right[1])
        assert not numbers(german)
        assert not numbers(french)
