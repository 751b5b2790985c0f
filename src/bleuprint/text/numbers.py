"""The numbers of a sentence in a normal form, in which equal numbers are equal.

A number is written with digits of any script. Its form is a bag of parts: whole numbers without
leading zeros, and decimals as `.` with their digits, without zeros at the end. So these are equal:

- 1,000, 1.000, 1 000 (any space), 1'000 and 1000; 1,00,000 and 100,000; 007 and 7;
- 3.5, 3,5 and 3.50; 2.0 and 2; .5, 0.5, ½ and 1/2; 1½, 1 ½, 1 1/2 and 1.5;
- x² and x2, H₂O and H2O;
- 3/10/2020, 03.10.20, 3. 10. 2020 and 2020-10-03 (the order of the fields does not count);
- 9:05, 09:05, 9.05, 9h05, 9 Uhr 05 and 9:05:00; 9:00:00, 9:00 and 9; 9 pm, 21:00 and 9;
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

from bleuprint.text.unicode import CharacterTable, replace_unprintable

# One reading of a number, as the parts that the module docstring explains: 3.5 is ("3", ".5").
Parts = tuple[str, ...]
# The largest number of combinations of readings that are compared for one sentence. It grows
# exponentially with the count of ambiguous numbers.
_MAX_COMBINATIONS = 1024

# Three fields of a date, a time or a version.
_FIELDS = r"(?P<fields>\d{1,4}(?P<between>[./:-]|\.[ ])\d{1,2}(?P=between)\d{1,4}(?!\d))"
# Groups of digits that are one number: of telephones at least seven digits after + or 0, or as in
# North America; of cards and accounts groups of four.
_GAP = "[ ()/-]{0,3}"
_GROUPS = (
    rf"(?P<groups>\+\d(?:{_GAP}\d){{6,}}|\+\d{{1,3}}(?:\.\d+){{2,}}|\(?0\d(?:{_GAP}\d){{5,}}"
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\d)|\d{2,4}(?: \d{4}){2,}(?: \d{1,3})?(?!\d))"
)
# The whole number before a fraction may have thousands. A space is put before ½ when it becomes
# 1/2, so that there may be several.
_FRACTION = (
    "(?:(?P<beside>[1-9]\\d{0,2}(?:[.,'’]\\d{3})+|\\d+) {1,3})?"
    r"(?<!\d)(?P<over>\d{1,2})[/\u2044](?P<under>\d{1,2})(?![\d/])"
)
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
    """Decide whether two sentences contain the same numbers, in any order.

    An ambiguous number may take any of its readings. If there are too many combinations of
    readings, numbers with equal readings in both sentences are left out. If that does not help,
    only the usual reading of each number is compared.

    Args:
        first: A sentence.
        second: Its translation.

    Returns:
        True if one reading of each number makes the numbers equal.
    """
    first_readings = number_readings(first)
    second_readings = number_readings(second)
    if _usual_parts(first_readings) == _usual_parts(second_readings):
        return True
    if _has_too_many_combinations(first_readings, second_readings):
        first_readings, second_readings = _without_common(first_readings, second_readings)
        if _has_too_many_combinations(first_readings, second_readings):
            return False
    first_combinations = _combinations(first_readings)
    second_combinations = _combinations(second_readings)
    return not first_combinations.isdisjoint(second_combinations)


def number_readings(sentence: str) -> list[list[Parts]]:
    """Find the numbers of a sentence.

    Args:
        sentence: A sentence in any script.

    Returns:
        The readings of each number in the order of the sentence. The usual reading is the first.
    """
    if not _NUMERIC.search(sentence):
        return []
    text = replace_unprintable(sentence)
    if not text.isascii():
        text = _BROKEN_LETTER.sub("", text)
        text = text.translate(_ASCII_IN_NUMBER)
    return [_readings(match, text) for match in _NUMBER.finditer(text)]


def _usual_parts(readings: list[list[Parts]]) -> Counter[str]:
    """Count the parts of all numbers of a sentence, each in its usual reading."""
    return _count_parts(number[0] for number in readings)


def _count_parts(numbers: Iterable[Parts]) -> Counter[str]:
    """Count the parts of several numbers."""
    counts = Counter[str]()
    for parts in numbers:
        counts.update(parts)
    return counts


def _combinations(readings: list[list[Parts]]) -> set[frozenset[tuple[str, int]]]:
    """Count the parts of all numbers of a sentence for each combination of their readings."""
    combinations = set()
    for chosen_readings in product(*readings):
        counts = _count_parts(chosen_readings)
        combinations.add(frozenset(counts.items()))
    return combinations


def _has_too_many_combinations(first: list[list[Parts]], second: list[list[Parts]]) -> bool:
    """Whether one of two sentences has more combinations of readings than can be compared."""
    return max(_count_combinations(first), _count_combinations(second)) > _MAX_COMBINATIONS


def _count_combinations(readings: list[list[Parts]]) -> int:
    """Return in how many ways one reading of each number can be chosen."""
    return math.prod(len(readings_of_number) for readings_of_number in readings)


def _without_common(
    first: list[list[Parts]], second: list[list[Parts]]
) -> tuple[list[list[Parts]], list[list[Parts]]]:
    """Remove each number that has the same readings in both sentences, once from each sentence."""
    rest_of_first = []
    rest_of_second = list(second)
    for readings in first:
        if readings in rest_of_second:
            rest_of_second.remove(readings)
        else:
            rest_of_first.append(readings)
    return rest_of_first, rest_of_second


def _readings(match: re.Match[str], text: str) -> list[Parts]:
    """Return the readings of one number, the usual one first.

    Args:
        match: A match of `_NUMBER`. Its named groups tell what kind of number it is.
        text: The text of the match, which may continue with "a.m." or "p.m.".
    """
    if match["fields"]:
        fields = _DIGITS.findall(match["fields"])
        if match["between"] == ":":
            return _with_hour_of_24(_clock_readings(fields), match, text)
        return _date_readings(fields)
    if match["groups"]:
        return _digit_group_readings(match["groups"])
    if match["under"]:
        return _fraction_readings(match["beside"], int(match["over"]), int(match["under"]))
    if match["below_1"]:
        return _below_one_readings(match["below_1"])
    return _plain_number_readings(match, text)


def _digit_group_readings(groups: str) -> list[Parts]:
    """Read a telephone or account number as one number, or as one number for each group."""
    one_number = (_normal_whole(groups),)
    return [one_number, _normal_wholes(_DIGITS.findall(groups))]


def _below_one_readings(digits: str) -> list[Parts]:
    """Read .3 as 0.3, or as 3: in tokenized text it may be the end of 2 .3."""
    return [("0", f".{digits}"), (_normal_whole(digits),)]


def _plain_number_readings(match: re.Match[str], text: str) -> list[Parts]:
    """Read a whole number that decimals, minutes, "a.m." or "p.m." may follow."""
    whole_number = match["whole"]
    rest = match["rest"]
    readings: list[Parts] = [(_normal_whole(whole_number),)]
    if rest is not None:
        readings = _readings_with_rest(whole_number, match["mark"], rest)

    readings = _with_hour_of_24(readings, match, text)

    # 1 000 may be two numbers next to each other. They replace the first part of each reading.
    if " " in whole_number:
        separate_numbers = _normal_wholes(whole_number.split(" "))
        for parts in list(readings):
            readings.append((*separate_numbers, *parts[1:]))
    return readings


def _with_hour_of_24(readings: list[Parts], match: re.Match[str], text: str) -> list[Parts]:
    """Add the readings of a time before "a.m." or "p.m.": 9 pm is also hour 21.

    Args:
        readings: The readings of the time. The hour is the first part of each.
        match: The match of the time in the text.
        text: The text, which may continue with "a.m." or "p.m.".

    Returns:
        The readings, and those by the 24-hour clock.
    """
    hour = readings[0][0]
    half_of_day = _HALF_OF_DAY.match(text, match.end())
    if len(hour) > 2 or half_of_day is None:
        return readings
    hour_of_24 = _hour_of_24(int(hour), half_of_day[1].lower())
    all_readings = list(readings)
    for parts in readings:
        all_readings.append((hour_of_24, *parts[1:]))
    return all_readings


def _clock_readings(fields: list[str]) -> list[Parts]:
    """Read hour, minute and second. Without seconds, 9:05:00 is 9:05, and 9:00:00 is 9."""
    hour, minute, second = fields
    all_fields = _normal_wholes(fields)
    if int(second) > 0:
        return [all_fields]
    return [*_readings_with_rest(hour, ":", minute), all_fields]


def _date_readings(fields: list[str]) -> list[Parts]:
    """Read the three fields of a date as whole numbers.

    If all fields have one or two digits, the first or the last may be a year of this or the last
    century: 03.10.20 may be written 3.10.2020 elsewhere.
    """
    numbers = _normal_wholes(fields)
    readings: list[Parts] = [numbers]
    has_long_field = any(len(field) > 2 for field in fields)
    if has_long_field:
        return readings
    for year_index in (2, 0):
        for century in ("20", "19"):
            with_full_year = list(numbers)
            with_full_year[year_index] = f"{century}{fields[year_index]:0>2}"
            readings.append(tuple(with_full_year))
    return readings


def _fraction_readings(whole_number: str | None, numerator: int, denominator: int) -> list[Parts]:
    """Read a fraction as its numbers, or as a decimal: 1 1/2 is 1, 1 and 2, or 1.5.

    Args:
        whole_number: The whole number before the fraction; None if there is none.
        numerator: The number over the line.
        denominator: The number under the line.
    """
    separate_numbers: Parts = (str(numerator), str(denominator))
    if whole_number:
        separate_numbers = (_normal_whole(whole_number), *separate_numbers)
    readings = [separate_numbers]
    # Halves, quarters, fifths and eighths have at most three decimals. Longer ones are not read.
    if 0 < numerator < denominator and 1000 * numerator % denominator == 0:
        thousandths = 1000 * numerator // denominator
        decimals = f"{thousandths:03}".rstrip("0")
        readings.append((_normal_whole(whole_number or "0"), f".{decimals}"))
    return readings


def _readings_with_rest(whole_number: str, mark: str, rest: str) -> list[Parts]:
    """Read a whole number, a mark and more digits: decimals, minutes, or another number.

    Args:
        whole_number: The digits before the mark, perhaps with separators.
        mark: A point, a comma, a colon, "h" or "Uhr".
        rest: The digits after the mark.
    """
    number = _normal_whole(whole_number)
    decimals = rest.rstrip("0")
    decimal_reading: Parts = (number, f".{decimals}") if decimals else (number,)
    readings = [decimal_reading]
    # 3.05 is not 3 and 5. But 9:05 is 9 and 5, and 03.05. may be a day and a month.
    is_time = mark == ":" or mark.strip() in ("h", "Uhr")
    is_date = len(whole_number) == 2 and whole_number.startswith("0")
    is_small_decimal = len(rest) > 1 and rest.startswith("0")
    if is_time or is_date or not is_small_decimal:
        readings.append((number, _normal_whole(rest)))
    return readings


def _hour_of_24(hour: int, half: str) -> str:
    """Convert an hour before ("a") or after ("p") noon to the 24-hour clock: 12 am is 0."""
    if hour > 12:
        return str(hour)
    hour_of_half = hour % 12
    if half == "p":
        return str(hour_of_half + 12)
    return str(hour_of_half)


def _normal_whole(number: str) -> str:
    """Return the digits of a whole number, without separators and leading zeros."""
    digits = "".join(_DIGITS.findall(number))
    return digits.lstrip("0") or "0"


def _normal_wholes(numbers: Iterable[str]) -> Parts:
    """Return several whole numbers, each without separators and leading zeros."""
    return tuple(_normal_whole(number) for number in numbers)


def _ascii_in_number(character: str) -> str:
    """Write a character as ASCII where it belongs to a number.

    Digits of any script become 0 to 9, ½ becomes 1/2 after a space, ² becomes ^2, full-width marks
    and all kinds of spaces become the ASCII ones. Other characters stay.
    """
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    compatible = unicodedata.normalize("NFKC", character)
    if category == "No":
        is_fraction = "\u2044" in compatible
        if is_fraction:
            return f" {compatible}"
        # Enclosed numbers, such as (1) in one character, are read without their brackets.
        digits = compatible.strip("().")
        return f"^{digits}" if digits.isdecimal() else character
    if compatible in (".", ",", ":", "/", "-", "+", "(", ")"):
        return compatible
    return character


_ASCII_IN_NUMBER = CharacterTable(_ascii_in_number)
