"""Language codes, against ISO 639 as written here and against CLDR's aliases as Babel has them."""

import pytest
from babel.core import get_global

from bleuprint.rules.letters import SCRIPTS
from bleuprint.text.language_codes import (
    code_of_language_name,
    includes,
    is_listed,
    language_code,
    normalized_tag,
)


@pytest.mark.parametrize(
    ("codes", "language"),
    [
        ("de deu ger DE de-AT ger_CH", "de"),
        ("nl nld dut", "nl"),
        ("zh zho chi cmn zh-Hant-TW", "zh"),
        ("he heb iw", "he"),
        ("id ind in", "id"),
        ("yi yid ji", "yi"),
        ("no nor nb nob no-NO", "no"),
        ("nn nno", "nn"),
        ("fa fas per", "fa"),
        ("ro ron rum mo", "ro"),
        ("cs ces cze", "cs"),
        ("chr chr-US", "chr"),
    ],
)
def test_codes_of_one_language_are_equal(codes, language):
    assert {language_code(code) for code in codes.split()} == {language}


def test_codes_agree_with_cldr():
    """Listed codes of three letters that CLDR has as aliases of a language with two."""
    compared = 0
    for code, alias in get_global("language_aliases").items():
        if len(code) == 3 and len(alias) == 2 and is_listed(code) and code not in SCRIPTS:
            assert language_code(code) == language_code(alias), code
            compared += 1
    assert compared > 200


def test_languages_that_the_rules_know_keep_their_codes():
    assert {language_code(code) for code in SCRIPTS} == {*SCRIPTS}
    assert all(map(is_listed, SCRIPTS))


@pytest.mark.parametrize(
    ("wanted", "tag", "is_included"),
    [
        ("en", "eng-GB", True),
        ("en-GB", "EN_gb", True),
        ("en-GB", "en", False),
        ("en-GB", "en-US", False),
        ("zh-Hant", "zho-Hant-TW", True),
        ("zh-Ha", "zh-Hant", False),
        ("sr-Latn", "sr-Cyrl", False),
    ],
)
def test_a_tag_includes_its_variants(wanted, tag, is_included):
    assert includes(normalized_tag(wanted), normalized_tag(tag)) == is_included


def test_names():
    assert [
        code_of_language_name(name) for name in ("German", "deutsch", " Nederlands ", "key")
    ] == [
        "de",
        "de",
        "nl",
        None,
    ]
