"""Equal numbers in the forms of other languages, as Babel writes them from Unicode's CLDR."""

import datetime

import pytest
from babel.dates import format_date, format_time
from babel.numbers import format_decimal

from bleuprint.text.numbers import have_equal_numbers, number_readings

LOCALES = ["de", "fr", "de_CH", "hi", "bn_BD", "pt_BR", "ru", "sv", "ja", "fi", "et"]
NUMBERS = [7, 1234, 12_345, 100_000, 1_234_567, 98_765_432, 3.5, 1234.05, 100_000.25, 0.125]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("digits", ["latn", "default"])
def test_numbers_of_locales(locale, number, digits):
    english = format_decimal(number, locale="en")
    other = format_decimal(number, locale=locale, numbering_system=digits)
    assert have_equal_numbers(f"It has {english}.", f"{other}: so viel")
    for wrong in (number + 1, number * 10, number + 0.01):
        wrong = format_decimal(wrong, locale=locale, numbering_system=digits)
        assert not have_equal_numbers(f"It has {english}.", f"{wrong}: so viel")


@pytest.mark.parametrize("locale", ["de", "fr", "sv", "en_GB", "pl", "cs", "hu", "ko", "lt"])
@pytest.mark.parametrize("day", [datetime.date(2020, 10, 3), datetime.date(1998, 1, 25)])
def test_dates_of_locales(locale, day):
    english, other = (format_date(day, "short", locale=each) for each in ("en_US", locale))
    assert have_equal_numbers(english, other), (english, other)
    assert have_equal_numbers(other, day.isoformat()), other
    for days in (1, 40, 400):
        wrong = format_date(day + datetime.timedelta(days=days), "short", locale=locale)
        assert not have_equal_numbers(english, wrong), (english, wrong)


@pytest.mark.parametrize("locale", ["de", "fr", "fi", "ja", "da", "en_US"])
@pytest.mark.parametrize("time", [(9, 5), (21, 0), (12, 30), (0, 45), (13, 20)])
def test_times_of_locales(locale, time):
    english, other = (
        format_time(datetime.time(*time), "short", locale=each) for each in ("en_US", locale)
    )
    assert have_equal_numbers(f"at {english}", f"um {other}"), (english, other)
    hour, minute = time
    wrong = format_time(datetime.time((hour + 1) % 24, minute), "short", locale=locale)
    assert not have_equal_numbers(f"at {english}", f"um {wrong}"), (english, wrong)


def test_readings_worked_by_hand():
    assert number_readings("3.10 of 1½") == [
        [("3", ".1"), ("3", "10")],
        [("1", "1", "2"), ("1", ".5")],
    ]
    assert number_readings("no number, I or ʻ") == []
    assert number_readings("9:05 pm") == [
        [("9", ".05"), ("9", "5"), ("21", ".05"), ("21", "5")],
    ]
