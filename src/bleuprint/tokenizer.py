"""Tokenising a corpus, spread over processes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bleuprint.characters import Form, normalise
from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.moses import Moses
from bleuprint.pairs import Pair, TextFolder
from bleuprint.progress import track
from bleuprint.settings import Tokenize
from bleuprint.sieve import counted
from bleuprint.workers import chunks, map_chunks


def tokenize_folder(
    corpus: str,
    settings: Tokenize,
    form: Form,
    before: TextFolder,
    tokens: Path,
    ledger_path: Path,
    workers: int,
) -> None:
    """Tokenise all sets; the same bytes for any number of `workers` (processes).

    Validation and test sets, which cleaning left alone, are brought to the same Unicode `form`
    as the training text first: it is what the model knows.
    """
    ledger = Ledger("tokenize", corpus, ())
    prepare = partial(_Chunks, before.source, before.target, settings, form)
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

    def __init__(self, source: str, target: str, settings: Tokenize, form: Form) -> None:
        self._form = form
        self._source, self._target = (
            Moses(language, settings.punctuation, settings.lowercase)
            for language in (source, target)
        )

    def __call__(self, pairs: list[Pair]) -> list[Pair]:
        return [
            Pair(self._tokens(self._source, source), self._tokens(self._target, target))
            for source, target in pairs
        ]

    def _tokens(self, moses: Moses, line: str) -> str:
        return " ".join(moses.tokenize(normalise(line, self._form)))
