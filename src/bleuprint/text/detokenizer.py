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
    """Remove the sign ␠ from a token on which the tokenizer has put it: `po'␠` becomes `po'`.

    By this sign, the tokenizer asks the detokenizer for a space that it would otherwise leave out.
    Only three kinds of tokens get the sign:

    - a mark that is not ASCII, such as the Arabic comma in `␠،`;
    - a word that begins or ends with an apostrophe: `␠'tis`, `po'␠`;
    - `␠@-@`, by which a `@-@` in the sentence differs from the token for a split hyphen.

    In any other token, ␠ was in the sentence itself and stays.
    """
    unmarked = token.strip(SPACE_SIGN)
    has_one_sign = len(token) == len(unmarked) + 1
    if not has_one_sign or unmarked == "":
        return token
    is_mark = len(unmarked) == 1 and not unmarked.isascii() and not unmarked.isalnum()
    character_at_sign = unmarked[-1] if token.endswith(SPACE_SIGN) else unmarked[0]
    is_word_with_apostrophe = len(unmarked) > 1 and character_at_sign in APOSTROPHES
    if token == LITERAL_HYPHEN_TOKEN or is_mark or is_word_with_apostrophe:
        return unmarked
    return token


def join_split_hyphens(text: str) -> str:
    """Join the words of a tokenized text that Moses has split at hyphens: a @-@ b to a-b."""
    # Spaces around the text, since a split hyphen may be its first or last token.
    return f" {text} ".replace(f" {HYPHEN_TOKEN} ", "-").strip(" ")


def join_czech_dashes(text: str) -> str:
    """Remove the spaces around dashes of a tokenized Czech text at which sacremoses fails."""
    return _CZECH_DASH.sub(r"\1", text)


