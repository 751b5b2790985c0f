"""The tokenizers that the setting `tokenize` offers, and their detokenizers.

`tokenizer_for` returns the tokenizer of a language. `Tokenizer` is the interface of all.
"""

import math
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Literal, Protocol

from bleuprint.text.language_codes import language_code
from bleuprint.text.segmenter import Segmenter, has_segmenter
from bleuprint.text.unicode import lowercase_text, replace_white_space

# The tokenizer `characters` writes a space as ▁, and doubles a ▁ of the text.
_TOKEN_BY_CHARACTER = {" ": "▁", "▁": "▁▁"}
_CHARACTER_BY_TOKEN = {token: character for character, token in _TOKEN_BY_CHARACTER.items()}
# The smallest and the largest number of tokens that a sentence may have.
TokenBounds = tuple[int, float]
NO_BOUNDS: TokenBounds = (0, math.inf)
# Moses never splits a word at these bytes: ASCII letters, digits and spaces, and the bytes of UTF-8
# that continue a character.
_BYTES_WITHOUT_SPLIT = f"{string.ascii_letters}{string.digits} ".encode() + bytes(range(0x80, 0xC0))
# The tokenizer that each option belongs to.
_TOKENIZER_BY_OPTION = {
    "hyphens": "moses",
    "escape": "moses",
    "plain": "moses",
    "white_space": "spacy",
}


@dataclass(frozen=True)
class Tokenize:
    """The settings of a tokenizer.

    Attributes:
        name: The tokenizer. `segmenter` finds the words of Japanese, Chinese and Thai, and uses
            Moses for the other language. `none` is for text that is already tokenized.
        lowercase: Whether text is lower-cased first.
        hyphens: An option of Moses: split words at hyphens, a-b into a @-@ b.
        escape: An option of Moses: write &apos; for ', and other XML entities.
        white_space: An option of spaCy: keep its tokens of white space.
        plain: An option of Moses: use the tokens of Moses unchanged. Otherwise addresses,
            placeholders, numbers, and what Moses would not join again stay in one piece.
    """

    name: Literal["moses", "spacy", "segmenter", "characters", "none"] = "moses"
    lowercase: bool = False
    hyphens: bool = False
    escape: bool = False
    white_space: bool = False
    plain: bool = False

    def __post_init__(self) -> None:
        """Check that each option belongs to the tokenizer, and that spaCy is installed if used.

        Raises:
            ValueError: An option belongs to another tokenizer, or spaCy is missing.
        """
        for option, tokenizer_name in _TOKENIZER_BY_OPTION.items():
            if getattr(self, option) and self.name != tokenizer_name:
                raise ValueError(
                    f"option {option} belongs to {tokenizer_name}, not to {self.name}. Remove it, "
                    "or change the name"
                )
        # Importing spaCy takes seconds; finding it does not.
        if self.name == "spacy" and find_spec("spacy") is None:
            raise ValueError(
                "spaCy is not installed. Install it: pip install -c constraints.txt -e '.[spacy]'"
            )


