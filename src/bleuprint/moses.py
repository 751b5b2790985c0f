"""The Moses tokeniser and detokeniser, as sacremoses has them."""

from collections.abc import Sequence

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from bleuprint.characters import blank_unprinted, blank_white


class Moses:
    """The Moses tokeniser of one language, and its way back. Nothing is escaped."""

    def __init__(self, language: str, punctuation: bool, lowercase: bool) -> None:
        """`punctuation`: normalise it first; `lowercase`: do that before."""
        self._lowercase = lowercase
        self._normalizer = MosesPunctNormalizer(language) if punctuation else None
        self._tokenizer = MosesTokenizer(language)
        self._detokenizer = MosesDetokenizer(language)

    def tokenize(self, line: str) -> list[str]:
        """The tokens of a sentence; unprinted characters and all white space separate tokens."""
        if self._lowercase:
            line = line.lower()
        if self._normalizer is not None:
            # It has rules for no-break spaces, which therefore stay until it has run.
            line = self._normalizer.normalize(blank_unprinted(line))
        tokens: list[str] = self._tokenizer.tokenize(blank_white(line), escape=False)
        return tokens

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence that these tokens make; lower-cased and normalised text stays so."""
        sentence: str = self._detokenizer.detokenize(tokens, unescape=False)
        return sentence
