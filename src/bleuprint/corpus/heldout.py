"""Sentences of validation and test sets, which must not be in the training text."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

from bleuprint.text.parallel import Pair
from bleuprint.text.unicode import comparable

HASH_BYTES = 16

Decontaminate = Literal["none", "exact", "normalized"]


def hash_of(text: str) -> bytes:
    """A hash of 16 bytes: different texts have different hashes in practice."""
    return blake2b(text.encode(), digest_size=HASH_BYTES).digest()


class HeldOutSentences:
    """A set of sentences, compared exactly, or by `comparable` if normalized."""

    def __init__(self, decontaminate: Decontaminate) -> None:
        self._decontaminate = decontaminate
        self._sources: set[bytes] = set()
        self._targets: set[bytes] = set()

    def add(self, pairs: Iterable[Pair]) -> None:
        if self._decontaminate == "none":
            return
        for pair in pairs:
            self._sources.add(self._key(pair.source))
            self._targets.add(self._key(pair.target))

    def side(self, pair: Pair) -> int:
        """0 if neither sentence of a pair is in the set, 1 if the source is, else 2."""
        if not self._sources:
            return 0
        if self._key(pair.source) in self._sources:
            return 1
        return 2 if self._key(pair.target) in self._targets else 0

    def _key(self, sentence: str) -> bytes:
        return hash_of(comparable(sentence) if self._decontaminate == "normalized" else sentence)
