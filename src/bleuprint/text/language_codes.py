"""Language codes of ISO 639: which ones name the same language, and what the language is called.

language_codes.csv lists the languages with a two-letter code and those that rule `language_id`
knows. Its columns are the code that this project uses, the codes that are equal to it (ISO 639-2/B,
-2/T and -3, withdrawn codes such as `iw`, and the main language of a macrolanguage such as `cmn`),
and the name in English and in the language itself. Source: ISO 639 and Unicode CLDR's aliases.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("language_codes.csv")


@dataclass(frozen=True)
class _Languages:
    """The content of language_codes.csv.

    Attributes:
        by_code: Our code of a language, by each of its codes.
        by_name: Our code of a language, by each of its names, case-folded.
    """

    by_code: dict[str, str]
    by_name: dict[str, str]


def primary_subtag(tag: str) -> str:
    """Return the language part of a tag in lower case: `en` of `EN_us`."""
    return tag.replace("_", "-").partition("-")[0].lower()


def language_of(tag: str) -> str:
    """Return the code that this project uses for the language of a tag.

    Args:
        tag: a code of ISO 639 in upper or lower case, perhaps with a script or a region.

    Returns:
        `de` for `de`, `DEU`, `ger` and `de-AT`; an unlisted code in lower case, without its region.
    """
    primary = primary_subtag(tag)
    return _languages().by_code.get(primary, primary)


def normalized_tag(tag: str) -> str:
    """Return a tag in lower case with hyphens and our code of its language: `en-gb` of `eng_GB`."""
    rest = tag.replace("_", "-").lower().partition("-")[2]
    language = language_of(tag)
    return f"{language}-{rest}" if rest else language


def includes(wanted: str, tag: str) -> bool:
    """Whether a tag is `wanted` or a variant of it: `en` includes `en-GB`, `zh-Hant` `zh-Hant-TW`.

    Args:
        wanted: a normalized tag.
        tag: a normalized tag.
    """
    return tag == wanted or tag.startswith(f"{wanted}-")


def is_listed(tag: str) -> bool:
    """Whether the language of a tag is in the table."""
    return primary_subtag(tag) in _languages().by_code


def language_named(name: str) -> str | None:
    """Return the code of a language that is called `name` in English or by its speakers.

    Returns:
        None if the table has no such name.
    """
    return _languages().by_name.get(name.strip().casefold())


@cache
def _languages() -> _Languages:
    """Read language_codes.csv; the result is kept, so that it is read only once."""
    by_code: dict[str, str] = {}
    by_name: dict[str, str] = {}
    with _TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            code = row["code"]
            for equal_code in (code, *row["equal"].split()):
                by_code[equal_code] = code
            for name in (row["name"], row["own_name"]):
                if name:
                    by_name.setdefault(name.casefold(), code)
    return _Languages(by_code, by_name)
