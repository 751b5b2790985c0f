"""Numbers in the forms of different languages are recognized as equal.

Babel writes the forms from CLDR, the data of Unicode about languages.
"""

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
def test_a_number_in_a_locale_equals_the_english_number(locale, number, digits):
    """Languages write 1,234.05 as 1.234,05 or 1 234,05, and some with digits of their own."""
    english_number = format_decimal(number, locale="en")
    local_number = format_decimal(number, locale=locale, numbering_system=digits)

    assert have_equal_numbers(f"It has {english_number}.", f"{local_number}: so viel")


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("digits", ["latn", "default"])
def test_another_number_in_a_locale_does_not_equal_the_english_number(locale, number, digits):
    """A wrong number in a translation must be found, whatever the form of the number."""
    english_number = format_decimal(number, locale="en")

    for other_number in (number + 1, number * 10, number + 0.01):
        local_number = format_decimal(other_number, locale=locale, numbering_system=digits)
        assert not have_equal_numbers(f"It has {english_number}.", f"{local_number}: so viel")


DATE_LOCALES = ["de", "fr", "sv", "en_GB", "pl", "cs", "hu", "ko", "lt"]
DATES = [datetime.date(2020, 10, 3), datetime.date(1998, 1, 25)]


@pytest.mark.parametrize("locale", DATE_LOCALES)
@pytest.mark.parametrize("date", DATES, ids=str)
def test_a_date_in_a_locale_equals_the_american_and_the_iso_date(locale, date):
    """The order of day, month and year differs, and the year may have two digits or four."""
    local_date = format_date(date, "short", locale=locale)
    american_date = format_date(date, "short", locale="en_US")

    assert have_equal_numbers(american_date, local_date), (american_date, local_date)
    assert have_equal_numbers(local_date, date.isoformat()), local_date


@pytest.mark.parametrize("locale", DATE_LOCALES)
@pytest.mark.parametrize("date", DATES, ids=str)
@pytest.mark.parametrize("days", [1, 40, 400])
def test_a_later_date_in_a_locale_does_not_equal_the_american_date(locale, date, days):
    """Compared is a date with one that is a day, about a month or about a year later."""
    american_date = format_date(date, "short", locale="en_US")
    later_date = format_date(date + datetime.timedelta(days=days), "short", locale=locale)

    assert not have_equal_numbers(american_date, later_date), (american_date, later_date)


TIME_LOCALES = ["de", "fr", "fi", "ja", "da", "en_US"]
TIMES = [
    datetime.time(9, 5),
    datetime.time(21, 0),
    datetime.time(12, 30),
    datetime.time(0, 45),
    datetime.time(13, 20),
]


@pytest.mark.parametrize("locale", TIME_LOCALES)
@pytest.mark.parametrize("time", TIMES, ids=str)
def test_a_time_in_a_locale_equals_the_american_time(locale, time):
    """The American form has 12 hours and am or pm, such as 9:05 PM for 21:05."""
    local_time = format_time(time, "short", locale=locale)
    american_time = format_time(time, "short", locale="en_US")

    assert have_equal_numbers(f"at {american_time}", f"um {local_time}"), local_time


@pytest.mark.parametrize("locale", TIME_LOCALES)
@pytest.mark.parametrize("time", TIMES, ids=str)
def test_a_time_an_hour_later_does_not_equal_the_american_time(locale, time):
    american_time = format_time(time, "short", locale="en_US")
    later_time = time.replace(hour=(time.hour + 1) % 24)

    local_time = format_time(later_time, "short", locale=locale)

    assert not have_equal_numbers(f"at {american_time}", f"um {local_time}"), local_time


# A reading is a list of parts, of which ".5" is a fraction; a number may have several readings.
@pytest.mark.parametrize(
    ("text", "readings"),
    [
        pytest.param(
            "3.10 of 1½",
            [[("3", ".1"), ("3", "10")], [("1", "1", "2"), ("1", ".5")]],
            id="two numbers, each with two readings",
        ),
        pytest.param("no number, I or ʻ", [], id="no number"),
        pytest.param(
            "9:05 pm",
            [[("9", ".05"), ("9", "5"), ("21", ".05"), ("21", "5")]],
            id="time in 12 and 24 hours",
        ),
    ],
)
def test_each_number_of_a_text_has_a_list_of_readings(text, readings):
    """In 3.10, for example, the point may begin a fraction, or separate two numbers of a date."""
    assert number_readings(text) == readings


@pytest.mark.parametrize(
    ("number", "readings"),
    [
        pytest.param("1 000", [("1000",), ("1", "0")], id="thousands"),
        pytest.param(
            "1 200.5",
            [("1200", ".5"), ("1200", "5"), ("1", "200", ".5"), ("1", "200", "5")],
            id="thousands and a fraction",
        ),
        pytest.param(".3", [("0", ".3"), ("3",)], id="fraction"),
        pytest.param("3.05", [("3", ".05")], id="decimal"),
        pytest.param("03.05", [("3", ".05"), ("3", "5")], id="date or decimal"),
        pytest.param("3/10", [("3", "10"), ("0", ".3")], id="fraction or date"),
        pytest.param("1/3", [("1", "3")], id="fraction with a repeating decimal"),
        pytest.param("5/5", [("5", "5")], id="fraction of 1"),
        pytest.param("0/5", [("0", "5")], id="fraction of 0"),
        pytest.param("2 3/8", [("2", "3", "8"), ("2", ".375")], id="whole number and fraction"),
        pytest.param(
            "03.10.20",
            [
                ("3", "10", "20"),
                ("3", "10", "2020"),
                ("3", "10", "1920"),
                ("2003", "10", "20"),
                ("1903", "10", "20"),
            ],
            id="date with a short year",
        ),
        pytest.param("3.10.2020", [("3", "10", "2020")], id="date with a long year"),
        pytest.param(
            "9:05:00", [("9", ".05"), ("9", "5"), ("9", "5", "0")], id="time with empty seconds"
        ),
        pytest.param("9:05:07", [("9", "5", "7")], id="time with seconds"),
        pytest.param("12 am", [("12",), ("0",)], id="midnight"),
        pytest.param("12 pm", [("12",), ("12",)], id="noon"),
        pytest.param("13 pm", [("13",), ("13",)], id="hour above 12"),
        pytest.param("123 pm", [("123",)], id="number above 24"),
        pytest.param("030 123456", [("30123456",), ("30", "123456")], id="telephone number"),
    ],
)
def test_a_number_has_all_these_readings(number, readings):
    """A reading is a tuple of parts; a part that begins with a point is a fraction.

    Two numbers count as equal if they have a reading in common.
    """
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
def test_equal_fractions_and_times_in_different_forms_are_equal(first, second):
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
def test_different_fractions_and_times_are_not_equal(first, second):
    assert not have_equal_numbers(first, second)
    assert not have_equal_numbers(second, first)
