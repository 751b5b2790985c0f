"""Language tags of BCP 47, such as de, pt-BR and zh-Hant: their form and their known parts.

A tag is a language, perhaps followed by a script (Hant), a region (BR) and variants (1996). FLORES
writes an underscore between the parts (zho_Hant), which is read as well.

The languages of a corpus are such tags. Names of files contain the whole tag. Rules, tokenizers and
metrics depend on the language alone, which `language_codes.language_code` returns.
"""

import re
from collections.abc import Iterable

from bleuprint.runtime.tag_pattern import LANGUAGE_TAG
from bleuprint.text.language_codes import (
    is_listed,
    language_code,
    normalized_tag,
    primary_subtag,
)

# The scripts of ISO 15924 and the regions of ISO 3166, by their codes. Source: Unicode CLDR 47.
_SCRIPT_CODES = (
    "Adlm Afak Aghb Ahom Arab Aran Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Blis Bopo Brah "
    "Brai Bugi Buhd Cakm Cans Cari Cham Cher Chrs Cirt Copt Cpmn Cprt Cyrl Cyrs Deva Diak Dogr "
    "Dsrt Dupl Egyd Egyh Egyp Elba Elym Ethi Gara Geok Geor Glag Gong Gonm Goth Gran Grek Gujr "
    "Gukh Guru Hanb Hang Hani Hano Hans Hant Hatr Hebr Hira Hluw Hmng Hmnp Hrkt Hung Inds Ital "
    "Jamo Java Jpan Jurc Kali Kana Kawi Khar Khmr Khoj Kits Knda Kore Kpel Krai Kthi Lana Laoo "
    "Latf Latg Latn Lepc Limb Lina Linb Lisu Loma Lyci Lydi Mahj Maka Mand Mani Marc Maya Medf "
    "Mend Merc Mero Mlym Modi Mong Moon Mroo Mtei Mult Mymr Nagm Nand Narb Nbat Newa Nkgb Nkoo "
    "Nshu Ogam Olck Onao Orkh Orya Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phlv Phnx Plrd "
    "Prti Rjng Rohg Roro Runr Samr Sara Sarb Saur Sgnw Shaw Shrd Sidd Sind Sinh Sogd Sogo Sora "
    "Soyo Sund Sunu Sylo Syrc Syre Syrj Syrn Tagb Takr Tale Talu Taml Tang Tavt Telu Teng Tfng "
    "Tglg Thaa Thai Tibt Tirh Tnsa Todr Toto Tutg Ugar Vaii Visp Vith Wara Wcho Wole Xpeo Xsux "
    "Yezi Yiii Zanb"
)
_REGION_CODES = (
    "AC AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ "
    "BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CP CQ CR CU CV CW CX CY CZ DE DG DJ "
    "DK DM DO DZ EA EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ "
    "GR GS GT GU GW GY HK HM HN HR HT HU IC ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI "
    "KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP "
    "MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM "
    "PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX "
    "SY SZ TA TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN "
    "VU WF WS XK YE YT ZA ZM ZW"
)
_SCRIPTS = frozenset(_SCRIPT_CODES.split())
_REGIONS = frozenset(_REGION_CODES.split())
# Two-letter codes that are in use although ISO 639 has withdrawn them: Serbo-Croatian.
_WITHDRAWN_LANGUAGES = frozenset({"sh"})
_TAG = re.compile(LANGUAGE_TAG)
_SCRIPT = re.compile("[A-Z][a-z]{3}")
_REGION = re.compile("[A-Z]{2}")
# Such as 419, Latin America.
_NUMERIC_REGION = re.compile("[0-9]{3}")
_SEPARATOR = re.compile("[-_]")


def check_language_tag(tag: str) -> None:
    """Check that a tag has the form of BCP 47, and that its language, script and region are known.

    Languages of three letters are not looked up: ISO 639-3 has almost 8,000 of them, and some, such
    as `qaa`, are reserved for private use.

    Args:
        tag: The tag, such as `zh-Hant`.

    Raises:
        ValueError: The tag has another form, or a part of it is unknown.
    """
    if not _TAG.fullmatch(tag):
        raise ValueError(
            f"{tag!r} is not a language tag. Write it as de, pt-BR, zh-Hant or zho_Hant"
        )
    language, *other_parts = _SEPARATOR.split(tag)
    is_two_letter_code = len(language) == 2
    if is_two_letter_code and not is_listed(language) and language not in _WITHDRAWN_LANGUAGES:
        raise ValueError(
            f"language {tag!r}: {language!r} is an unknown code. Write a code of ISO 639, or qaa "
            "for a language without one"
        )
    for part in other_parts:
        if _SCRIPT.fullmatch(part) and part not in _SCRIPTS:
            raise ValueError(
                f"language {tag!r}: {part!r} is an unknown script. Write a code of ISO 15924, such "
                "as Latn, Cyrl, Hans or Hant"
            )
        if _REGION.fullmatch(part) and part not in _REGIONS:
            raise ValueError(
                f"language {tag!r}: {part!r} is an unknown region. Write a code of ISO 3166, such "
                "as BR"
            )


def tags_of_language(name_ends: Iterable[str], wanted_tag: str) -> list[str]:
    """Choose from the ends of names, such as `de`, `eng_GB` and `ids`, those that name a language.

    Args:
        name_ends: The ends of the names of files or columns; many are not language tags.
        wanted_tag: The tag of the language, such as `en`.

    Returns:
        The ends that are equal to the wanted tag, as `eng` is to `en`. If there are none, all tags
        of its language, such as `en_GB`.
    """
    equal_tags = []
    other_tags = []
    for name_end in name_ends:
        if normalized_tag(name_end) == normalized_tag(wanted_tag):
            equal_tags.append(name_end)
        elif language_code(name_end) == language_code(wanted_tag) and _has_known_parts(name_end):
            other_tags.append(name_end)
    return equal_tags or other_tags


def _has_known_parts(name_end: str) -> bool:
    """Return whether the end of a name is a language with a known script, a known region, or both.

    Upper and lower case do not matter. Variants are refused, since many words look like one: the
    column `is_valid` is not in Icelandic.
    """
    tag = with_usual_case(name_end)
    if not _TAG.fullmatch(tag):
        return False
    for part in _SEPARATOR.split(tag)[1:]:
        is_known = part in _SCRIPTS or part in _REGIONS
        if not is_known and not _NUMERIC_REGION.fullmatch(part):
            return False
    return True


def with_usual_case(tag: str) -> str:
    """Write a tag with the usual upper and lower case: `zh-Hant` for `ZH-hant`.

    The separators of the tag stay.
    """
    parts = re.split("([-_])", tag)
    # Every second element is a separator.
    usual_parts = [primary_subtag(tag)]
    for part in parts[1:]:
        if len(part) == 4 and part.isalpha():
            usual_parts.append(part.capitalize())
        elif len(part) == 2 and part.isalpha():
            usual_parts.append(part.upper())
        else:
            usual_parts.append(part.lower())
    return "".join(usual_parts)
