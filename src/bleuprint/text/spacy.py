"""spaCy's rule-based tokenizer, and a detokenizer for its tokens."""

import re
from collections.abc import Sequence
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.text.detokenizer import HYPHEN, LITERAL_HYPHEN, Detokenizer
from bleuprint.text.unicode import replace_white_space

# spaCy stores each distinct word; above this number, its vocabulary is created again.
_MAX_STRINGS = 500_000

# Characters, longer than which no suffix is, with what it is recognized by.
_SUFFIX = 30

# spaCy splits clitics off (do n't, dog 's), and in most languages at hyphens and slashes between
# words. German keeps hyphens, so that one on its own is a dash.
_CLITIC = re.compile(r"(?<=\w) (?=(?:n['’]t|['’](?:s|m|d|ll|re|ve))(?: |$))", re.IGNORECASE)
_INFIX = re.compile(r"(?<=\w) ([-/]) (?=\w)")
_GERMAN_INFIX = re.compile(r"(?<=\w) (/) (?=\w)")


# How tokens of white space are written; other control characters by Unicode's control pictures.
_PICTURES = {" ": "\u2420", "\u00a0": "\u237d"}
_OTHER_PICTURE = "\u2423"
_PICTURED = re.compile("[\u2400-\u241f\u2420\u2423\u237d]+")


class Spacy:
    """The tokenizer of `spacy.blank(language)`: its tokens but for those of white space.

    With `white_space` these are kept, written as pictures: \u2420 for the second of two spaces.
    Raises UserError if spaCy does not know the language, or a package for it is not installed.
    """

    def __init__(self, language: str, white_space: bool = False) -> None:
        self._language = language
        self._white_space = white_space
        self._nlp = self._blank()
        self._detokenizer = Detokenizer(language)
        self._infix = _GERMAN_INFIX if language == "de" else _INFIX

    def tokenize(self, sentence: str) -> list[str]:
        if len(self._nlp.vocab.strings) > _MAX_STRINGS:
            self._nlp = self._blank()
        if self._white_space:
            return [_visible(token.text) for token in self._nlp.tokenizer(sentence)]
        # as a whole: some abbreviations are recognized across a space (German: v.Chr .)
        tokens = self._nlp.tokenizer(" ".join(replace_white_space(sentence).split()))
        return [token.text for token in tokens if not token.text.isspace()]  # as of Thai

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The likely sentence: Moses' rules, after clitics, hyphens and slashes are joined."""
        words = []
        for token in tokens:
            if not _PICTURED.fullmatch(token):
                words.append(LITERAL_HYPHEN if token == HYPHEN else token)
        text = _CLITIC.sub("", " ".join(words))
        return self._detokenizer.detokenize(self._infix.sub(r"\1", text).split(" "))

    def _blank(self) -> Any:
        try:
            import spacy

            nlp = spacy.blank(self._language)
        except ImportError as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"tokenize.name spacy, language {self._language!r}: {reason}; "
                "spaCy itself is installed by: pip install -c constraints.txt -e '.[spacy]'"
            ) from None
        if hasattr(nlp.tokenizer, "suffix_search"):  # those of Chinese, Japanese and Thai have none
            _make_linear(nlp.tokenizer)
        return nlp


def _make_linear(tokenizer: Any) -> None:
    """Make two expressions, which spaCy tries on a word again and again, fast on long words.

    Suffixes are short, but for rows of dots. The user's name in an address may have a password in
    spaCy's expression, which is a name as well.
    """
    suffix, address = tokenizer.suffix_search, tokenizer.url_match.__self__
    tokenizer.suffix_search = lambda word: suffix(word if word[-2:] == ".." else word[-_SUFFIX:])
    name_and_password, name = r"(?:\S+(?::\S*)?@)?", r"(?:\S+@)?"
    expression = address.pattern.replace(name_and_password, name)
    tokenizer.url_match = re.compile(expression, address.flags).match


def _visible(token: str) -> str:
    """The token, or a picture of each character if it is of white space."""
    return token if token.strip() else "".join(map(_picture, token))


def _picture(character: str) -> str:
    control = chr(0x2400 + ord(character)) if character < " " else _OTHER_PICTURE
    return _PICTURES.get(character, control)
