"""The tokenisers that a corpus may choose from, and how tokens become a sentence again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bleuprint.text.moses import Moses
from bleuprint.text.unicode import blank_white

# How characters that are not their own tokens are written, and how they are read again.
_WRITTEN = {" ": "▁", "▁": "▁▁"}
_READ = {token: character for character, token in _WRITTEN.items()}


@dataclass(frozen=True)
class Tokenize:
    """How sentences become tokens: by Moses, in characters, or (none) between spaces.

    `lowercase` comes first. `hyphens` (aggressive splitting, a @-@ b) and `escape` (&apos; for ')
    are Moses'.
    """

    name: Literal["moses", "characters", "none"]
    lowercase: bool
    hyphens: bool
    escape: bool

    def __post_init__(self) -> None:
        if self.name != "moses" and (self.hyphens or self.escape):
            raise ValueError(f"hyphens and escape go with moses, not with {self.name}")


class Tokenizer(Protocol):
    """Makes tokens of a sentence and a sentence of tokens; no token holds white space."""

    def tokenize(self, sentence: str) -> list[str]:
        """The tokens of a sentence; unprinted characters count as spaces."""

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence that these tokens make, single spaces between its words."""


def tokenizer_for(language: str, settings: Tokenize) -> Tokenizer:
    """What makes tokens of the sentences of a language."""
    tokenizer: Tokenizer
    match settings.name:
        case "moses":
            tokenizer = Moses(language, settings.hyphens, settings.escape)
        case "characters":
            tokenizer = Characters()
        case "none":
            tokenizer = Spaces()
    return Lowercased(tokenizer) if settings.lowercase else tokenizer


class Characters:
    """Each character (code point) is a token. A space is written ▁, and a ▁ in the text ▁▁."""

    def tokenize(self, sentence: str) -> list[str]:
        text = " ".join(blank_white(sentence).split())
        return [_WRITTEN.get(character, character) for character in text]

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join("".join(_READ.get(token, token) for token in tokens).split())


class Spaces:
    """Tokens are what stands between spaces: for text that has its tokens already."""

    def tokenize(self, sentence: str) -> list[str]:
        return blank_white(sentence).split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)


class Lowercased:
    """Another tokeniser, of text in lower case."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def tokenize(self, sentence: str) -> list[str]:
        return self._tokenizer.tokenize(sentence.lower())

    def detokenize(self, tokens: Sequence[str]) -> str:
        return self._tokenizer.detokenize(tokens)
