"""Checks of the letters of a sentence, and the scripts (by Unicode's names) of languages.

The languages are those of py3langid, by its codes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar

import regex
from annotated_types import Interval

from bleuprint.rules.rule import SideCheck
from bleuprint.text.unicode import CharacterTable

_LANGUAGES = {
    "Arabic": "ar ary arz az fa kk ku ky pa ps sdh tg ug ur uz uzs",
    "Armenian": "hy",
    "Bengali": "as bn",
    "Bopomofo": "wuu yue zh",
    "Cyrillic": "az ba be bg bs crh kk ky mk mn ru sr tg tk tt uk uz",
    "Devanagari": "gom hi mr ne sa",
    "Ethiopic": "am",
    "Georgian": "ka",
    "Greek": "el grc",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    "Han": "ja ko wuu yue zh",
    "Hangul": "ko",
    "Hebrew": "hbo he",
    "Hiragana": "ja",
    "Kannada": "gom kn",
    "Katakana": "ja",
    "Khmer": "km",
    "Lao": "lo",
    "Latin": "ace af an az bcl br bs ca crh cs cy da de en eo es et eu ext fi fo fr fuv fy ga gcf "
    "gcr gd gl gom gug guw ha hr ht hu id ig is it jv kab kik kk ku la lb lg lij ln lt ltg lv mg "
    "ms mt nl nn no nso oc om pcm pl pt qu ro rw se sk sl sn so sq sr st sv sw tk tl tr tt uz vec "
    "vi vo wa xh yo zu",
    "Malayalam": "ml",
    "Mongolian": "mn",
    "Myanmar": "my",
    "Oriya": "or",
    "Sinhala": "si",
    "Tamil": "ta",
    "Telugu": "te",
    "Thai": "th",
    "Tibetan": "dz",
    "Tifinagh": "kab",
}


SCRIPTS = {
    language: tuple(script for script, used_by in _LANGUAGES.items() if language in used_by.split())
    for language in " ".join(_LANGUAGES.values()).split()
}

Share = Annotated[float, Interval(ge=0, le=1)]


@dataclass(frozen=True)
class AlphabetRatio(SideCheck):
    """Drops a pair with a side whose share of letters among its characters is less than `min`.

    Spaces and characters that do not print are not counted; letters of any script are, with their
    accents and vowel signs.
    """

    rank: ClassVar[int] = 60
    min: Share

    def passes(self, sentence: str, language: str) -> bool:  # noqa: ARG002
        return _share(_count(sentence, _LETTERS), _count(sentence, _PRINTED)) >= self.min


@dataclass(frozen=True)
class CharacterScore(SideCheck):
    """Drops a pair with a side whose share of letters in its language's scripts is less than `min`.

    A side without letters is kept.
    """

    rank: ClassVar[int] = 70
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    min: Share

    def passes(self, sentence: str, language: str) -> bool:
        own = _count(sentence, _letters_of(language))
        return _share(own, _count(sentence, _SCRIPTED)) >= self.min


def _share(part: int, whole: int) -> float:
    """`part / whole`; 1 of an empty whole."""
    return part / whole if whole else 1.0


def _count(sentence: str, letters: CharacterTable) -> int:
    """The number of characters of a sentence that a table does not remove."""
    return len(sentence.translate(letters))


def _picking(expression: str) -> CharacterTable:
    """A table that removes the characters that do not match an expression."""
    matches = regex.compile(expression).match
    return CharacterTable(lambda c: c if matches(c) else None)


_PRINTED = _picking(r"[^\s\p{Cc}\p{Cf}]")
_LETTERS = _picking(r"[\p{L}\p{M}]")
_SCRIPTED = _picking(r"(?=[\p{L}\p{M}])[^\p{scx=Common}\p{scx=Inherited}]")


@cache
def _letters_of(language: str) -> CharacterTable:
    # Script extensions: the long-vowel mark, for example, is of Katakana and of Hiragana.
    scripts = "".join(rf"\p{{scx={script}}}" for script in SCRIPTS[language])
    return _picking(rf"(?=[\p{{L}}\p{{M}}])[{scripts}]")
