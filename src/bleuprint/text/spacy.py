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

# The visible signs by which tokens of white space are written. Control characters have Unicode's
# control pictures, which start at U+2400.
_WHITE_SPACE_SIGNS = {" ": "\u2420", "\u00a0": "\u237d"}
_FIRST_CONTROL_SIGN = 0x2400
_COMMON_SIGN = "\u2423"
_ONLY_WHITE_SPACE_SIGNS = re.compile("[\u2400-\u241f\u2420\u2423\u237d]+")


class Spacy:
    """The tokenizer of `spacy.blank(language)`, and a detokenizer for its tokens."""

    def __init__(self, language: str, keeps_white_space: bool = False) -> None:
        """Create spaCy's tokenizer of a language, and Moses' detokenizer.

        Args:
            language: The code of the language, such as `de`.
            keeps_white_space: Whether to keep spaCy's tokens of white space, such as the one for
                the second of two spaces. They are written as visible signs: ␠.

        Raises:
            UserError: spaCy does not know the language, or a package for it is not installed.
        """
        self._language = language
        self._keeps_white_space = keeps_white_space
        self._nlp = self._create_pipeline()
        self._detokenizer = Detokenizer(language)
        is_german = language == "de"
        self._split_inside_word = _SPLIT_INSIDE_GERMAN_WORD if is_german else _SPLIT_INSIDE_WORD

    def tokenize(self, sentence: str) -> list[str]:
        """Split a sentence into the tokens of spaCy.

        spaCy also returns tokens that consist of white space, such as the second of two spaces. If
        this tokenizer keeps them, they are written as visible signs. If not, white space becomes
        single spaces before spaCy gets the sentence, and tokens of white space are dropped.
        """
        stored_words = len(self._nlp.vocab.strings)
        if stored_words > _MAX_STORED_WORDS:
            # spaCy stores each word that it meets. A new pipeline frees this memory.
            self._nlp = self._create_pipeline()
        if self._keeps_white_space:
            return [_show_white_space(token.text) for token in self._nlp.tokenizer(sentence)]
        # The sentence cannot be tokenized word by word, since spaCy recognizes some abbreviations
        # across a space (German: v.Chr .). Only in Thai does it return single spaces as tokens.
        text = " ".join(replace_white_space(sentence).split())
        return [token.text for token in self._nlp.tokenizer(text) if not token.text.isspace()]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to the sentence that they probably come from.

        The tokens do not tell where the sentence had spaces. First, clitics (do n't) and words that
        spaCy splits at hyphens and slashes are joined. Then the rules of the Moses detokenizer
        decide about the other spaces. Tokens for white space are dropped.
        """
        words = []
        for token in tokens:
            is_white_space = _ONLY_WHITE_SPACE_SIGNS.fullmatch(token)
            if not is_white_space:
                # spaCy never writes the token @-@, so it is text of the sentence. Moses would read
                # it as a split hyphen, and gets the escaped form.
                words.append(LITERAL_HYPHEN_TOKEN if token == HYPHEN_TOKEN else token)
        text = _CLITIC.sub("", " ".join(words))
        text = self._split_inside_word.sub(r"\1", text)
        return self._detokenizer.detokenize(text.split(" "))

    def _create_pipeline(self) -> Any:
        """Create spaCy's pipeline of the language, which contains only the tokenizer.

        Raises:
            UserError: spaCy does not know the language, or a package for it is not installed.
        """
        try:
            import spacy

            nlp = spacy.blank(self._language)
        except ImportError as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"tokenize.name spacy, language {self._language!r}: {reason}. "
                "If spaCy itself is missing, install it: "
                "pip install -c constraints.txt -e '.[spacy]'"
            ) from None
        # The tokenizers of Chinese, Japanese and Thai have no regular expressions.
        has_expressions = hasattr(nlp.tokenizer, "suffix_search")
        if has_expressions:
            _make_linear(nlp.tokenizer)
        return nlp


def _make_linear(tokenizer: Any) -> None:
    """Replace two slow searches of spaCy's tokenizer by faster ones that find the same tokens.

    The time of spaCy's own searches grows with the square of a word's length, so that one very long
    word could take minutes. They are:

    - The search for suffixes, such as a comma at the end of a word. spaCy removes a suffix and
      searches again, each time in the whole word. The replacement searches only in the last
      characters, except in a word that ends in dots, since any number of dots is one suffix.
    - The expression for web addresses. It looks for a user name with a password, as in
      name:password@host. The replacement looks for a name only, which may contain a colon. It
      matches the same text with fewer attempts.
    """
    search_suffix = tokenizer.suffix_search

    def search_suffix_at_end(word: str) -> Any:
        """Search for a suffix in the last characters of a word, or in a word that ends in dots."""
        ends_in_dots = word.endswith("..")
        searched_text = word if ends_in_dots else word[-_MAX_SUFFIX_LENGTH:]
        return search_suffix(searched_text)

    tokenizer.suffix_search = search_suffix_at_end
    # spaCy stores the method `match` of a compiled expression; `__self__` is the expression.
    address_expression = tokenizer.url_match.__self__
    name_and_password = r"(?:\S+(?::\S*)?@)?"
    name_only = r"(?:\S+@)?"
    pattern = address_expression.pattern.replace(name_and_password, name_only)
    tokenizer.url_match = re.compile(pattern, address_expression.flags).match


def _show_white_space(token: str) -> str:
    """Write a token of white space with visible signs, such as ␠; other tokens stay."""
    if token.strip():
        return token
    return "".join(_white_space_sign(character) for character in token)


def _white_space_sign(character: str) -> str:
    """Return a visible sign for a white-space character, such as ␠ for a space.

    Unicode has a sign for each control character, such as ␉ for a tab, in the same order as the
    characters themselves. The space and the no-break space have their own signs in a table, and all
    other white space shares one sign.
    """
    if character in _WHITE_SPACE_SIGNS:
        return _WHITE_SPACE_SIGNS[character]
    is_control = character < " "
    return chr(_FIRST_CONTROL_SIGN + ord(character)) if is_control else _COMMON_SIGN
