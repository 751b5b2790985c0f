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


@pytest.mark.parametrize(
    ("number", "readings"),
    [
        ("1 000", [("1000",), ("1", "0")]),
        (
            "1 200.5",
            [("1200", ".5"), ("1200", "5"), ("1", "200", ".5"), ("1", "200", "5")],
        ),
        (".3", [("0", ".3"), ("3",)]),
        ("3.05", [("3", ".05")]),
        ("03.05", [("3", ".05"), ("3", "5")]),
        ("3/10", [("3", "10"), ("0", ".3")]),
        ("1/3", [("1", "3")]),
        ("5/5", [("5", "5")]),
        ("0/5", [("0", "5")]),
        ("2 3/8", [("2", "3", "8"), ("2", ".375")]),
        (
            "03.10.20",
            [
                ("3", "10", "20"),
                ("3", "10", "2020"),
                ("3", "10", "1920"),
                ("2003", "10", "20"),
                ("1903", "10", "20"),
            ],
        ),
        ("3.10.2020", [("3", "10", "2020")]),
        ("9:05:00", [("9", ".05"), ("9", "5"), ("9", "5", "0")]),
        ("9:05:07", [("9", "5", "7")]),
        ("12 am", [("12",), ("0",)]),
        ("12 pm", [("12",), ("12",)]),
        ("13 pm", [("13",), ("13",)]),
        ("123 pm", [("123",)]),
        ("030 123456", [("30123456",), ("30", "123456")]),
    ],
)
def test_all_readings_of_a_number(number, readings):
    assert number_readings(f"at {number}, or") == [readings]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3 ½ cups", "3.5 Tassen"),
        ("3½ cups", "3,5 Tassen"),
        ("3 1/2 cups", "3,5 Tassen"),
        ("3 1⁄2 cups", "3 ½ Tassen"),
        ("10 ¾ inches", "10,75 Zoll"),
        ("3\u00a0½ cups", "3 1/2 Tassen"),
        ("3 \u2009½ cups", "3½ Tassen"),
        ("1,200 ½ cups", "1200,5 Tassen"),
        ("6 ⅓ and 2", "6 1/3 und 2"),
        ("12:00:00", "12"),
        ("12:00:00", "12:00"),
        ("12:00:00 pm", "12 Uhr"),
        ("09:00:00 PM", "21:00"),
        ("9:30:00", "9.30 Uhr"),
        ("9:05:00", "9h05"),
        ("1:02:03", "01:02:03"),
        ("9:05:07 pm", "21:05:07"),
    ],
)
def test_fractions_and_times_with_seconds(first, second):
    assert have_equal_numbers(first, second)
    assert have_equal_numbers(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3 ½ cups", "4.5 Tassen"),
        ("3 ½ cups", "3.25 Tassen"),
        ("3 ½ cups", "3 Tassen"),
        ("3 ⅓ cups", "3 ⅔ Tassen"),
        ("12:00:00", "13"),
        ("12:00:05", "12"),
        ("12:30:00", "12"),
        ("12:00:30", "12:30"),
        ("9:00:00 pm", "22:00"),
        ("2020-10-00", "2020"),
    ],
)
def test_other_fractions_and_times(first, second):
    assert not have_equal_numbers(first, second)
    assert not have_equal_numbers(second, first)