class Detokenizer:
    """Joins the tokens of one language to sentences. The tokens contain no XML entities.

    sacremoses decides where the spaces are. It knows only ASCII marks and a few quotes, so it gets
    a stand-in for each word or mark that it would treat wrongly: another one, as long, that has the
    right spaces. Afterwards the original characters are put back.
    """

    def __init__(self, language: str) -> None:
        """Create the detokenizer of sacremoses for a language."""
        self._language = language
        self._sacremoses = MosesDetokenizer(_DETOKENIZED_AS.get(language, language))
        self._stand_in_marks = CharacterTable(_stand_in_mark)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the tokens of a sentence, with the spaces of its language."""
        return self._join(tokens, keeps_french_spaces=self._language == "fr")

    def join_without_french_spaces(self, tokens: Sequence[str]) -> str:
        """Return the sentence without the spaces that French has before ? ! : ; % and in « »."""
        return self._join(tokens, keeps_french_spaces=False)

    def _join(self, tokens: Sequence[str], keeps_french_spaces: bool) -> str:
        """Join the tokens of a sentence, with spaces where sacremoses, a detokenizer, puts them.

        sacremoses treats marks that it does not know as words. So it joins stand-ins: for each
        token another one of the same length, which it spaces as the original should be spaced. In
        the result, the original characters are put back: Er („ja!“) is joined as Er ((ja!)).

        Args:
            tokens: The tokens.
            keeps_french_spaces: Whether French has a space before ? ! : ; % and inside « ».
        """
        text = join_split_hyphens(" ".join(tokens))
        if self._language == "cs":
            text = join_czech_dashes(text)
        words = text.split()
        stand_ins = self._stand_ins(words, keeps_french_spaces)
        joined: str = self._sacremoses.detokenize(stand_ins, unescape=False)
        if stand_ins == words:
            return joined
        plain_words = list(map(without_space_sign, words))
        characters = "".join(plain_words)
        has_same_length = len(joined.replace(" ", "")) == len(characters)
        if has_same_length:
            return _replace_all_but_spaces(joined, characters)
        # For some sequences of marks, sacremoses adds or removes characters, so that the original
        # ones cannot be put back one by one.
        return " ".join(plain_words)

    def _stand_ins(self, words: list[str], keeps_french_spaces: bool) -> list[str]:
        """Return what sacremoses, the detokenizer, gets in place of each word and mark.

        sacremoses puts wrong spaces beside marks that it does not know. So it gets stand-ins:
        words and marks that it knows, of the same length and with the same spaces beside them. For
        example, it gets `Er ( ja ! )` for `Er „ ja ! “`.

        Args:
            words: The words and marks of the sentence.
            keeps_french_spaces: Whether French has a space before ? ! : ; % and inside « ».
        """
        quote_stand_ins = self._quote_stand_ins(words, keeps_french_spaces)
        stand_ins = []
        previous_word = ""
        for index, word in enumerate(words):
            stand_in = quote_stand_ins.get(word)
            if stand_in is None:
                is_last = index == len(words) - 1
                next_word = "" if is_last else words[index + 1]
                stand_in = self._stand_in(word, previous_word, next_word, keeps_french_spaces)
            stand_ins.append(stand_in)
            previous_word = word
        return stand_ins

    def _stand_in(
        self, word: str, previous_word: str, next_word: str, keeps_french_spaces: bool
    ) -> str:
        """Return what sacremoses, the detokenizer, gets in place of a word or mark.

        sacremoses puts the same spaces beside this stand-in as the original should have, and it has
        as many characters. It is one of three:

        - the word itself, if sacremoses treats it correctly;
        - another mark, such as a closing bracket for a closing quote;
        - as many letters x as the word has characters, which get a space on both sides.

        The quotes of a sentence depend on one another, and are not treated here.

        Args:
            word: The word or mark, perhaps marked with the sign ␠ where a space belongs.
            previous_word: The word before it, empty at the beginning of the sentence.
            next_word: The word after it, empty at the end of the sentence.
            keeps_french_spaces: Whether French has a space before ? ! : ; % and inside « ».
        """
        if word.isalnum():
            # If a Czech sentence ends in a number, sacremoses joins every number to the word
            # before it.
            is_czech_number = self._language == "cs" and _DIGITS.fullmatch(word)
            return _LETTER * len(word) if is_czech_number else word
        has_letter = any(character.isalnum() for character in word)
        if has_letter:
            return self._stand_in_for_apostrophe(word, previous_word)
        if len(word) > 1:
            # Marks that the tokenizer has kept together, such as :-), are a word of their own.
            is_dots = _DOTS.issuperset(word)
            return word if is_dots else _LETTER * len(without_space_sign(word))
        if word in CURRENCIES:
            # sacremoses joins a currency sign to the next word, which is right only before a
            # number: $ 5, but not in "5 € and".
            is_before_number = next_word[:1].isdecimal()
            return word if is_before_number else _LETTER
        if keeps_french_spaces and word in "«»":
            return word
        mark = word.translate(self._stand_in_marks)
        removes_french_spaces = self._language == "fr" and not keeps_french_spaces
        return mark.translate(_WITHOUT_FRENCH_SPACE) if removes_french_spaces else mark

    def _stand_in_for_apostrophe(self, word: str, previous_word: str) -> str:
        """Return what sacremoses, the detokenizer, gets for a word with marks, such as 's or l'.

        sacremoses joins the French l' to the next word, and the English 's to the previous one. It
        knows only the ASCII apostrophe, which therefore replaces all other apostrophes. A word that
        must keep its spaces is replaced by as many letters x as it has characters: xxxx for 'tis.

        Args:
            word: The word, perhaps marked with the sign ␠ where a space belongs.
            previous_word: The word before it, empty at the beginning of the sentence.
        """
        if self._language not in SPLIT_AT_APOSTROPHES:
            return word
        plain_word = without_space_sign(word)
        is_marked = plain_word != word
        if is_marked:
            return _LETTER * len(plain_word)
        with_ascii_apostrophe = word.translate(TO_APOSTROPHE)
        if self._language == "en" and with_ascii_apostrophe.startswith("'"):
            # Only after a word is it an ending such as 's. Elsewhere it is a word such as 'tis.
            follows_word = previous_word[-1:].isalnum()
            return with_ascii_apostrophe if follows_word else _LETTER * len(word)
        return with_ascii_apostrophe

    def _quote_stand_ins(self, words: list[str], keeps_french_spaces: bool) -> dict[str, str]:
        """Decide which quotes of a sentence open or close, and what sacremoses gets for each.

        sacremoses, the detokenizer, knows few quotes. An opening quote is replaced by (, which it
        joins to the next word, and a closing one by ), which it joins to the word before.
        Languages differ in which quote opens, so the sentence itself decides:

        - After a low „, the quotes “ and ” close.
        - Of a pair such as « and », the one that comes first in the sentence opens.
        - A quote that occurs several times without its counterpart is replaced by ", which
          sacremoses takes as opening and closing by turns.

        Args:
            words: The words and marks of the sentence.
            keeps_french_spaces: Whether French has a space inside « »; then « and » stay.

        Returns:
            The replacement of each quote. Quotes without one stay.
        """
        quotes = [word for word in words if word in QUOTES]
        if not quotes:
            return {}
        stand_ins: dict[str, str] = {}
        # The low form of a quote, the left and the right one. « and ‹ have no low form: in its
        # place is a space, which is never in the list of quotes.
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
        # Special cases, which overwrite the results of the loop.
        is_left_alone = "“" in quotes and "”" not in quotes and "„" not in quotes
        if is_left_alone:
            stand_ins["“"] = '"'
        # Without an opening ‘ or ‚, a ’ is an apostrophe and not a closing quote.
        has_opening_single_quote = "‘" in quotes or "‚" in quotes
        if not has_opening_single_quote:
            stand_ins.update(self._apostrophe_stand_ins(quotes))
        if keeps_french_spaces:
            stand_ins["«"] = "«"
            stand_ins["»"] = "»"
        return stand_ins

    def _apostrophe_stand_ins(self, quotes: list[str]) -> dict[str, str]:
        """Return what sacremoses, the detokenizer, gets for apostrophes that are separate tokens.

        In French, Italian, Catalan and Irish, a single apostrophe ends a word, as in "un po' di".
        It is replaced by a closing bracket, which is joined to the word before. In other languages,
        or if there are several, they may be quotes and become ASCII, which sacremoses knows.

        Args:
            quotes: The quotes and apostrophes of a sentence without the quotes ‘ and ‚.
        """
        apostrophe_count = sum(quote in APOSTROPHES for quote in quotes)
        if self._language in ELIDING and apostrophe_count == 1:
            return {"'": _CLOSING, "’": _CLOSING, "＇": _CLOSING}
        return {"’": "'", "＇": "'"}


def _replace_all_but_spaces(joined: str, characters: str) -> str:
    """Replace the characters of a sentence, one by one, and keep its spaces.

    Args:
        joined: The sentence, such as "Er (ja!)".
        characters: The new characters, as many as the sentence has without spaces, such as
            "Er„ja!“".

    Returns:
        Such as "Er „ja!“".
    """
    new_characters = iter(characters)
    return "".join(" " if character == " " else next(new_characters) for character in joined)


def _stand_in_mark(character: str) -> str:
    """Return a mark that sacremoses, the detokenizer, spaces as a given mark should be spaced.

    sacremoses does not know most marks outside ASCII. Unicode's data tell how they are spaced:

    - Marks of East Asian width have no space on either side. They become 。.
    - Opening brackets and quotes (categories Ps, Pi) have a space before them. They become (.
    - Closing ones (Pe, Pf) and marks after a word have a space after them. They become ).

    Any other character is returned unchanged.
    """
    category = unicodedata.category(character)
    is_punctuation = category[0] == "P"
    if character.isascii() or not is_punctuation:
        return character
    is_wide = unicodedata.east_asian_width(character) in "FW"
    if is_wide:
        return _IDEOGRAPHIC
    if category in ("Ps", "Pi"):
        return _OPENING
    is_after_word = character in _MARKS_AFTER_WORD or _TERMINAL.match(character)
    if category in ("Pe", "Pf") or is_after_word:
        return _CLOSING
    return character
