"""Tokenisation with sacremoses, spread over processes."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from bleuprint.characters import blank_unprinted, blank_white
from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.progress import track
from bleuprint.settings import Tokenize
from bleuprint.sieve import counted
from bleuprint.workers import chunks, map_chunks


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


def tokenize_folder(
    corpus: str,
    settings: Tokenize,
    before: TextFolder,
    tokens: Path,
    ledger_path: Path,
    workers: int,
) -> None:
    """Tokenise all sets; the same bytes for any number of `workers` (processes)."""
    ledger = Ledger("tokenize", corpus, ())
    prepare = partial(_Chunks, before.source, before.target, settings)
    with whole_folder(tokens) as unfinished:
        after = TextFolder(unfinished, before.source, before.target)
        for name in before.names():
            pairs = counted(before.pairs(name), name, ledger)
            done = _flat(map_chunks(prepare, chunks(pairs), workers))
            with after.writer(name) as writer:
                for pair in track(done, f"tokenize {corpus} {name}", before.count(name), "pairs"):
                    writer.write(pair)
        ledger.write(ledger_path)


def _flat(parts: Iterator[list[Pair]]) -> Iterator[Pair]:
    for part in parts:
        yield from part


class _Chunks:
    """Tokenises a chunk of pairs, in whichever process."""

    def __init__(self, source: str, target: str, settings: Tokenize) -> None:
        self._source, self._target = (
            Moses(language, settings.punctuation, settings.lowercase)
            for language in (source, target)
        )

    def __call__(self, pairs: list[Pair]) -> list[Pair]:
        return [
            Pair(" ".join(self._source.tokenize(source)), " ".join(self._target.tokenize(target)))
            for source, target in pairs
        ]
