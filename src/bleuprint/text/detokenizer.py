"""Moses' detokenizer for the punctuation of all scripts.

sacremoses decides between which tokens a sentence has spaces, but it knows only ASCII punctuation
and the quotes " ' „ “. So it is given stand-ins: each other mark is replaced by a Latin mark that
is spaced alike, according to Unicode's data. ( stands for “ or «, ) for the Arabic question mark, a
danda or ”, and ' for an apostrophe ’. A stand-in has as many characters as the word it stands for.
In the joined sentence, the original characters can therefore be put back one by one, between the
same spaces.
"""

import re
import unicodedata
from collections.abc import Sequence

import regex
from sacremoses import MosesDetokenizer

from bleuprint.text.segmenter import SPACE_SIGN
from bleuprint.text.unicode import CharacterTable

# Apostrophes: typewriter, typographic, letter, full-width.
APOSTROPHES = "'’ʼ＇"
TO_APOSTROPHE = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))
# Languages in which Moses splits a word after an apostrophe (l' homme). In English, it splits
# before one (dog 's).
ELIDING = frozenset(("fr", "it", "ca", "ga"))
SPLIT_AT_APOSTROPHES = ELIDING | {"en"}
# Quotes. Some of them open or close, depending on where they are in the sentence.
QUOTES = frozenset("\"'`„“”‚‘’«»‹›＇")

# A hyphen at which Moses has split a word: a @-@ b for a-b.
HYPHEN_TOKEN = "@-@"
# The same sign, if the sentence itself contains it.
LITERAL_HYPHEN_TOKEN = f"{SPACE_SIGN}{HYPHEN_TOKEN}"

# Marks at the end of a word that Unicode does not call Terminal_Punctuation: ellipses, Armenian
# marks above the stressed vowel, percent signs.
_MARKS_AFTER_WORD = frozenset("…‥՚՛՜՝՞՟٪‰‱")
_TERMINAL = regex.compile(r"\p{Terminal_Punctuation}")

# Stand-ins: for a mark before a word, for one after a word, and for one of East Asian width, which
# has no space on either side.
_OPENING = "("
_CLOSING = ")"
_IDEOGRAPHIC = "。"
# The stand-in for each character of a word that is to have a space on both sides.
_LETTER = "x"

# Moses' tokenizer knows the apostrophes of Catalan, but the detokenizer of sacremoses does not. It
# treats Italian as Catalan should be treated.
_DETOKENIZED_AS = {"ca": "it"}

# At a Czech "a' - li", sacremoses raises a TypeError instead of returning "a'-li".
_CZECH_DASH = re.compile(rf"(?<=[{MosesDetokenizer.IsAlpha}]') ([-–]) (?=(?i:li(?: |$)|mail))")
_DIGITS = re.compile("[0-9]+")
CURRENCIES = frozenset(MosesDetokenizer.IsSc)
_DOTS = frozenset(".…")
# French has a space before these marks, and inside « ».
FRENCH_MARKS = frozenset("?!:;\\%»")
# Stand-ins for these marks, before which the library puts no space.
_WITHOUT_FRENCH_SPACE = str.maketrans("?!:;\\%«»", ",,,,,,()")


def without_space_sign(token: str) -> str:
    """Return a token without the sign ␠ with which the round-trip tokenizer marks a space.

    ␠، is a comma between two spaces. po'␠ and ␠'tis have a space after and before the apostrophe.
    ␠@-@ is a @-@ of the sentence, and not a hyphen at which a word was split. Any other ␠ belongs
    to the sentence and stays.
    """
    unsigned = token.strip(SPACE_SIGN)
    has_one_sign = len(token) == len(unsigned) + 1
    if not has_one_sign or not unsigned:
        return token
    if token == LITERAL_HYPHEN_TOKEN:
        return unsigned
    is_mark = len(unsigned) == 1 and not unsigned.isascii() and not unsigned.isalnum()
    character_at_sign = unsigned[-1] if token[-1] == SPACE_SIGN else unsigned[0]
    is_word_with_apostrophe = len(unsigned) > 1 and character_at_sign in APOSTROPHES
    return unsigned if is_mark or is_word_with_apostrophe else token


