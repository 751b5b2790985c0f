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
        """Start without sentences.

        Args:
            decontaminate: How sentences are compared. With "none", no sentence is ever found.
        """
        self._decontaminate = decontaminate
        self._sources: set[str] = set()
        self._targets: set[str] = set()

    def add(self, pairs: Iterable[tuple[str | None, str | None]]) -> None:
        """Add held-out sentences.

        Args:
            pairs: The source and the target of each pair. None stands for a side that is missing,
                as in a held-out set of another language pair.
        """
        if self._decontaminate == "none":
            return
        for source, target in pairs:
            if source is not None:
                self._sources.add(self._key(source))
            if target is not None:
                self._targets.add(self._key(target))

    def find_sides(self, sources: Sequence[str], targets: Sequence[str]) -> bytes:
        """Find out which side of each pair is a held-out sentence.

        Args:
            sources: The source sentences of the pairs.
            targets: The target sentences of the pairs.

        Returns:
            One byte per pair: 1 if its source is held out, otherwise 2 if its target is held out,
            otherwise 0.
        """
        if not self._sources and not self._targets:
            return bytes(len(sources))
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
        """Return the form of a sentence in which it is compared."""
        return comparison_key(sentence) if self._decontaminate == "normalized" else sentence
