"""The training text with faults: known lines, each with its fault between any two languages."""

import re
from collections import Counter
from functools import cache
from itertools import combinations

import pytest

from tools.phrasebook import FAULTS, Line, generate, noisy_lines

pytestmark = pytest.mark.slow  # the whole training text is made and compared

PAIRS = list(combinations(range(3), 2))


@cache
def train() -> tuple[tuple[str, str, str], ...]:
    return generate("train")


def lines(fault: str) -> list[Line]:
    return [line for line in noisy_lines() if line.fault == fault]


def number(text: str) -> list[str]:
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
    first = {line.text: place for place, line in reversed([*enumerate(noisy_lines())])}
    for place, line in enumerate(noisy_lines()):
        if line.fault == "duplicate":
            assert first[line.text] < place
            assert noisy_lines()[first[line.text]].fault == ""
        if line.fault == "near_duplicate":
            # English or both translations are those of an earlier line, and the others differ
            (row,) = [row for row in train() if row[0] == line.text[0] or row[1:] == line.text[1:]]
            assert first[row] < place
            assert all((line.text[a], line.text[b]) != (row[a], row[b]) for a, b in PAIRS[:2])


def test_inserted_lines() -> None:
    assert {line.text for line in lines("test_sentence")} <= set(generate("test"))
    for line in lines("overlong"):
        assert all(text.count(". ") + text.count("? ") == 13 for text in line.text)


def test_translations_of_misaligned_lines_are_those_of_another_line() -> None:
    for line in lines("misaligned"):
        assert line.right and line.text[0] == line.right[0]
        (row,) = [row for row in train() if row[1:] == line.text[1:]]
        assert row != line.right
    translations = Counter(line.text[1:] for line in lines("misaligned"))
    assert set(translations.values()) == {1}


def test_changed_lines() -> None:  # noqa: C901
    for line in noisy_lines():
        (english, german, french), right = line.text, line.right or ("", "", "")
        match line.fault:
            case "empty_side":
                sides = [bool(text.strip()) for text in line.text]
                assert sides in ([False, True, True], [True, False, False])
            case "copied_source":
                assert english == german == french == right[0]
            case "other_language":
                assert (english, french, german) == right
            case "cut":
                for text, whole in zip((german, french), right[1:], strict=True):
                    assert whole.startswith(f"{text} ")
            case "joined":
                for text, whole in zip((german, french), right[1:], strict=True):
                    assert text.startswith(f"{whole} ") and text[-1] in ".?"
            case "mojibake":
                assert (german, french) != right[1:]
                assert (
                    german.encode("cp1252").decode(),
                    french.encode("cp1252").decode(),
                ) == right[1:]
            case "markup":
                for text, plain in zip(line.text, right, strict=True):
                    assert re.fullmatch(rf"&lt;(\w+)&gt;{re.escape(plain)}&lt;/\1&gt;", text)
            case "lost_number":
                assert number(english) == number(right[0]) == number(right[1])
                assert not number(german) and not number(french)
