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


def lines_with(fault: str) -> list[Line]:
    """Return the lines with a fault."""
    return [line for line in noisy_lines() if line.fault == fault]


def correct_triple(line: Line) -> tuple[str, str, str]:
    """Return the English, German and French of a line without its fault."""
    assert line.right is not None
    return line.right


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, sorted."""
    return sorted(re.findall(r"\d+", text))


def test_one_line_in_eight_has_a_fault() -> None:
    """FAULTS is the number of lines with each kind of fault; lines without a fault have ""."""
    lines_by_fault = Counter(line.fault for line in noisy_lines())

    assert lines_by_fault == {**FAULTS, "": 12_950}
    assert sum(FAULTS.values()) * 8 == len(noisy_lines())


def test_the_lines_without_their_faults_are_the_training_text() -> None:
    """Inserted lines, such as duplicates, have no correct form: `right` is None."""
    correct_lines = [line.right for line in noisy_lines() if line.right]

    assert correct_lines == list(train())


def test_a_line_differs_from_its_correct_form_if_it_has_a_fault() -> None:
    for line in noisy_lines():
        is_correct = line.text == line.right
        has_fault = line.fault != ""
        assert is_correct != has_fault


def test_a_duplicate_repeats_an_earlier_line_without_fault() -> None:
    first_places = dict[tuple[str, str, str], int]()
    for place, line in enumerate(noisy_lines()):
        first_places.setdefault(line.text, place)
        if line.fault == "duplicate":
            first_place = first_places[line.text]
            assert first_place < place
            assert noisy_lines()[first_place].fault == ""


def test_a_near_duplicate_has_the_english_or_the_translations_of_an_earlier_line() -> None:
    """Deduplication by whole pairs would keep it; only the rules for one side find it."""
    first_places = dict[tuple[str, str, str], int]()
    for place, line in enumerate(noisy_lines()):
        first_places.setdefault(line.text, place)
        if line.fault == "near_duplicate":
            english, german, french = line.text
            (original,) = [
                row for row in train() if row[0] == english or row[1:] == (german, french)
            ]
            assert first_places[original] < place
            # Both English-German and English-French differ from the original.
            assert (english, german) != (original[0], original[1])
            assert (english, french) != (original[0], original[2])


def test_inserted_test_sentences_come_from_the_test_set() -> None:
    """A training text with sentences of the test set makes scores too high."""
    inserted_sentences = {line.text for line in lines_with("test_sentence")}

    assert inserted_sentences <= set(generate("test"))


def test_an_overlong_line_joins_14_sentences() -> None:
    for line in lines_with("overlong"):
        for text in line.text:
            marks_inside = text.count(". ") + text.count("? ")
            assert marks_inside == 13  # the 14th mark ends the line


def test_a_misaligned_line_has_the_translations_of_another_sentence() -> None:
    for line in lines_with("misaligned"):
        english, *translations = line.text
        assert english == correct_triple(line)[0]
        (translated_row,) = [row for row in train() if list(row[1:]) == translations]
        assert translated_row != line.right


def test_no_two_misaligned_lines_have_the_same_translations() -> None:
    """Deduplication would find a translation that occurs twice, so it must not be the hint."""
    translations = [line.text[1:] for line in lines_with("misaligned")]

    assert len(set(translations)) == len(translations) > 0


def test_in_a_line_with_an_empty_side_the_source_or_all_translations_are_empty() -> None:
    for line in lines_with("empty_side"):
        english_only = [True, False, False]
        translations_only = [False, True, True]
        is_filled = [bool(text.strip()) for text in line.text]
        assert is_filled in (english_only, translations_only)


def test_a_line_with_a_copied_source_is_english_in_all_languages() -> None:
    for line in lines_with("copied_source"):
        english = correct_triple(line)[0]
        assert line.text == (english, english, english)


def test_a_line_in_the_wrong_language_exchanges_german_and_french() -> None:
    for line in lines_with("other_language"):
        english, german, french = correct_triple(line)
        assert line.text == (english, french, german)


def test_a_cut_translation_is_the_beginning_of_the_correct_one() -> None:
    for line in lines_with("cut"):
        _, german, french = line.text
        _, correct_german, correct_french = correct_triple(line)
        assert correct_german.startswith(f"{german} ")
        assert correct_french.startswith(f"{french} ")


def test_a_joined_translation_continues_with_another_sentence() -> None:
    for line in lines_with("joined"):
        _, correct_german, correct_french = correct_triple(line)
        _, german, french = line.text
        assert german.startswith(f"{correct_german} ")
        assert french.startswith(f"{correct_french} ")
        assert german[-1] in ".?"
        assert french[-1] in ".?"


def test_a_line_with_mojibake_is_utf_8_that_was_read_as_cp1252() -> None:
    """Such as "mÃ¼sstest" for "müsstest". Encoding as cp1252 and reading as UTF-8 undoes it."""
    for line in lines_with("mojibake"):
        _, german, french = line.text
        correct_translations = correct_triple(line)[1:]
        assert (german, french) != correct_translations

        repaired_german = german.encode("cp1252").decode("utf-8")
        repaired_french = french.encode("cp1252").decode("utf-8")
        assert (repaired_german, repaired_french) == correct_translations


def test_a_line_with_markup_has_an_escaped_html_tag_around_the_correct_text() -> None:
    """Such as "&lt;b&gt;We ask.&lt;/b&gt;" for "We ask."."""
    for line in lines_with("markup"):
        for text, correct_text in zip(line.text, correct_triple(line), strict=True):
            tagged = rf"&lt;(\w+)&gt;{re.escape(correct_text)}&lt;/\1&gt;"
            assert re.fullmatch(tagged, text)


def test_a_line_with_a_lost_number_has_its_numbers_only_in_english() -> None:
    for line in lines_with("lost_number"):
        english, german, french = line.text
        correct_english, correct_german, _ = correct_triple(line)
        assert numbers(english) == numbers(correct_english) == numbers(correct_german)
        assert numbers(german) == []
        assert numbers(french) == []
