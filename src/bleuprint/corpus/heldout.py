"""Sentences of validation and test sets, which must not be in the training text."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from bleuprint.text.unicode import comparison_key

HASH_BYTES = 16

Decontaminate = Literal["none", "exact", "normalized"]


def hash_of(text: str) -> bytes:
    """A hash of 16 bytes: different texts have different hashes in practice."""
    return blake2b(text.encode(), digest_size=HASH_BYTES).digest()


class HeldOutSentences:
    """A set of sentences, compared exactly, or by `comparison_key` if normalized."""

    def __init__(self, decontaminate: Decontaminate) -> None:
        self._decontaminate = decontaminate
        self._sources: set[str] = set()
        self._targets: set[str] = set()

    def add(self, pairs: Iterable[tuple[str | None, str | None]]) -> None:
        """Add sentences of both sides; None where there is none."""
        if self._decontaminate == "none":
            return
        for source, target in pairs:
            if source is not None:
                self._sources.add(self._key(source))
            if target is not None:
                self._targets.add(self._key(target))

    def sides(self, sources: Sequence[str], targets: Sequence[str]) -> bytes:
        """For each pair 0 if neither of its sentences is in the set, 1 if the source is, else 2."""
        if not self._sources and not self._targets:
            return bytes(len(sources))
        keys = zip(map(self._key, sources), map(self._key, targets), strict=True)
        known, others = self._sources, self._targets
        return bytes(1 if key in known else 2 * (other in others) for key, other in keys)

    def _key(self, sentence: str) -> str:
        return comparison_key(sentence) if self._decontaminate == "normalized" else sentence
