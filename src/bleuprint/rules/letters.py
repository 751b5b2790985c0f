"""Checks of the letters of a sentence, and the scripts in which languages are written.

Scripts are named as in Unicode. The languages are py3langid's, by its codes.

Characters are counted by `str.translate` with a table that removes the other characters, which is
faster than a loop or an expression.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar

import regex
from annotated_types import Interval

from bleuprint.rules.rule import SideCheck
from bleuprint.text.unicode import CharacterTable

# The languages that use each script.
_LANGUAGES_BY_SCRIPT = {
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


def _scripts_by_language() -> dict[str, tuple[str, ...]]:
    """Return the scripts of each language, such as `{"sr": ("Cyrillic", "Latin")}` for Serbian.

    The table _LANGUAGES_BY_SCRIPT lists the languages of each script; this function inverts it.
    """
    scripts: dict[str, tuple[str, ...]] = {}
    for script, languages in _LANGUAGES_BY_SCRIPT.items():
        for language in languages.split():
            earlier_scripts = scripts.get(language, ())
            scripts[language] = (*earlier_scripts, script)
    return scripts


# The scripts of each language, by its code.
SCRIPTS = _scripts_by_language()

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
        """Return whether at least a share of `min` of the printed characters are letters."""
        letter_count = _count_characters(sentence, _LETTERS)
        printed_count = _count_characters(sentence, _PRINTED_CHARACTERS)
        return _share(letter_count, printed_count) >= self.min


@dataclass(frozen=True)
class CharacterScore(SideCheck):
    """Drops a pair with a side whose share of letters in its language's scripts is less than `min`.

    A side without letters is kept.
    """

    rank: ClassVar[int] = 70
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    min: Share

    def passes(self, sentence: str, language: str) -> bool:
        """Return whether enough letters of a sentence belong to the scripts of its language.

        Their share of all letters must be at least `min`. The scripts of Japanese, for example, are
        Han, Hiragana and Katakana.
        """
        count_in_scripts = _count_characters(sentence, _letters_of_language(language))
        letter_count = _count_characters(sentence, _LETTERS_WITH_SCRIPT)
        return _share(count_in_scripts, letter_count) >= self.min


def _share(part: int, total: int) -> float:
    """Return part / total; 1 if the total is 0, so that the sentence passes."""
    return part / total if total else 1.0


def _count_characters(sentence: str, table: CharacterTable) -> int:
    """Count the characters of a sentence that belong to a class, such as letters.

    `str.translate` removes the characters that do not belong to the class. This is faster than
    counting in a loop.

    Args:
        sentence: The sentence.
        table: The class, as a table for `translate`: it maps each character of the class to itself,
            and each other character to None, which removes it.
    """
    return len(sentence.translate(table))


def _table_of_matching(expression: str) -> CharacterTable:
    """Return a table with which `str.translate` keeps only the characters of a class.

    Args:
        expression: A regular expression that matches one character of the class.
    """
    pattern = regex.compile(expression)

    def keep_or_remove(character: str) -> str | None:
        """Return a character of the class itself, and None for any other, which removes it."""
        return character if pattern.match(character) else None

    return CharacterTable(keep_or_remove)


# Neither spaces nor control and format characters.
_PRINTED_CHARACTERS = _table_of_matching(r"[^\s\p{Cc}\p{Cf}]")
# Letters, and marks such as accents and vowel signs.
_LETTERS = _table_of_matching(r"[\p{L}\p{M}]")
# Letters and marks that belong to certain scripts, not to all of them.
_LETTERS_WITH_SCRIPT = _table_of_matching(
    r"(?=[\p{L}\p{M}])[^\p{scx=Common}\p{scx=Inherited}]",
)


@cache
def _letters_of_language(language: str) -> CharacterTable:
    """Return a table with which `str.translate` keeps only letters in the scripts of a language.

    Args:
        language: The code of the language, such as `ja`.
    """
    # Unicode's script extensions (scx) list all scripts of a character: the Japanese long-vowel
    # mark belongs to Katakana and Hiragana.
    scripts = "".join(rf"\p{{scx={script}}}" for script in SCRIPTS[language])
    # A character must meet two conditions: (?=...) requires a letter, or a mark such as an accent;
    # [...] requires one of the scripts.
    return _table_of_matching(rf"(?=[\p{{L}}\p{{M}}])[{scripts}]")