def join_split_hyphens(text: str) -> str:
    """Join the words of a tokenized text that Moses has split at hyphens: a @-@ b to a-b."""
    # Spaces around the text, since a split hyphen may be its first or last token.
    return f" {text} ".replace(f" {HYPHEN_TOKEN} ", "-").strip(" ")


def join_czech_dashes(text: str) -> str:
    """Remove the spaces around dashes of a tokenized Czech text at which sacremoses fails."""
    return _CZECH_DASH.sub(r"\1", text)


class Detokenizer:
    """Joins the tokens of one language to sentences. The tokens contain no XML entities."""

    def __init__(self, language: str) -> None:
        """Create the library's detokenizer of a language."""
        self._language = language
        self._library = MosesDetokenizer(_DETOKENIZED_AS.get(language, language))
        self._stand_in_marks = CharacterTable(_stand_in_mark)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the sentence of some tokens."""
        return self._join(tokens, keeps_french_spaces=self._language == "fr")

    def join_without_french_spaces(self, tokens: Sequence[str]) -> str:
        """Return the sentence without the spaces that French has before ? ! : ; % and in « »."""
        return self._join(tokens, keeps_french_spaces=False)

    def _join(self, tokens: Sequence[str], keeps_french_spaces: bool) -> str:
        """Join tokens: let the library join their stand-ins, then put their characters back."""
        text = join_split_hyphens(" ".join(tokens))
        if self._language == "cs":
            text = join_czech_dashes(text)
        words = text.split()
        stand_ins = self._stand_ins(words, keeps_french_spaces)
        joined: str = self._library.detokenize(stand_ins, unescape=False)
        if stand_ins == words:
            return joined
        plain_words = list(map(without_space_sign, words))
        characters = "".join(plain_words)
        # For some sequences of marks, the library adds or removes characters. Then they cannot be
        # put back, and all words stay apart.
        if len(joined.replace(" ", "")) != len(characters):
            return " ".join(plain_words)
        return _put_back(characters, joined)

    def _stand_ins(self, words: list[str], keeps_french_spaces: bool) -> list[str]:
        """Return the stand-ins for the words of a sentence, each with the length of its word.

        A stand-in is a word or mark that the library knows and that it spaces as the language
        spaces the original.
        """
        quote_stand_ins = self._quote_stand_ins(words, keeps_french_spaces)
        stand_ins = []
        previous_word = ""
        next_words = [*words[1:], ""]
        # Without words, there is still one next word.
        for word, next_word in zip(words, next_words, strict=False):
            stand_in = quote_stand_ins.get(word)
            if stand_in is None:
                stand_in = self._stand_in(word, previous_word, next_word, keeps_french_spaces)
            stand_ins.append(stand_in)
            previous_word = word
        return stand_ins

    def _stand_in(
        self, word: str, previous_word: str, next_word: str, keeps_french_spaces: bool
    ) -> str:
        """Return the stand-in for a word that is not a quote of the sentence.

        A stand-in is a word or mark that the library knows and that it spaces as the language
        spaces the original. The letter x, repeated, has a space on both sides.

        Args:
            word: The word, perhaps with the sign of a space.
            previous_word: The word before it, empty at the beginning of the sentence.
            next_word: The word after it, empty at the end of the sentence.
            keeps_french_spaces: Whether French marks have their spaces.
        """
        if word.isalnum():
            # If a Czech sentence ends in a number, the library joins every number to the word
            # before it.
            is_czech_number = self._language == "cs" and _DIGITS.fullmatch(word)
            return _LETTER * len(word) if is_czech_number else word
        if any(character.isalnum() for character in word):
            return self._stand_in_for_apostrophe(word, previous_word)
        if len(word) > 1:
            # The tokenizer has split all marks apart, except those that are to stay together.
            return word if _DOTS.issuperset(word) else _LETTER * len(without_space_sign(word))
        if word in CURRENCIES:
            # The library joins a currency sign to the next word, which is right only before a
            # number: $ 5, but not in "5 € and".
            return word if next_word[:1].isdecimal() else _LETTER
        if keeps_french_spaces:
            return word if word in "«»" else word.translate(self._stand_in_marks)
        mark = word.translate(self._stand_in_marks)
        return mark.translate(_WITHOUT_FRENCH_SPACE) if self._language == "fr" else mark

    def _stand_in_for_apostrophe(self, word: str, previous_word: str) -> str:
        """Return the stand-in for a word with letters and marks, such as 's or l'.

        The library joins l' of French to the next word, and 's of English to the previous one, if
        that ends in a letter or digit.
        """
        if self._language not in SPLIT_AT_APOSTROPHES:
            return word
        plain_word = without_space_sign(word)
        if plain_word != word:
            # The sign says that a space belongs at the apostrophe.
            return _LETTER * len(plain_word)
        with_ascii_apostrophe = word.translate(TO_APOSTROPHE)
        is_clitic = with_ascii_apostrophe[0] == "'"
        if self._language == "en" and is_clitic and not previous_word[-1:].isalnum():
            return _LETTER * len(word)
        return with_ascii_apostrophe

    def _quote_stand_ins(self, words: list[str], keeps_french_spaces: bool) -> dict[str, str]:
        """Return the stand-ins for the quotes of a sentence, by which they open or close.

        After a low „, the quotes “ and ” close. Of a pair such as « and », the one that comes first
        in the sentence opens. A quote that occurs several times without its counterpart opens and
        closes by turns, as the library treats ". Later rules replace earlier ones.
        """
        quotes = [word for word in words if word in QUOTES]
        if not quotes:
            return {}
        stand_ins: dict[str, str] = {}
        # « and ‹ have no low form. Their place has a space, which never is a quote of the sentence.
        for low, left, right in ("„“”", "‚‘’", " «»", " ‹›"):
            if low in quotes:
                stand_ins[low] = _OPENING
                stand_ins[left] = _CLOSING
                stand_ins[right] = _CLOSING
            elif left in quotes and right in quotes:
                is_left_first = quotes.index(left) < quotes.index(right)
                stand_ins[left] = _OPENING if is_left_first else _CLOSING
                stand_ins[right] = _CLOSING if is_left_first else _OPENING
            elif quotes.count(right) > 1:
                stand_ins[right] = '"'
        if "“" in quotes and "”" not in quotes and "„" not in quotes:
            stand_ins["“"] = '"'
        if "‘" not in quotes and "‚" not in quotes:
            self._set_apostrophe_stand_ins(stand_ins, quotes)
        if keeps_french_spaces:
            stand_ins["«"] = "«"
            stand_ins["»"] = "»"
        return stand_ins

    def _set_apostrophe_stand_ins(self, stand_ins: dict[str, str], quotes: list[str]) -> None:
        """Set the stand-ins for apostrophes of a sentence without the quotes ‘ and ‚.

        Args:
            stand_ins: The stand-ins by quote, which are changed.
            quotes: The quotes and apostrophes of the sentence.
        """
        stand_ins["’"] = "'"
        stand_ins["＇"] = "'"
        apostrophe_count = sum(quote in APOSTROPHES for quote in quotes)
        if self._language in ELIDING and apostrophe_count == 1:
            # A single apostrophe ends a word, as in "un po' di".
            for apostrophe in ("'", "’", "＇"):
                stand_ins[apostrophe] = _CLOSING


def _put_back(characters: str, joined: str) -> str:
    """Replace the characters of a joined sentence, one by one, and keep its spaces.

    Args:
        characters: The original characters, without spaces.
        joined: The joined stand-ins, with as many characters that are not spaces.
    """
    originals = iter(characters)
    return "".join(" " if stand_in == " " else next(originals) for stand_in in joined)


def _stand_in_mark(character: str) -> str:
    """Return the stand-in for a mark that is not ASCII; other characters stay.

    Marks of East Asian width have no space on either side. Opening brackets and quotes (categories
    Ps, Pi) have one before them. Closing ones (Pe, Pf) and marks after a word have one after them.
    """
    category = unicodedata.category(character)
    is_punctuation = category[0] == "P"
    if character.isascii() or not is_punctuation:
        return character
    if unicodedata.east_asian_width(character) in "FW":
        return _IDEOGRAPHIC
    if category in ("Ps", "Pi"):
        return _OPENING
    is_after_word = character in _MARKS_AFTER_WORD or _TERMINAL.match(character)
    if category in ("Pe", "Pf") or is_after_word:
        return _CLOSING
    return character
