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
    """Remove the sign ␠ from a token on which the tokenizer has put it.

    The tokenizer marks a token with ␠ where the detokenizer would forget a space. There are three
    kinds of such tokens:

    - `␠،` is a mark, here a comma, alone between two spaces.
    - `po'␠` and `␠'tis` are words with a space after or before the apostrophe.
    - `␠@-@` is a `@-@` of the sentence, and not a hyphen at which a word was split.

    Any other ␠ belongs to the sentence and stays.
    """
    unmarked = token.strip(SPACE_SIGN)
    has_one_sign = len(token) == len(unmarked) + 1
    if not has_one_sign or not unmarked:
        return token
    if token == LITERAL_HYPHEN_TOKEN:
        return unmarked
    is_mark = len(unmarked) == 1 and not unmarked.isascii() and not unmarked.isalnum()
    character_at_sign = unmarked[-1] if token[-1] == SPACE_SIGN else unmarked[0]
    is_word_with_apostrophe = len(unmarked) > 1 and character_at_sign in APOSTROPHES
    return unmarked if is_mark or is_word_with_apostrophe else token


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
        """Join the tokens of a sentence, with the spaces that sacremoses would put.

        sacremoses does not know all marks. It joins stand-ins: other words and marks with the same
        number of characters. In the result, each character is then replaced by the original one.

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
        # For some sequences of marks, sacremoses adds or removes characters. Then they cannot be
        # put back, and all words stay apart.
        has_same_length = len(joined.replace(" ", "")) == len(characters)
        if not has_same_length:
            return " ".join(plain_words)
        return _replace_all_but_spaces(joined, characters)

    def _stand_ins(self, words: list[str], keeps_french_spaces: bool) -> list[str]:
        """Return what sacremoses gets in place of each word and mark of a sentence.

        sacremoses puts wrong spaces at marks that it does not know. So it gets a stand-in: a word
        or mark of the same length that it knows, and that has the spaces of the original.

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
        """Return what sacremoses gets in place of a word or mark, so that it puts the right spaces.

        The stand-in has as many characters as the word. It is the word itself if sacremoses treats
        it well, a mark with the same spaces, or the letter x, repeated, which has a space on both
        sides. Quotes are not treated here: their spaces depend on the other quotes.

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
            # The tokenizer has split all marks apart, except those that are to stay together.
            is_dots = _DOTS.issuperset(word)
            return word if is_dots else _LETTER * len(without_space_sign(word))
        if word in CURRENCIES:
            # sacremoses joins a currency sign to the next word, which is right only before a
            # number: $ 5, but not in "5 € and".
            is_before_number = next_word[:1].isdecimal()
            return word if is_before_number else _LETTER
        if keeps_french_spaces:
            return word if word in "«»" else word.translate(self._stand_in_marks)
        mark = word.translate(self._stand_in_marks)
        return mark.translate(_WITHOUT_FRENCH_SPACE) if self._language == "fr" else mark

    def _stand_in_for_apostrophe(self, word: str, previous_word: str) -> str:
        """Return what sacremoses gets in place of a word with letters and marks, such as 's or l'.

        sacremoses joins the French l' to the next word, and the English 's to the previous one. It
        knows only the ASCII apostrophe. Where it should leave a space, it gets the letter x, once
        for each character, instead of the word.

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
        begins_with_apostrophe = with_ascii_apostrophe[0] == "'"
        follows_word = previous_word[-1:].isalnum()
        if self._language == "en" and begins_with_apostrophe and not follows_word:
            return _LETTER * len(word)
        return with_ascii_apostrophe

    def _quote_stand_ins(self, words: list[str], keeps_french_spaces: bool) -> dict[str, str]:
        """Decide which quotes of a sentence open or close, and how sacremoses gets them.

        An opening quote is replaced by (, which is joined to the next word, and a closing one by ),
        which is joined to the word before it. After a low „, the quotes “ and ” close. Of a pair
        such as « and », the one that comes first in the sentence opens. A quote that occurs several
        times without its counterpart is replaced by ", which sacremoses lets open and close by
        turns.

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
        # The following rules are for special cases, and replace what the rules above say.
        if "“" in quotes and "”" not in quotes and "„" not in quotes:
            stand_ins["“"] = '"'
        if "‘" not in quotes and "‚" not in quotes:
            stand_ins.update(self._apostrophe_stand_ins(quotes))
        if keeps_french_spaces:
            stand_ins["«"] = "«"
            stand_ins["»"] = "»"
        return stand_ins

    def _apostrophe_stand_ins(self, quotes: list[str]) -> dict[str, str]:
        """Return what sacremoses gets in place of apostrophes that are tokens of their own.

        In French, Italian, Catalan and Irish, a single apostrophe ends a word, as in "un po' di",
        and is replaced by a closing bracket. Otherwise each becomes the ASCII apostrophe.

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
    return "".join(" " if old == " " else next(new_characters) for old in joined)


def _stand_in_mark(character: str) -> str:
    """Return an ASCII or East Asian mark with the same spaces as a mark that is not ASCII.

    sacremoses does not know other marks, so it gets this one instead. Marks of East Asian width
    have no space on either side. Opening brackets and quotes (Unicode's categories Ps, Pi) have a
    space before them. Closing ones (Pe, Pf) and marks after a word have a space after them.

    Returns:
        The mark. The character itself if it is ASCII, not punctuation, or punctuation of another
        kind.
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
