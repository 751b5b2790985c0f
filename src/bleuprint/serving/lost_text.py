"""Warnings of translations in which text was probably lost, by the lengths in the training text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.serving.translator import Translated

# Shorter sentences, in tokens, have translations of any length.
_SHORT = 8
# Of the references of Multi30k's test sets 1 in 1,300 is shorter.
_SHARE = 0.5


@dataclass(frozen=True)
class TrainingLengths:
    """Of the training text: tokens of its longest source, and target tokens for a source token."""

    longest: int
    ratio: float

    @classmethod
    def of(cls, corpus: BinaryCorpus) -> Self:
        """Those of a corpus; EOS is not counted."""
        source, target = (
            corpus.side("train", language).lengths - 1
            for language in (corpus.source, corpus.target)
        )
        return cls(int(source.max()), float(target.sum() / source.sum()))

    def warnings(self, translated: Translated) -> Iterator[str]:
        """What is unusual about a line's translation, one sentence each."""
        lengths = [(len(piece.source) - 1, len(piece.tokens)) for piece in translated.pieces]
        longest = max((source for source, _ in lengths), default=0)
        if translated.beyond:
            yield (
                f"a sentence is {translated.beyond} tokens too long for the model: translated in "
                "pieces"
            )
        elif longest > self.longest:
            yield (
                f"a sentence of {longest} tokens, and the longest in training has {self.longest}: "
                "text may be missing"
            )
        if lengths and not translated.best[0].text:
            yield "the translation is empty"
            return
        for source, output in lengths:
            if source >= _SHORT and output < _SHARE * self.ratio * source:
                yield (
                    f"{output} tokens for a sentence of {source}, less than half of what is usual: "
                    "text may be missing"
                )
                return
