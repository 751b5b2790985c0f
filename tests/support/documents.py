"""Documents cut from parallel sentences, with known faults, and how well they are aligned.

For tests and for benchmarks/align.py.
"""

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np

from bleuprint.corpus.alignment.align import Document
from bleuprint.corpus.alignment.lattice import Band, Bead

FAULTS = ("lost", "joined", "split")


def cut(
    pairs: Sequence[tuple[str, str]], length: int, rate: float, seed: int
) -> tuple[list[Document], list[list[Bead]]]:
    """Documents of about `length` pairs each, and their true beads.

    A share `rate` of the pairs has, on a side drawn at random, one of FAULTS: its sentence is lost,
    joined with the next one, or split in its middle.
    """
    random, documents, truth = Random(seed), [], []
    for start in range(0, len(pairs), length):
        document, beads = Document([], []), []
        rest = iter(pairs[start : start + length])
        for pair in rest:
            sides = [[sentence] for sentence in pair]
            if random.random() < rate:
                _damage(sides, random.choice(FAULTS), random.randrange(2), rest)
            starts = len(document.source), len(document.target)
            places = zip(starts, sides, strict=True)
            beads.append(Bead(*(range(first, first + len(side)) for first, side in places)))
            for lines, side in zip(document, sides, strict=True):
                lines += side
        documents.append(document)
        truth.append(beads)
    return documents, truth


def _damage(sides: list[list[str]], fault: str, side: int, rest: Iterable[tuple[str, str]]) -> None:
    match fault:
        case "lost":
            sides[side] = []
        case "joined":
            following = next(iter(rest), None)
            if following is not None:
                for lines, sentence in zip(sides, following, strict=True):
                    lines.append(sentence)
                sides[side] = [" ".join(sides[side])]
        case "split":
            words = sides[side][0].split(" ")
            half = len(words) // 2
            sides[side] = [" ".join(part) for part in (words[:half], words[half:]) if part]


def whole(rows: int, columns: int) -> Band:
    """The band of all cells."""
    return Band(np.zeros(rows, np.int64), np.full(rows, columns))


def f1(truth: Iterable[Sequence[Bead]], found: Iterable[Sequence[Bead]]) -> float:
    """The harmonic mean of precision and recall of whole beads, of any kind."""
    true, given = (
        {(n, b) for n, beads in enumerate(text) for b in beads} for text in (truth, found)
    )
    return 2 * len(true & given) / (len(true) + len(given))
