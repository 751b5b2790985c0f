"""The sentences of validation and test sets, which must not be in the training text.

The stages dedup and split look up the sides of each training pair in `HeldOutSentences`.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from bleuprint.text.unicode import comparison_key

HASH_BYTES = 16

# How sentences are compared: not at all, by all characters, or without case and punctuation.
Decontaminate = Literal["none", "exact", "normalized"]


def hash_text(text: str) -> bytes:
    """Return the 16-byte hash of a text. In practice, different texts have different hashes."""
    return blake2b(text.encode(), digest_size=HASH_BYTES).digest()


class HeldOutSentences:
    """The source and target sentences of held-out sets, to find them in the training text."""

    def __init__(self, decontaminate: Decontaminate) -> None:
        """Create an empty collection, to which sentences are added.

        Args:
            decontaminate: How sentences are compared: "exact" compares all characters, "normalized"
                ignores case and punctuation. With "none", no sentence is ever found.
        """
        self._decontaminate = decontaminate
        self._sources: set[str] = set()
        self._targets: set[str] = set()

    def add(self, pairs: Iterable[tuple[str | None, str | None]]) -> None:
        """Add sentences of a validation or test set.

        Args:
            pairs: The source and the target sentence of each pair. A side may be None, because test
                sets of other language pairs may share only one language with this corpus.
        """
        if self._decontaminate == "none":
            return
        for source, target in pairs:
            if source is not None:
                self._sources.add(self._key(source))
            if target is not None:
                self._targets.add(self._key(target))

    def find_sides(self, sources: Sequence[str], targets: Sequence[str]) -> bytes:
        """Find out which training pairs contain a sentence of a validation or test set.

        Args:
            sources: The source sentences of the training pairs.
            targets: Their target sentences.

        Returns:
            One byte per pair: 1 if its source is in these sets, 2 if only its target is, else 0.
        """
        is_empty = not self._sources and not self._targets
        if is_empty:
            return bytes(len(sources))  # A zero for each pair.
        sides = bytearray()
        for source, target in zip(sources, targets, strict=True):
            if self._key(source) in self._sources:
                sides.append(1)
            elif self._key(target) in self._targets:
                sides.append(2)
            else:
                sides.append(0)
        return bytes(sides)

    def _key(self, sentence: str) -> str:
        """Return the form of a sentence that is compared: unchanged, or normalized."""
        if self._decontaminate == "normalized":
            return comparison_key(sentence)
        return sentence