class Tokenizer(Protocol):
    """Splits a sentence into tokens, and joins them again. No token contains white space."""

    def tokenize(self, sentence: str) -> list[str]:
        """Split a sentence into tokens. All kinds of white space count as a space."""

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to a sentence, with single spaces between words."""


@cache
def tokenizer_for(language: str, settings: Tokenize) -> Tokenizer:
    """Return the tokenizer for a language, as the settings of a corpus choose it.

    Each process creates it only once. The libraries are imported inside the function, since that
    may take seconds and every command imports this module.

    Args:
        language: The language, perhaps with a script or a region, such as `de` or `zh-Hant`.
        settings: The setting `tokenize` of the corpus.
    """
    language = language_code(language)
    tokenizer: Tokenizer
    match settings.name:
        case "moses":
            from bleuprint.text.moses import Moses
            from bleuprint.text.round_trip import RoundTripMoses

            moses_class = Moses if settings.plain else RoundTripMoses
            tokenizer = moses_class(language, settings.hyphens, settings.escape)
        case "spacy":
            from bleuprint.text.spacy import Spacy

            tokenizer = Spacy(language, settings.white_space)
        case "segmenter":
            # Segmenters are for Japanese, Chinese and Thai. The other language of the corpus has
            # spaces between words, and is tokenized by Moses.
            if not has_segmenter(language):
                return tokenizer_for(language, replace(settings, name="moses"))
            tokenizer = Segmenter(language)
        case "characters":
            tokenizer = Characters()
        case "none":
            tokenizer = Spaces()
    return Lowercased(tokenizer, language) if settings.lowercase else tokenizer


def tokenize_to_line(tokenizer: Tokenizer, sentence: str) -> str:
    """Return the tokens of a sentence as one text, separated by spaces.

    Some tokenizers have a method of this name, which is faster than joining their tokens.

    Args:
        tokenizer: The tokenizer.
        sentence: The sentence.
    """
    fast_method: Callable[[str], str] | None = getattr(tokenizer, "tokenize_to_line", None)
    if fast_method is not None:
        return fast_method(sentence)
    return " ".join(tokenizer.tokenize(sentence))


def token_bounds(sentence: str, settings: Tokenize) -> TokenBounds:
    """Return the minimum and maximum number of tokens of a sentence, without tokenizing it.

    Tokenizing takes long. A filter for long sentences first looks at these bounds, which show for
    most sentences that they are short enough. Moses splits a sentence at spaces, and may also split
    before and after a character that is not a letter or digit. For other tokenizers, the bounds are
    0 and infinity.

    Args:
        sentence: The sentence.
        settings: The setting `tokenize` of a corpus.
    """
    # Characters that do not print are replaced before the tokenizer splits at spaces.
    if settings.name != "moses" or not sentence.isprintable():
        return NO_BOUNDS
    word_count = len(sentence.split())
    # Counting bytes is fast. A character at which a word may be split has at least one byte that is
    # not deleted, so there are at most as many such characters as remaining bytes.
    bytes_with_split = sentence.encode().translate(None, delete=_BYTES_WITHOUT_SPLIT)
    # Each split, before or after such a character, makes one more token.
    return word_count, word_count + 2 * len(bytes_with_split)


class Characters:
    """Makes a token of each character (code point). A space becomes ▁, and a ▁ becomes ▁▁."""

    def tokenize(self, sentence: str) -> list[str]:
        """Split a sentence into its characters, after each white space became a single space."""
        text = " ".join(replace_white_space(sentence).split())
        return [_TOKEN_BY_CHARACTER.get(character, character) for character in text]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join characters to a sentence."""
        text = "".join(_CHARACTER_BY_TOKEN.get(token, token) for token in tokens)
        return " ".join(text.split())


class Spaces:
    """Splits text that is already tokenized, at its white space."""

    def tokenize(self, sentence: str) -> list[str]:
        """Return the words between white space."""
        return replace_white_space(sentence).split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the tokens separated by spaces."""
        return " ".join(tokens)


class Lowercased:
    """Applies another tokenizer to lower-cased text."""

    def __init__(self, tokenizer: Tokenizer, language: str) -> None:
        """Wrap a tokenizer of a language, whose casing applies."""
        self._tokenizer = tokenizer
        self._language = language

    def tokenize(self, sentence: str) -> list[str]:
        """Return the tokens of the lower-cased sentence."""
        return self._tokenizer.tokenize(lowercase_text(sentence, self._language))

    def tokenize_to_line(self, sentence: str) -> str:
        """Return the tokens of the lower-cased sentence, separated by spaces."""
        return tokenize_to_line(self._tokenizer, lowercase_text(sentence, self._language))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to a sentence, which is in lower case as they are."""
        return self._tokenizer.detokenize(tokens)
