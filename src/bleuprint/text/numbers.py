"""The numbers of a sentence in a normal form, in which equal numbers are equal.

A number is written with digits of any script. Its form is a bag of parts: whole numbers without
leading zeros, and decimals as `.` with their digits, without zeros at the end. So these are equal:

- 1,000, 1.000, 1 000 (any space), 1'000 and 1000; 1,00,000 and 100,000; 007 and 7;
- 3.5, 3,5 and 3.50; 2.0 and 2; .5, 0.5, ½ and 1/2; 1½, 1 1/2 and 1.5;
- x² and x2, H₂O and H2O;
- 3/10/2020, 03.10.2020, 3. 10. 2020 and 2020-10-03 (the order of the fields does not count);
- 9:05, 09:05, 9.05, 9h05 and 9 Uhr 05; 9:00 and 9; 9 pm, 21:00 and 9;
- +49 30 123456, +49 (30) 123-456 and 0049 30 123 456; 030 123456 and 030/123 456.

Signs beside a number (percent, currency, minus) and the endings of ordinals do not count. Numbers
and months in words are not found, and a year of two digits differs from one of four.

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

_SPACE = "[ \u00a0\u2009\u202f]"
# Three fields of a date, a time or a version.
_FIELDS = r"(?P<fields>\d{1,4}(?P<between>[./:-]|\.[ ])\d{1,2}(?P=between)\d{1,4}(?!\d))"
# At least seven digits after + or 0, in groups, and three groups of four, as of cards.
_PHONE_GAP = "[ \u00a0\u2009\u202f()/-]{0,3}"
_JOINED = (
    rf"(?P<joined>\+\d(?:{_PHONE_GAP}\d){{6,}}|\(?0\d(?:{_PHONE_GAP}\d){{5,}}"
    rf"|\d{{4}}(?:{_SPACE}\d{{4}}){{2,}}(?!\d))"
)
_FRACTION = (
    rf"(?:(?P<beside>\d+){_SPACE})?(?<!\d)(?P<over>\d{{1,2}})[/\u2044](?P<under>\d{{1,2}})(?![\d/])"
)
# Thousands: groups of three digits with one separator throughout, or as in India.
_WHOLE = (
    "(?P<whole>[1-9]\\d{0,2}(?P<separator>[.,'’\u066c \u00a0\u2009\u202f])\\d{3}"
    r"(?:(?P=separator)\d{3})*(?!\d)|[1-9]\d?(?:,\d\d)+,\d{3}(?!\d)|\d+)"
)
# Decimals or minutes.
_REST = rf"(?:[.,:\u066b]|{_SPACE}?(?:h|Uhr){_SPACE}?)(?P<rest>\d+)"
_NUMBER = re.compile(
    rf"{_FIELDS}|{_JOINED}|{_FRACTION}|{_WHOLE}(?:{_REST})?|(?<![^\s(])\.(?P<below_1>\d+)"
)
_HALF_OF_DAY = re.compile(r" ?([ap])\.?m\b", re.IGNORECASE)
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


def _bag(numbers: Iterable[Parts]) -> Counter[str]:
    return Counter(part for parts in numbers for part in parts)


def _readings(found: re.Match[str], text: str) -> list[Parts]:
    """The readings of a number that was found in a text."""
    if found["fields"]:
        return [tuple(map(_whole, _DIGITS.findall(found["fields"])))]
    if found["joined"]:
        return [(_whole(found["joined"]),)]
    if found["under"]:
        return _of_fraction(found["beside"], int(found["over"]), int(found["under"]))
    if found["below_1"]:
        # the digits alone, too: in tokenized text .3 may follow a 2
        return [*_with_rest("0", found["below_1"])[:1], (_whole(found["below_1"]),)]
    readings = _with_rest(found["whole"], found["rest"])
    hour = readings[0][0]
    if len(hour) <= 2 and (half := _HALF_OF_DAY.match(text, found.end())):
        other = _hour_of_24(int(hour), half[1].lower())
        readings += [(other, *rest) for _, *rest in readings]
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


def _with_rest(whole: str, rest: str | None) -> list[Parts]:
    """A whole number with what follows a separator: decimals, minutes, or another number."""
    number = _whole(whole)
    if rest is None:
        return [(number,)]
    decimals = rest.rstrip("0")
    readings: list[Parts] = [(number, f".{decimals}") if decimals else (number,)]
    # 3.05 is not 3 and 5, but 03.05. may be a day and a month
    is_of_date = len(whole) == 2 and whole.startswith("0")
    if len(rest) == 1 or not rest.startswith("0") or is_of_date:
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
    """Digits of any script as 0 to 9, ½ as 1/2, x² as x^2, full-width marks as usual ones."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    plain = unicodedata.normalize("NFKC", character)
    if unicodedata.category(character) == "No":
        if plain.isdecimal():
            return f"^{plain}"
        return f" {plain}" if "\u2044" in plain else character
    return plain if plain in (".", ",", ":", "/", "-", "+", "(", ")") else character


_PLAIN = CharacterTable(_plain)
