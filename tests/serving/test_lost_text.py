"""Warnings of lost text, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bleuprint.serving.lost_text import TrainingLengths
from bleuprint.serving.translator import Piece, Translated, Translation

USUAL = TrainingLengths(longest=20, ratio=1.2)
TOO_LONG = "a sentence of 21 tokens, and the longest in training has 20: text may be missing"
SHORT = "{} tokens for a sentence of {}, less than half of what is usual: text may be missing"


def translated(*lengths: tuple[int, int], text: str = "text", beyond: int = 0) -> Translated:
    """Of pieces with so many tokens of source and output, EOS not counted."""
    pieces = [Piece([5] * source + [3], [5] * output) for source, output in lengths]
    return Translated([Translation(text, -1.0)], beyond, pieces)


@pytest.mark.parametrize(
    ("line", "warnings"),
    [
        (translated((20, 20)), []),
        (translated((10, 6)), []),  # half of 10 * 1.2
        (translated((10, 5)), [SHORT.format(5, 10)]),
        (translated((7, 1)), []),  # too short to tell
        (translated((10, 12), (10, 3), (9, 2)), [SHORT.format(3, 10)]),
        (translated((21, 25)), [TOO_LONG]),
        (translated((21, 2)), [TOO_LONG, SHORT.format(2, 21)]),
        (translated((3, 0), text=""), ["the translation is empty"]),
        (translated(text=""), []),  # of an empty line
        (
            translated((30, 40), (30, 40), beyond=29),
            ["a sentence is 29 tokens too long for the model: translated in pieces"],
        ),
    ],
)
def test_warnings_by_hand(line: Translated, warnings: list[str]) -> None:
    assert list(USUAL.warnings(line)) == warnings


def test_lengths_are_those_of_the_training_text() -> None:
    lengths = {"de": np.array([4, 6, 3]), "en": np.array([3, 4, 6])}  # with EOS
    side = {language: SimpleNamespace(lengths=of) for language, of in lengths.items()}
    corpus: Any = SimpleNamespace(
        source="de", target="en", side=lambda name, language: {"train": side}[name][language]
    )
    assert TrainingLengths.of(corpus) == TrainingLengths(longest=5, ratio=1.0)
