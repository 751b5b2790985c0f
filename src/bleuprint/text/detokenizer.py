"""Moses' detokenizer with the marks of all scripts.

sacremoses decides where spaces stand; it knows ASCII punctuation and the quotes " ' „ “. It is
given Latin counterparts of the other marks, one character for each, by Unicode's data: ) for the
Arabic question mark, a danda or ”, ( for “ or «, ' for an apostrophe ’. Then its characters are
replaced by those of the tokens.
"""

import re
import unicodedata
from collections.abc import Sequence

import regex
from sacremoses import MosesDetokenizer

from bleuprint.text.segmenter import SPACE
from bleuprint.text.unicode import CharacterTable

# Apostrophes: typewriter, typographic, letter, full-width.
APOSTROPHES = "'’ʼ＇"
TO_APOSTROPHE = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))
# Languages whose words Moses splits at an apostrophe; in all but English after it (l' homme).
ELIDING = frozenset(("fr", "it", "ca", "ga"))
SPLIT_AT_APOSTROPHES = ELIDING | {"en"}
# Quotes that open or close, by their place in the sentence.
QUOTES = frozenset("\"'`„“”‚‘’«»‹›＇")

# A hyphen of aggressive splitting, a @-@ b; and the sign itself, where the sentence has it.
HYPHEN = "@-@"
LITERAL_HYPHEN = f"{SPACE}{HYPHEN}"

# Marks at the end of a word that are not Terminal_Punctuation: ellipses, Armenian ones that stand
# on the stressed vowel, signs of per cent.
_AFTER_A_WORD = frozenset("…‥՚՛՜՝՞՟٪‰‱")
_TERMINAL = regex.compile(r"\p{Terminal_Punctuation}")
_OPENING, _CLOSING, _IDEOGRAPHIC = "(", ")", "。"

# sacremoses knows the apostrophes of French and Italian; Moses' own tokenizer those of Catalan and
# Irish too. Its detokenizer lacks Catalan.
_DETOKENIZED_AS = {"ca": "it"}

# For Czech "a' - li" the library should return "a'-li", but raises a TypeError.
_CZECH_DASH = re.compile(rf"(?<=[{MosesDetokenizer.IsAlpha}]') ([-–]) (?=(?i:li(?: |$)|mail))")
_DIGITS = re.compile("[0-9]+")
CURRENCIES = frozenset(MosesDetokenizer.IsSc)
_DOTS = frozenset(".…")
# The spaces that French has before these marks and inside « » are left out by `joined`.
FRENCH_MARKS = frozenset("?!:;\\%»")
_UNSPACED = str.maketrans("?!:;\\%«»", ",,,,,,()")


def unmarked(token: str) -> str:
    """The token without the sign of a space.

    ␠، is a comma between spaces; po'␠ and ␠'tis keep the space after and before the apostrophe;
    ␠@-@ is a @-@ of the sentence, not a hyphen that was split.
    """
    mark = token.strip(SPACE)
    if len(token) != len(mark) + 1 or not mark:
        return token
    outer = mark[-1] if token[-1] == SPACE else mark[0]
    if token == LITERAL_HYPHEN:
        return mark
    alone = len(mark) == 1 and not (mark.isascii() or mark.isalnum())
    return mark if alone or (len(mark) > 1 and outer in APOSTROPHES) else token


def unsplit_hyphens(text: str) -> str:
    """`text` with the hyphens of aggressive splitting, a @-@ b, joined again."""
    return f" {text} ".replace(f" {HYPHEN} ", "-").strip(" ")


def join_czech_dashes(text: str) -> str:
    """Czech tokens without the spaces at which sacremoses fails."""
    return _CZECH_DASH.sub(r"\1", text)


