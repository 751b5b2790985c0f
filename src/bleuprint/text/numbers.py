"""The numbers of a sentence in a normal form, in which equal numbers are equal.

A number is written with digits of any script. Its form is a bag of parts: whole numbers without
leading zeros, and decimals as `.` with their digits, without zeros at the end. So these are equal:

- 1,000, 1.000, 1 000 (any space), 1'000 and 1000; 1,00,000 and 100,000; 007 and 7;
- 3.5, 3,5 and 3.50; 2.0 and 2; .5, 0.5, ½ and 1/2; 1½, 1 1/2 and 1.5;
- x² and x2, H₂O and H2O;
- 3/10/2020, 03.10.20, 3. 10. 2020 and 2020-10-03 (the order of the fields does not count);
- 9:05, 09:05, 9.05, 9h05 and 9 Uhr 05; 9:00 and 9; 9 pm, 21:00 and 9;
- +49 30 123456, +49 (30) 123-456 and 0049 30 123 456; 030 123456 and 030/123 456;
- 1234 5678 9012 3456 and 1234567890123456.

Signs beside a number (percent, currency, minus) and the endings of ordinals do not count. Numbers
and months in words are not found.

Some numbers have several readings: 3.10 is a decimal, or a day and a month. Two sentences have
equal numbers if they are equal in one reading of each.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import product

from bleuprint.text.unicode import CharacterTable, blank_unprinted

# The parts of one reading of a number.
Parts = tuple[str, ...]
# Beyond so many combinations of readings, only the usual reading of each number is compared.
_MOST_COMBINATIONS = 1024

# Three fields of a date, a time or a version.
_FIELDS = r"(?P<fields>\d{1,4}(?P<between>[./:-]|\.[ ])\d{1,2}(?P=between)\d{1,4}(?!\d))"
# Groups of digits that are one number: of telephones at least seven digits after + or 0, or as in
# North America; of cards and accounts groups of four.
_GAP = "[ ()/-]{0,3}"
_GROUPS = (
    rf"(?P<groups>\+\d(?:{_GAP}\d){{6,}}|\+\d{{1,3}}(?:\.\d+){{2,}}|\(?0\d(?:{_GAP}\d){{5,}}"
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\d)|\d{2,4}(?: \d{4}){2,}(?: \d{1,3})?(?!\d))"
)
_FRACTION = r"(?:(?P<beside>\d+) )?(?<!\d)(?P<over>\d{1,2})[/\u2044](?P<under>\d{1,2})(?![\d/])"
# Thousands: groups of three digits with one separator throughout, or as in India.
_WHOLE = (
    "(?P<whole>[1-9]\\d{0,2}(?P<separator>[.,'’\u066c ])\\d{3}"
    r"(?:(?P=separator)\d{3})*(?!\d)|[1-9]\d?(?:,\d\d)+,\d{3}(?!\d)|\d+)"
)
# Decimals or minutes.
_REST = "(?P<mark>[.,:\u066b]| ?(?:h|Uhr) ?)(?P<rest>\\d+)"
_NUMBER = re.compile(
    rf"{_FIELDS}|{_GROUPS}|{_FRACTION}|{_WHOLE}(?:{_REST})?|(?<![^ (])\.(?P<below_1>\d+)"
)
_HALF_OF_DAY = re.compile(r" ?([ap])\.? ?m\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
# Characters without which a sentence has no number: digits, and those with the category No that
# Latin, Greek and CJK texts have.
_NUMERIC = re.compile(r"[\d¹²³¼-¾\u2070-\u2089\u2150-\u215f\u2189\u2460-\u24ff\u2776-\u2793]")
# The second byte of a letter, after its first one: ü that was read as Latin-1 ends in ¼.
_BROKEN_LETTER = re.compile("[Ã-Ñ][¹²³¼-¾]")


def have_equal_numbers(first: str, second: str) -> bool:
    """Whether two sentences have the same numbers, in any order, in one reading of each."""
    readings = number_readings(first), number_readings(second)
    usual = [_bag(number[0] for number in side) for side in readings]
    if usual[0] == usual[1]:
        return True
    if any(math.prod(map(len, side)) > _MOST_COMBINATIONS for side in readings):
        readings = _without_common(*readings)
        if any(math.prod(map(len, side)) > _MOST_COMBINATIONS for side in readings):
            return False
    bags = [{frozenset(_bag(chosen).items()) for chosen in product(*side)} for side in readings]
    return not bags[0].isdisjoint(bags[1])


def number_readings(sentence: str) -> list[list[Parts]]:
    """The readings of each number of a sentence, the usual one first."""
    if not _NUMERIC.search(sentence):
        return []
    text = blank_unprinted(sentence)
    if not text.isascii():
        text = _BROKEN_LETTER.sub("", text).translate(_PLAIN)
    return [_readings(found, text) for found in _NUMBER.finditer(text)]


def _without_common(
    first: list[list[Parts]], second: list[list[Parts]]
) -> tuple[list[list[Parts]], list[list[Parts]]]:
    """Both sides without the numbers that they have in common with all readings."""
    rest_of_second = list(second)
    rest_of_first = []
    for readings in first:
        if readings in rest_of_second:
            rest_of_second.remove(readings)
        else:
            rest_of_first.append(readings)
    return rest_of_first, rest_of_second


def _bag(numbers: Iterable[Parts]) -> Counter[str]:
    return Counter(part for parts in numbers for part in parts)


def _readings(found: re.Match[str], text: str) -> list[Parts]:
    """The readings of a number that was found in a text."""
    if found["fields"]:
        return _of_fields(_DIGITS.findall(found["fields"]))
    if groups := found["groups"]:
        return [(_whole(groups),), tuple(map(_whole, _DIGITS.findall(groups)))]
    if found["under"]:
        return _of_fraction(found["beside"], int(found["over"]), int(found["under"]))
    if below_1 := found["below_1"]:
        # the digits alone, too: in tokenized text .3 may follow a 2
        return [("0", f".{below_1}"), (_whole(below_1),)]
    whole, mark, rest = found["whole"], found["mark"], found["rest"]
    readings: list[Parts] = [(_whole(whole),)]
    if rest is not None:
        readings = _with_rest(whole, mark, rest)
    hour = readings[0][0]
    if len(hour) <= 2 and (half := _HALF_OF_DAY.match(text, found.end())):
        other = _hour_of_24(int(hour), half[1].lower())
        readings += [(other, *parts) for _, *parts in readings]
    if " " in whole:  # two numbers beside each other, perhaps
        readings += [(*map(_whole, whole.split(" ")), *parts) for _, *parts in readings]
    return readings


def _of_fields(fields: list[str]) -> list[Parts]:
    """The fields of a date as whole numbers; the first or last may be a year of two digits."""
    numbers = [_whole(field) for field in fields]
    readings: list[Parts] = [tuple(numbers)]
    if max(map(len, fields)) > 2:
        return readings
    for place in (2, 0):
        for century in ("20", "19"):
            of_year = list(numbers)
            of_year[place] = f"{century}{fields[place]:0>2}"
            readings.append(tuple(of_year))
    return readings


def _of_fraction(beside: str | None, over: int, under: int) -> list[Parts]:
    """1/2 is 1 and 2, or 0.5; 1 1/2 is 1, 1 and 2, or 1.5."""
    fields: Parts = (str(over), str(under))
    readings: list[Parts] = [(_whole(beside), *fields) if beside else fields]
    # thousandths suffice for halves, quarters, fifths and eighths
    if 0 < over < under and 1000 * over % under == 0:
        decimals = f"{1000 * over // under:03}".rstrip("0")
        readings.append((_whole(beside or "0"), f".{decimals}"))
    return readings


def _with_rest(whole: str, mark: str, rest: str) -> list[Parts]:
    """A whole number with what follows a mark: decimals, minutes, or another number."""
    number, decimals = _whole(whole), rest.rstrip("0")
    readings: list[Parts] = [(number, f".{decimals}") if decimals else (number,)]
    # 3.05 is not 3 and 5, but 9:05 is 9 and 5, and 03.05. may be a day and a month
    is_decimal = mark not in ":" and mark.strip() not in ("h", "Uhr")
    is_of_date = len(whole) == 2 and whole.startswith("0")
    if not is_decimal or is_of_date or len(rest) == 1 or not rest.startswith("0"):
        readings.append((number, _whole(rest)))
    return readings


def _hour_of_24(hour: int, half: str) -> str:
    """The hour on a clock of 24 hours, of an hour of the first (a) or second (p) half of a day."""
    if hour > 12:
        return str(hour)
    return str(hour % 12 + (12 if half == "p" else 0))


def _whole(number: str) -> str:
    """The digits of a whole number, without separators and leading zeros."""
    return "".join(_DIGITS.findall(number)).lstrip("0") or "0"


def _plain(character: str) -> str:
    """Digits of any script as 0 to 9, ½ as 1/2, x² as x^2; full-width marks, any space as usual."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    category, plain = unicodedata.category(character), unicodedata.normalize("NFKC", character)
    if category == "Zs":
        return " "
    if category == "No":
        if "\u2044" in plain:
            return f" {plain}"
        digits = plain.strip("().")
        return f"^{digits}" if digits.isdecimal() else character
    return plain if plain in (".", ",", ":", "/", "-", "+", "(", ")") else character


_PLAIN = CharacterTable(_plain)
