"""The tokenizers of the setting `tokenize`, and their detokenizers."""

import math
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Literal, Protocol

from bleuprint.text.segmenter import Segmenter, has_segmenter
from bleuprint.text.unicode import lowercase_text, replace_white_space

# The tokens of characters that are not their own tokens.
_TOKEN_OF = {" ": "▁", "▁": "▁▁"}
_CHARACTER_OF = {token: character for character, token in _TOKEN_OF.items()}
# The least and the most tokens of a sentence.
Bounds = tuple[int, float]
ANY: Bounds = 0, math.inf
# Bytes that end no token: ASCII letters, digits and spaces, and all but the first of a character.
_IN_WORDS = f"{string.ascii_letters}{string.digits} ".encode() + bytes(range(0x80, 0xC0))
_OPTION_OF = {"hyphens": "moses", "escape": "moses", "plain": "moses", "white_space": "spacy"}


@dataclass(frozen=True)
class Tokenize:
    """The tokenizer: Moses, spaCy, a segmenter of words for Japanese, Chinese and Thai (and Moses
    for the other language), characters, or none for text that is tokenized already.

    `lowercase` is applied first. `hyphens` (aggressive splitting, a @-@ b), `escape` (&apos; for ')
    and `plain` are options of Moses: with `plain` its tokens as they are, else addresses,
    placeholders, numbers and what it would not join again stay in one piece. `white_space`, an
    option of spaCy, keeps its tokens of white space.
    """

    name: Literal["moses", "spacy", "segmenter", "characters", "none"] = "moses"
    lowercase: bool = False
    hyphens: bool = False
    escape: bool = False
    white_space: bool = False
    plain: bool = False

    def __post_init__(self) -> None:
        for option, name in _OPTION_OF.items():
            if getattr(self, option) and self.name != name:
                raise ValueError(f"option {option} goes with {name}, not with {self.name}")
        # found without importing it, which takes seconds
        if self.name == "spacy" and find_spec("spacy") is None:
            raise ValueError(
                "name spacy: it is not installed: pip install -c constraints.txt -e '.[spacy]'"
            )


class Tokenizer(Protocol):
    """Splits a sentence into tokens and joins them again; no token contains white space."""

    def tokenize(self, sentence: str) -> list[str]:
        """The tokens of a sentence; `replace_white_space` is applied first."""

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens, with single spaces between words."""


@cache
def tokenizer_for(language: str, settings: Tokenize) -> Tokenizer:
    """The tokenizer of a language, one in each process."""
    tokenizer: Tokenizer
    match settings.name:
        case "moses":
            # imported here since sacremoses takes 0.3 s, and every command reads the settings
            from bleuprint.text.moses import Moses
            from bleuprint.text.round_trip import RoundTripMoses

            kind = Moses if settings.plain else RoundTripMoses
            tokenizer = kind(language, settings.hyphens, settings.escape)
        case "spacy":
            from bleuprint.text.spacy import Spacy

            tokenizer = Spacy(language, settings.white_space)
        case "segmenter":
            if not has_segmenter(language):
                return tokenizer_for(language, replace(settings, name="moses"))
            tokenizer = Segmenter(language)
        case "characters":
            tokenizer = Characters()
        case "none":
            tokenizer = Spaces()
    return Lowercased(tokenizer, language) if settings.lowercase else tokenizer


def tokenize_to_line(tokenizer: Tokenizer, sentence: str) -> str:
    """The tokens of a sentence separated by spaces; some tokenizers have a faster way."""
    by: Callable[[str], str] | None = getattr(tokenizer, "tokenize_to_line", None)
    return by(sentence) if by else " ".join(tokenizer.tokenize(sentence))


def token_bounds(sentence: str, settings: Tokenize) -> Bounds:
    """The least and the most tokens that a sentence may have, without tokenizing it.

    Moses splits at spaces, and before and after characters that are no letters or digits.
    """
    if settings.name != "moses" or not sentence.isprintable():
        return ANY
    words = len(sentence.split())
    return words, words + 2 * len(sentence.encode().translate(None, _IN_WORDS))


class Characters:
    """Each character (code point) is a token. A space becomes ▁, and a ▁ in the text ▁▁."""

    def tokenize(self, sentence: str) -> list[str]:
        text = " ".join(replace_white_space(sentence).split())
        return [_TOKEN_OF.get(character, character) for character in text]

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join("".join(_CHARACTER_OF.get(token, token) for token in tokens).split())


class Spaces:
    """Tokens are separated by white space: for text that is tokenized already."""

    def tokenize(self, sentence: str) -> list[str]:
        return replace_white_space(sentence).split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)


class Lowercased:
    """Another tokenizer, applied to lower-cased text."""

    def __init__(self, tokenizer: Tokenizer, language: str) -> None:
        self._tokenizer, self._language = tokenizer, language

    def tokenize(self, sentence: str) -> list[str]:
        return self._tokenizer.tokenize(lowercase_text(sentence, self._language))

    def tokenize_to_line(self, sentence: str) -> str:
        return tokenize_to_line(self._tokenizer, lowercase_text(sentence, self._language))

    def detokenize(self, tokens: Sequence[str]) -> str:
        return self._tokenizer.detokenize(tokens)