class Detokenizer:
    """Sentences from the tokens of one language, without XML entities."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._library = MosesDetokenizer(_DETOKENIZED_AS.get(language, language))
        self._table = CharacterTable(_counterpart)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens."""
        return self._sentence(tokens, spaced=self._language == "fr")

    def joined(self, tokens: Sequence[str]) -> str:
        """The same without the spaces that French has before ? ! : ; % and inside « »."""
        return self._sentence(tokens, spaced=False)

    def _sentence(self, tokens: Sequence[str], spaced: bool) -> str:
        text = unsplit_hyphens(" ".join(tokens))
        if self._language == "cs":
            text = join_czech_dashes(text)
        words = text.split()
        latin = self._latin(words, spaced)
        sentence: str = self._library.detokenize(latin, unescape=False)
        if latin == words:
            return sentence
        characters = "".join(map(unmarked, words))
        if len(sentence.replace(" ", "")) != len(characters):  # of some rows of marks
            return " ".join(map(unmarked, words))
        of_words = iter(characters)
        return "".join(c if c == " " else next(of_words) for c in sentence)

    def _latin(self, words: list[str], spaced: bool) -> list[str]:
        """Words of the same lengths, which the library joins as those of this language."""
        quotes = self._quotes(words, spaced)
        before, latin = "", []
        for place, word in enumerate(words):
            after = words[place + 1] if place + 1 < len(words) else ""
            latin.append(quotes.get(word) or self._word(word, before, after, spaced))
            before = word
        return latin

    def _word(self, word: str, before: str, after: str, spaced: bool) -> str:
        if not word.isalnum():
            if any(map(str.isalnum, word)):
                return self._with_letters(word, before)
            if len(word) > 1:  # the tokenizer splits marks, unless they are to be as they are
                return word if _DOTS.issuperset(word) else "x" * len(unmarked(word))
            if word in CURRENCIES:  # before a number only: 5 € and
                return word if after[:1].isdecimal() else "x"
            if spaced:
                return word if word in "«»" else word.translate(self._table)
            word = word.translate(self._table)
            return word.translate(_UNSPACED) if self._language == "fr" else word
        if self._language == "cs" and _DIGITS.fullmatch(word):
            # the library joins every number to the word before it if the sentence ends in one
            return "x" * len(word)
        return word

    def _with_letters(self, word: str, before: str) -> str:
        """A word with an apostrophe: 's in English after a letter or digit, l' in French."""
        if self._language not in SPLIT_AT_APOSTROPHES:
            return word
        if (plain := unmarked(word)) != word:
            return "x" * len(plain)
        latin = word.translate(TO_APOSTROPHE)
        if self._language == "en" and latin[0] == "'" and not before[-1:].isalnum():
            return "x" * len(word)
        return latin

    def _quotes(self, words: list[str], spaced: bool) -> dict[str, str]:
        """Counterparts of the quotes of a sentence.

        „ opens, and “ then closes; otherwise those of a pair that stand first open, and one kind
        alone opens and closes by turns, as sacremoses has it for ".
        """
        found = [word for word in words if word in QUOTES]
        if not found:
            return {}
        quotes: dict[str, str] = {}
        for low, opening, closing in ("„“”", "‚‘’", " «»", " ‹›"):
            if low in found:
                quotes |= {low: _OPENING, opening: _CLOSING, closing: _CLOSING}
            elif opening in found and closing in found:
                first = found.index(opening) < found.index(closing)
                quotes[opening] = _OPENING if first else _CLOSING
                quotes[closing] = _CLOSING if first else _OPENING
            elif found.count(closing) > 1:
                quotes[closing] = '"'
        if "“" in found and "”" not in found and "„" not in found:
            quotes["“"] = '"'
        if not {"‘", "‚"}.intersection(found):
            quotes["’"] = quotes["＇"] = "'"
            if self._language in ELIDING and sum(map(APOSTROPHES.count, found)) == 1:
                quotes["'"] = quotes["’"] = quotes["＇"] = _CLOSING  # un po' di
        if spaced:
            quotes |= {"«": "«", "»": "»"}
        return quotes


def _counterpart(character: str) -> str:
    """What the library is given for a mark that is not ASCII."""
    category = unicodedata.category(character)
    if character.isascii() or category[0] != "P":
        return character
    if unicodedata.east_asian_width(character) in "FW":
        return _IDEOGRAPHIC
    if category in ("Ps", "Pi"):
        return _OPENING
    if category in ("Pe", "Pf") or character in _AFTER_A_WORD or _TERMINAL.match(character):
        return _CLOSING
    return character
