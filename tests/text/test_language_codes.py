"""Codes of languages are recognized: those of ISO 639, with countries and scripts, and names."""

import pytest
from babel.core import get_global

from bleuprint.rules.letters import SCRIPTS
from bleuprint.text.language_codes import (
    code_of_language_name,
    includes_tag,
    is_listed,
    language_code,
    normalized_tag,
)


@pytest.mark.parametrize(
    ("codes", "language"),
    [
        pytest.param(["de", "deu", "ger", "DE", "de-AT", "ger_CH"], "de", id="German"),
        pytest.param(["nl", "nld", "dut"], "nl", id="Dutch"),
        pytest.param(["zh", "zho", "chi", "cmn", "zh-Hant-TW"], "zh", id="Chinese"),
        pytest.param(["he", "heb", "iw"], "he", id="Hebrew"),
        pytest.param(["id", "ind", "in"], "id", id="Indonesian"),
        pytest.param(["yi", "yid", "ji"], "yi", id="Yiddish"),
        pytest.param(["no", "nor", "nb", "nob", "no-NO"], "no", id="Norwegian"),
        pytest.param(["nn", "nno"], "nn", id="Nynorsk"),
        pytest.param(["fa", "fas", "per"], "fa", id="Persian"),
        pytest.param(["ro", "ron", "rum", "mo"], "ro", id="Romanian"),
        pytest.param(["cs", "ces", "cze"], "cs", id="Czech"),
        pytest.param(["chr", "chr-US"], "chr", id="Cherokee"),
    ],
)
def test_all_codes_of_a_language_stand_for_its_shortest_code(codes, language):
    """A language has codes of two and three letters, old codes, and codes with a country."""
    for code in codes:
        assert language_code(code) == language


def test_codes_of_three_letters_stand_for_the_same_languages_as_in_cldr():
    """CLDR, the data of Unicode about languages, lists them as aliases of two-letter codes."""
    compared_count = 0
    for code, alias in get_global("language_aliases").items():
        if len(code) != 3 or len(alias) != 2:
            continue
        # Rules are defined for the codes in SCRIPTS, so these are not replaced.
        if not is_listed(code) or code in SCRIPTS:
            continue
        assert language_code(code) == language_code(alias), code
        compared_count += 1
    assert compared_count > 200


@pytest.mark.parametrize("code", SCRIPTS)
def test_a_language_that_the_rules_know_keeps_its_code(code):
    """SCRIPTS contains the alphabet of each language; another code would not be found in it."""
    assert language_code(code) == code
    assert is_listed(code)


@pytest.mark.parametrize(
    ("wanted_tag", "tag", "is_included"),
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
def test_a_language_tag_includes_tags_with_further_parts(wanted_tag, tag, is_included):
    """If a user asks for `en`, files in `en-GB` are used, but for `en-GB` not those in `en`."""
    assert includes_tag(normalized_tag(wanted_tag), normalized_tag(tag)) == is_included


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("German", "de", id="English name"),
        pytest.param("deutsch", "de", id="own name"),
        pytest.param(" Nederlands ", "nl", id="own name with spaces"),
        pytest.param("key", None, id="other word"),
    ],
)
def test_a_language_is_recognized_by_its_name(name, code):
    assert code_of_language_name(name) == code
