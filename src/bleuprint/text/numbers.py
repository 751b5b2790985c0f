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
Reading = tuple[str, ...]
# The largest number of combinations of readings that are compared for one sentence. It grows
# exponentially with the count of ambiguous numbers.
_MAX_COMBINATIONS = 1024

# Three fields of a date, a time or a version.
_FIELDS = r"(?P<fields>\d{1,4}(?P<separator>[./:-]|\.[ ])\d{1,2}(?P=separator)\d{1,4}(?!\d))"
# Groups of digits that are one number: of telephones at least seven digits after + or 0, or as in
# North America; of cards and accounts groups of four.
_GAP = "[ ()/-]{0,3}"
_GROUPS = (
    rf"(?P<telephone>\+\d(?:{_GAP}\d){{6,}}|\+\d{{1,3}}(?:\.\d+){{2,}}|\(?0\d(?:{_GAP}\d){{5,}}"
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\d)|\d{2,4}(?: \d{4}){2,}(?: \d{1,3})?(?!\d))"
)
# The whole number before a fraction may have thousands. A space is put before ½ when it becomes
# 1/2, so that there may be several.
_FRACTION = (
    "(?:(?P<before_fraction>[1-9]\\d{0,2}(?:[.,'’]\\d{3})+|\\d+) {1,3})?"
    r"(?<!\d)(?P<numerator>\d{1,2})[/\u2044](?P<denominator>\d{1,2})(?![\d/])"
)
# Thousands: groups of three digits with one separator throughout, or as in India.
_WHOLE = (
    "(?P<whole>[1-9]\\d{0,2}(?P<thousands_separator>[.,'’\u066c ])\\d{3}"
    r"(?:(?P=thousands_separator)\d{3})*(?!\d)|[1-9]\d?(?:,\d\d)+,\d{3}(?!\d)|\d+)"
)
# Decimals or minutes.
_AFTER_WHOLE = "(?P<mark>[.,:\u066b]| ?(?:h|Uhr) ?)(?P<digits_after_mark>\\d+)"
_BELOW_ONE = r"(?<![^ (])\.(?P<decimals_only>\d+)"
_NUMBER = re.compile(rf"{_FIELDS}|{_GROUPS}|{_FRACTION}|{_WHOLE}(?:{_AFTER_WHOLE})?|{_BELOW_ONE}")
_HALF_OF_DAY = re.compile(r" ?([ap])\.? ?m\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
# Characters without which a sentence has no number: digits, and those with the category No that
# Latin, Greek and CJK texts have.
_NUMERIC = re.compile(r"[\d¹²³¼-¾\u2070-\u2089\u2150-\u215f\u2189\u2460-\u24ff\u2776-\u2793]")
# The second byte of a letter, after its first one: ü that was read as Latin-1 ends in ¼.
_BROKEN_LETTER = re.compile("[Ã-Ñ][¹²³¼-¾]")


def have_equal_numbers(first: str, second: str) -> bool:
    """Decide whether two sentences contain the same numbers, in any order and any way of writing.

    Some numbers can be read in several ways: 3.10 is a decimal, or a day and a month. The numbers
    are the same if there is one way to read each of them that makes them equal. The most usual
    readings are compared first, since that is fast, and then all combinations of readings.

    The number of combinations grows exponentially. If there are too many, the numbers that both
    sentences write alike are removed; if there are still too many, the answer is False.

    Args:
        first: A sentence.
        second: Its translation.
    """
    first_readings = number_readings(first)
    second_readings = number_readings(second)
    if _count_usual_parts(first_readings) == _count_usual_parts(second_readings):
        return True
    if _has_too_many_combinations(first_readings, second_readings):
        first_readings, second_readings = _without_common(first_readings, second_readings)
        if _has_too_many_combinations(first_readings, second_readings):
            return False
    first_combinations = _combinations(first_readings)
    second_combinations = _combinations(second_readings)
    return not first_combinations.isdisjoint(second_combinations)


def number_readings(sentence: str) -> list[list[Reading]]:
    """Find the numbers of a sentence, and the ways to read each of them.

    A reading is a tuple of parts: whole numbers, and decimals with their point. The number 3.10 is
    ("3", ".1") as a decimal, and ("3", "10") as a day and a month.

    Args:
        sentence: A sentence in any script.

    Returns:
        The readings of each number, in the order of the sentence. The most usual reading of a
        number is the first.
    """
    has_digits = _NUMERIC.search(sentence)
    if not has_digits:
        return []
    text = replace_unprintable(sentence)
    if not text.isascii():
        text = _BROKEN_LETTER.sub("", text)
        text = text.translate(_ASCII_IN_NUMBER)
    return [_readings(match, text) for match in _NUMBER.finditer(text)]


def _count_usual_parts(readings: list[list[Reading]]) -> Counter[str]:
    """Count the parts of all numbers of a sentence, each in its most usual reading."""
    return _count_parts(readings_of_number[0] for readings_of_number in readings)


def _count_parts(numbers: Iterable[Reading]) -> Counter[str]:
    """Count how often each part occurs in several numbers, such as the part "3" of ("3", ".5")."""
    counts = Counter[str]()
    for parts in numbers:
        counts.update(parts)
    return counts


def _combinations(readings: list[list[Reading]]) -> set[frozenset[tuple[str, int]]]:
    """Read the numbers of a sentence in all combinations of ways, and count the parts of each.

    Two sentences have equal numbers if they share a combination. The order of the numbers does not
    matter, so a combination is how often each part occurs: "5 and 3.5" has one, which is
    {("5", 1), ("3", 1), (".5", 1)}.

    Args:
        readings: For each number the ways to read it, such as ("3", ".1") and ("3", "10") for 3.10.

    Returns:
        The combinations, each as pairs of a part and its count. They are frozen sets, since
        counters cannot be elements of a set.
    """
    combinations = set()
    for chosen_readings in product(*readings):
        counts = _count_parts(chosen_readings)
        combinations.add(frozenset(counts.items()))
    return combinations


def _has_too_many_combinations(first: list[list[Reading]], second: list[list[Reading]]) -> bool:
    """Return whether either sentence has more combinations of readings than can be compared."""
    largest_count = max(_count_combinations(first), _count_combinations(second))
    return largest_count > _MAX_COMBINATIONS


def _count_combinations(readings: list[list[Reading]]) -> int:
    """Return in how many ways one reading of each number can be chosen."""
    return math.prod(len(readings_of_number) for readings_of_number in readings)


def _without_common(
    first: list[list[Reading]], second: list[list[Reading]]
) -> tuple[list[list[Reading]], list[list[Reading]]]:
    """Remove the numbers that occur in both sentences, once from each sentence.

    Args:
        first: For each number of the first sentence, the ways to read it.
        second: The same for the second sentence.

    Returns:
        The other numbers of the first sentence, and of the second one.
    """
    only_in_first = []
    only_in_second = list(second)
    for readings_of_number in first:
        if readings_of_number in only_in_second:
            only_in_second.remove(readings_of_number)
        else:
            only_in_first.append(readings_of_number)
    return only_in_first, only_in_second


def _readings(match: re.Match[str], text: str) -> list[Reading]:
    """Return the ways to read one number, the most usual one first.

    The named groups of the match tell what kind of number it is: a date or a time with three
    fields, a telephone number, a fraction, a decimal such as .5, or another number.

    Args:
        match: A match of the regular expression `_NUMBER`.
        text: The text of the match, which may continue with "a.m." or "p.m.".
    """
    if match["fields"]:
        fields = _DIGITS.findall(match["fields"])
        is_time = match["separator"] == ":"
        if is_time:
            return _with_hour_of_24(_clock_readings(fields), match, text)
        return _date_readings(fields)
    if match["telephone"]:
        return _digit_group_readings(match["telephone"])
    if match["denominator"]:
        return _fraction_readings(
            match["before_fraction"],
            int(match["numerator"]),
            int(match["denominator"]),
        )
    if match["decimals_only"]:
        return _below_one_readings(match["decimals_only"])
    return _plain_number_readings(match, text)


def _digit_group_readings(groups: str) -> list[Reading]:
    """Read the groups of digits in a telephone or account number as one number, or as several."""
    one_number = (_normal_whole(groups),)
    several_numbers = _normal_wholes(_DIGITS.findall(groups))
    return [one_number, several_numbers]


def _below_one_readings(digits: str) -> list[Reading]:
    """Read .3 as 0.3, or as 3: in tokenized text it may be the end of 2 .3."""
    return [("0", f".{digits}"), (_normal_whole(digits),)]


def _plain_number_readings(match: re.Match[str], text: str) -> list[Reading]:
    """Return the ways to read a number such as 1,000, 3.10 or 9:05, the most usual one first.

    After the whole number, there may be decimals or minutes, and "a.m." or "p.m.". The number 3.10
    is read as ("3", ".1") and as ("3", "10").

    Args:
        match: A match of the regular expression `_NUMBER`.
        text: The text of the match, which may continue with "a.m." or "p.m.".
    """
    whole_number = match["whole"]
    digits_after_mark = match["digits_after_mark"]
    readings: list[Reading] = [(_normal_whole(whole_number),)]
    if digits_after_mark is not None:
        readings = _readings_with_mark(whole_number, match["mark"], digits_after_mark)

    readings = _with_hour_of_24(readings, match, text)

    # 1 000 may also be two numbers next to each other, 1 and 0. For each reading there is then
    # another one, in which they replace the first part.
    if " " in whole_number:
        separate_numbers = _normal_wholes(whole_number.split(" "))
        for _, *other_parts in list(readings):
            readings.append((*separate_numbers, *other_parts))
    return readings


def _with_hour_of_24(readings: list[Reading], match: re.Match[str], text: str) -> list[Reading]:
    """Add readings with the 24-hour clock if "a.m." or "p.m." follows a time: 9 pm is also 21.

    Without such a word, or if the number is too long for an hour, the readings are returned
    unchanged.

    Args:
        readings: The ways to read the time. The first part of each is the hour.
        match: The match of the time in the text.
        text: The text, which may continue with "a.m." or "p.m.".
    """
    hour = readings[0][0]
    is_hour = len(hour) <= 2
    half_of_day = _HALF_OF_DAY.match(text, match.end())
    if not is_hour or half_of_day is None:
        return readings
    letter = half_of_day[1].lower()  # "a" or "p"
    hour_of_24 = _hour_of_24(int(hour), letter)
    all_readings = list(readings)
    for _, *other_parts in readings:
        all_readings.append((hour_of_24, *other_parts))
    return all_readings


def _clock_readings(fields: list[str]) -> list[Reading]:
    """Return the ways to read a time with hour, minute and second, the most usual one first.

    A time without seconds may be written shorter elsewhere: 9:05:00 as 9:05, and 9:00:00 as 9.
    """
    hour, minute, second = fields
    all_fields = _normal_wholes(fields)
    if int(second) > 0:
        return [all_fields]
    return [*_readings_with_mark(hour, ":", minute), all_fields]


def _date_readings(fields: list[str]) -> list[Reading]:
    """Return the ways to read the three fields of a date, the most usual one first.

    Each field is read as a whole number. If all fields have one or two digits, the last or the
    first may be a year of this or the last century: 03.10.20 may be written 3.10.2020 elsewhere.
    """
    numbers = _normal_wholes(fields)
    readings: list[Reading] = [numbers]
    has_full_year = any(len(field) > 2 for field in fields)
    if has_full_year:
        return readings
    for year_index in (2, 0):
        for century in ("20", "19"):
            with_full_year = list(numbers)
            with_full_year[year_index] = f"{century}{fields[year_index]:0>2}"
            readings.append(tuple(with_full_year))
    return readings


def _fraction_readings(whole_number: str | None, numerator: int, denominator: int) -> list[Reading]:
    """Return the ways to read a fraction: 1 1/2 is the numbers 1, 1 and 2, or the decimal 1.5.

    Args:
        whole_number: The whole number before the fraction; None if there is no such number.
        numerator: The number over the line.
        denominator: The number under the line.
    """
    separate_numbers: Reading = (str(numerator), str(denominator))
    if whole_number:
        separate_numbers = (_normal_whole(whole_number), *separate_numbers)
    readings = [separate_numbers]
    # Halves, quarters, fifths and eighths have at most three decimals. A fraction with more, such
    # as 1/3, is not read as a decimal.
    is_below_1 = 0 < numerator < denominator
    if is_below_1 and 1000 * numerator % denominator == 0:
        thousandths = 1000 * numerator // denominator
        decimals = f"{thousandths:03}".rstrip("0")
        readings.append((_normal_whole(whole_number or "0"), f".{decimals}"))
    return readings


def _readings_with_mark(whole_number: str, mark: str, digits_after_mark: str) -> list[Reading]:
    """Return the ways to read a number such as 3.10 or 9:05: a decimal, or two whole numbers.

    The decimal is the first reading, without zeros at its end: ("3", ".1"). The two whole numbers,
    ("3", "10"), may be an hour and a minute, or a day and a month.

    Args:
        whole_number: The digits before the mark, perhaps with thousands separators.
        mark: A point, a comma, a colon, "h" or "Uhr".
        digits_after_mark: The digits after the mark.
    """
    number = _normal_whole(whole_number)
    decimals = digits_after_mark.rstrip("0")
    decimal_reading: Reading = (number, f".{decimals}") if decimals else (number,)
    readings = [decimal_reading]
    # The zero in 3.05 shows a decimal, which is not 3 and 5. But 9:05 is 9 and 5, and 03.05. may be
    # a day and a month.
    is_time = mark == ":" or mark.strip() in ("h", "Uhr")
    is_date = len(whole_number) == 2 and whole_number.startswith("0")
    has_zero_after_mark = len(digits_after_mark) > 1 and digits_after_mark.startswith("0")
    if is_time or is_date or not has_zero_after_mark:
        readings.append((number, _normal_whole(digits_after_mark)))
    return readings


def _hour_of_24(hour: int, half_of_day: str) -> str:
    """Convert an hour before "a.m." or "p.m." to the 24-hour clock: 9 pm is 21, and 12 am is 0.

    Args:
        hour: The hour. If it is above 12, it is on the 24-hour clock already.
        half_of_day: "a" for a.m., "p" for p.m.
    """
    if hour > 12:
        return str(hour)
    # 12 a.m. is midnight and 12 p.m. is noon, so 12 counts as hour 0 of its half of the day.
    hour_in_half = hour % 12
    return str(hour_in_half + 12 if half_of_day == "p" else hour_in_half)


def _normal_whole(number: str) -> str:
    """Return the digits of a whole number, without separators and leading zeros."""
    digits = "".join(_DIGITS.findall(number))
    return digits.lstrip("0") or "0"


def _normal_wholes(numbers: Iterable[str]) -> Reading:
    """Return several whole numbers, each without separators and leading zeros."""
    return tuple(_normal_whole(number) for number in numbers)


def _ascii_in_number(character: str) -> str:
    """Return what replaces a digit, or another character that is used in numbers.

    So that one regular expression finds the numbers of all scripts, these replacements are made:

    - Digits of any script become 0 to 9, and ² becomes ^2.
    - ½ becomes a space, 1, the fraction slash and 2, so that 1½ reads as 1 1/2.
    - Full-width marks and all kinds of spaces become the ASCII ones.

    Any other character is returned unchanged.
    """
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    category = unicodedata.category(character)
    if category == "Zs":  # Unicode's category of spaces.
        return " "
    # NFKC writes special forms of a character as the ordinary one: ² as 2.
    compatible = unicodedata.normalize("NFKC", character)
    if category == "No":  # Numbers that are not decimal digits, such as ², ½ and ⑴.
        fraction_slash = "\u2044"
        if fraction_slash in compatible:
            return f" {compatible}"
        # Enclosed numbers, such as (1) in one character, are read without their brackets.
        digits = compatible.strip("().")
        return f"^{digits}" if digits.isdecimal() else character
    if compatible in (".", ",", ":", "/", "-", "+", "(", ")"):
        return compatible
    return character


_ASCII_IN_NUMBER = CharacterTable(_ascii_in_number)
