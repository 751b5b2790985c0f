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


@cache
def language_code(tag: str) -> str:
    """Return the code that this project uses for the language of a tag.

    Rules, tokenizers and metrics look up their languages by this code. ISO 639 has several codes
    for one language: German is `de`, `deu` and `ger`. All become `de`.

    Args:
        tag: A code of ISO 639 in upper or lower case, perhaps with a script or a region, such as
            `de-AT` or `zho_Hant`.

    Returns:
        The two-letter code of most languages. A code that the table does not list is returned in
        lower case, without script and region.
    """
    primary = primary_subtag(tag)
    return _languages().by_code.get(primary, primary)


def normalized_tag(tag: str) -> str:
    """Write a language tag in a normal form, in which equal tags are equal: `eng_GB` as `en-gb`.

    The normal form has lower-case letters, hyphens, and the language code that this project uses.
    """
    _, _, script_and_region = tag.replace("_", "-").lower().partition("-")
    language = language_code(tag)
    return f"{language}-{script_and_region}" if script_and_region else language


def includes_tag(wanted: str, tag: str) -> bool:
    """Return whether a language tag is the wanted one or a variant of it: `en` includes `en-gb`.

    Args:
        wanted: The tag that is wanted, as `normalized_tag` returns it.
        tag: Another tag in the same form.
    """
    is_variant = tag.startswith(f"{wanted}-")
    return tag == wanted or is_variant


def is_listed(tag: str) -> bool:
    """Return whether the language of a tag is in the table."""
    return primary_subtag(tag) in _languages().by_code


def code_of_language_name(name: str) -> str | None:
    """Return the code of a language by its name in English or in the language itself.

    Returns:
        Such as `de` for German and Deutsch; None if the table has no such name.
    """
    return _languages().by_name.get(name.strip().casefold())


@cache
def _languages() -> _Languages:
    """Read the codes and names of all languages from the table language_codes.csv.

    ISO 639 has several codes for one language, such as `de`, `deu` and `ger`. The column `code` has
    the one that this project uses, and the column `equal` the others. The result is cached, so that
    the file is read only once.
    """
    code_by_equal_code: dict[str, str] = {}
    code_by_name: dict[str, str] = {}
    with _TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            code = row["code"]
            code_by_equal_code[code] = code
            for equal_code in row["equal"].split():
                code_by_equal_code[equal_code] = code
            for name in (row["name"], row["own_name"]):
                # Some languages have no name of their own in the table. If two languages have the
                # same name, the first one keeps it.
                if name:
                    code_by_name.setdefault(name.casefold(), code)
    return _Languages(by_code=code_by_equal_code, by_name=code_by_name)
