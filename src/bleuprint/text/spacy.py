"""spaCy's rule-based tokenizer, and a detokenizer for its tokens."""

import re
from collections.abc import Sequence
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.text.detokenizer import HYPHEN_TOKEN, LITERAL_HYPHEN_TOKEN, Detokenizer
from bleuprint.text.unicode import replace_white_space

# spaCy stores each distinct word. Above this number of them, its vocabulary is created again.
_MAX_STORED_WORDS = 500_000
# No suffix that spaCy splits off is longer than this, with the characters before it by which the
# suffix is recognized.
_MAX_SUFFIX_LENGTH = 30

# spaCy splits clitics off (do n't, dog 's). In most languages it splits words at hyphens and
# slashes. German keeps hyphens within words, so a hyphen on its own is a dash.
_CLITIC = re.compile(r"(?<=\w) (?=(?:n['’]t|['’](?:s|m|d|ll|re|ve))(?: |$))", re.IGNORECASE)
_SPLIT_INSIDE_WORD = re.compile(r"(?<=\w) ([-/]) (?=\w)")
_SPLIT_INSIDE_GERMAN_WORD = re.compile(r"(?<=\w) (/) (?=\w)")

# The pictures by which tokens of white space are written. Controls have Unicode's control pictures,
# which start at U+2400.
_PICTURES = {" ": "\u2420", "\u00a0": "\u237d"}
_FIRST_CONTROL_PICTURE = 0x2400
_OTHER_PICTURE = "\u2423"
_ONLY_PICTURES = re.compile("[\u2400-\u241f\u2420\u2423\u237d]+")


class Spacy:
    """The tokenizer of `spacy.blank(language)`, as a rule without its tokens of white space."""

    def __init__(self, language: str, white_space: bool = False) -> None:
        """Create spaCy's tokenizer of a language.

        Args:
            language: The code of the language.
            white_space: Whether tokens of white space are kept, such as the one for the second of
                two spaces. They are written as pictures: ␠.

        Raises:
            UserError: spaCy does not know the language, or a package for it is not installed.
        """
        self._language = language
        self._white_space = white_space
        self._nlp = self._create_pipeline()
        self._detokenizer = Detokenizer(language)
        is_german = language == "de"
        self._split_inside_word = _SPLIT_INSIDE_GERMAN_WORD if is_german else _SPLIT_INSIDE_WORD

    def tokenize(self, sentence: str) -> list[str]:
        """Return the tokens of a sentence."""
        if len(self._nlp.vocab.strings) > _MAX_STORED_WORDS:
            self._nlp = self._create_pipeline()
        if self._white_space:
            return [_draw_white_space(token.text) for token in self._nlp.tokenizer(sentence)]
        # The sentence is tokenized as a whole, since spaCy recognizes some abbreviations across a
        # space (German: v.Chr .). Single spaces are no tokens, except in Thai.
        text = " ".join(replace_white_space(sentence).split())
        return [token.text for token in self._nlp.tokenizer(text) if not token.text.isspace()]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the likely sentence of some tokens.

        Clitics, and words that spaCy splits at hyphens and slashes, are joined first. Then the
        rules of Moses apply.
        """
        words = []
        for token in tokens:
            if not _ONLY_PICTURES.fullmatch(token):
                words.append(LITERAL_HYPHEN_TOKEN if token == HYPHEN_TOKEN else token)
        text = _CLITIC.sub("", " ".join(words))
        text = self._split_inside_word.sub(r"\1", text)
        return self._detokenizer.detokenize(text.split(" "))

    def _create_pipeline(self) -> Any:
        """Create spaCy's pipeline of the language, which contains only the tokenizer."""
        try:
            import spacy

            nlp = spacy.blank(self._language)
        except ImportError as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"tokenize.name spacy, language {self._language!r}: {reason}; "
                "spaCy itself is installed by: pip install -c constraints.txt -e '.[spacy]'"
            ) from None
        # The tokenizers of Chinese, Japanese and Thai have no expressions.
        if hasattr(nlp.tokenizer, "suffix_search"):
            _make_linear(nlp.tokenizer)
        return nlp


def _make_linear(tokenizer: Any) -> None:
    """Replace two expressions of spaCy's tokenizer that take quadratic time for a long word.

    spaCy applies the expression for suffixes again and again. It gets only the end of a word,
    except of a word that ends in dots, of which any number is a suffix.

    The expression for addresses has a user name with a password, such as name:password@. A name
    alone matches the same text, and has one part less to try.
    """
    search_suffix = tokenizer.suffix_search

    def search_suffix_at_end(word: str) -> Any:
        """Search for a suffix in the last characters of a word."""
        ends_in_dots = word.endswith("..")
        return search_suffix(word if ends_in_dots else word[-_MAX_SUFFIX_LENGTH:])

    tokenizer.suffix_search = search_suffix_at_end
    address = tokenizer.url_match.__self__
    name_and_password = r"(?:\S+(?::\S*)?@)?"
    name = r"(?:\S+@)?"
    pattern = address.pattern.replace(name_and_password, name)
    tokenizer.url_match = re.compile(pattern, address.flags).match


def _draw_white_space(token: str) -> str:
    """Return the pictures of a token of white space; other tokens stay."""
    if token.strip():
        return token
    return "".join(_picture_of(character) for character in token)


def _picture_of(character: str) -> str:
    """Return the picture of a white-space character."""
    if character in _PICTURES:
        return _PICTURES[character]
    is_control = character < " "
    return chr(_FIRST_CONTROL_PICTURE + ord(character)) if is_control else _OTHER_PICTURE
