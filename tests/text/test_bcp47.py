"""Language tags: known languages, scripts and regions are accepted, and others refused."""

import re

import pytest
from babel import Locale

from bleuprint.text.bcp47 import check_language_tag, with_usual_case

CLDR = Locale("en")


@pytest.mark.parametrize(
    "tag", ["de", "zh-Hant", "sr-Cyrl", "pt-BR", "zho_Hant", "zh-Hant-TW", "es-419", "de-1996"]
)
def test_tags_of_bcp_47_and_of_flores_are_accepted(tag):
    check_language_tag(tag)


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        pytest.param("xx", "'xx' is an unknown code. Write a code of ISO 639", id="language"),
        pytest.param("zh-Hnat", "'Hnat' is an unknown script. Write a code", id="script"),
        pytest.param("pt-QB", "'QB' is an unknown region. Write a code", id="region"),
        pytest.param("zh-hant", "is not a language tag. Write it as de, pt-BR", id="lower case"),
        pytest.param("English", "is not a language tag. Write it as de, pt-BR", id="name"),
        pytest.param("en-", "is not a language tag. Write it as de, pt-BR", id="empty part"),
    ],
)
def test_an_unknown_tag_is_refused_with_the_part_that_is_unknown(tag, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_language_tag(tag)


def test_all_scripts_and_countries_of_cldr_are_known():
    """CLDR, Unicode's data about languages, lists 200 scripts and 290 territories."""
    special_scripts = {"Qaag", "Zinh", "Zmth", "Zsye", "Zsym", "Zxxx", "Zyyy", "Zzzz"}
    for script in CLDR.scripts.keys() - special_scripts:
        check_language_tag(f"und-{script}")
    groups_of_countries = {"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"}
    for territory in CLDR.territories.keys() - groups_of_countries:
        check_language_tag(f"und-{territory}")


def test_all_languages_of_two_letters_in_cldr_are_known():
    for language in CLDR.languages:
        if len(language) == 2:
            check_language_tag(language)


@pytest.mark.parametrize(
    ("tag", "usual_tag"),
    [("ZH-hant", "zh-Hant"), ("pt-br", "pt-BR"), ("ZHO_HANT", "zho_Hant"), ("de", "de")],
)
def test_a_tag_is_written_in_the_usual_case(tag, usual_tag):
    assert with_usual_case(tag) == usual_tag
