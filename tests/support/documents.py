"""Documents cut from parallel sentences, with known faults, and how well they are aligned.

For tests and for benchmarks/align.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

import numpy as np

from bleuprint.corpus.alignment.align import Document
from bleuprint.corpus.alignment.lattice import Band, Bead

FAULTS = ("lost", "joined", "split")


def cut_into_documents(
    pairs: Sequence[tuple[str, str]], length: int, rate: float, seed: int
) -> tuple[list[Document], list[list[Bead]]]:
    """Cut parallel sentences into documents with faults.

    Args:
        pairs: The parallel sentences, in their order.
        length: The number of pairs of each document.
        rate: The share of pairs with one of FAULTS on a random side: the sentence is lost, joined
            with the next one, or split in its middle.
        seed: The seed of the faults.

    Returns:
        The documents, and the true beads of each.
    """
    random = Random(seed)
    documents = list[Document]()
    truth = list[list[Bead]]()
    for start in range(0, len(pairs), length):
        source_lines = list[str]()
        target_lines = list[str]()
        beads = list[Bead]()
        remaining = iter(pairs[start : start + length])
        for source, target in remaining:
            sides = [[source], [target]]
            if random.random() < rate:
                _damage(sides, random.choice(FAULTS), random.randrange(2), remaining)
            source_start = len(source_lines)
            target_start = len(target_lines)
            source_lines += sides[0]
            target_lines += sides[1]
            source_range = range(source_start, len(source_lines))
            target_range = range(target_start, len(target_lines))
            beads.append(Bead(source_range, target_range))
        documents.append(Document(source_lines, target_lines))
        truth.append(beads)
    return documents, truth


def _damage(
    sides: list[list[str]], fault: str, side: int, remaining: Iterator[tuple[str, str]]
) -> None:
    """Put a fault into one side of a pair.

    Args:
        sides: The sentences of both sides, one each, which are changed.
        fault: One of FAULTS.
        side: The side with the fault: 0 for the source, 1 for the target.
        remaining: The pairs that follow, of which a joined sentence takes one.
    """
    match fault:
        case "lost":
            sides[side] = []
        case "joined":
            following = next(remaining, None)
            if following is not None:
                for sentences, sentence in zip(sides, following, strict=True):
                    sentences.append(sentence)
                sides[side] = [" ".join(sides[side])]
        case "split":
            words = sides[side][0].split(" ")
            half = len(words) // 2
            parts = (words[:half], words[half:])
            sides[side] = [" ".join(part) for part in parts if part]


def full_band(rows: int, columns: int) -> Band:
    """Return the band that contains all cells of a lattice."""
    return Band(np.zeros(rows, np.int64), np.full(rows, columns))


def f1(truth: Iterable[Sequence[Bead]], alignments: Iterable[Sequence[Bead]]) -> float:
    """Return the harmonic mean of precision and recall of whole beads, from 0 to 1.

    Args:
        truth: The true beads of each document.
        alignments: The beads of an alignment of each document.
    """
    true_beads = _numbered(truth)
    aligned_beads = _numbered(alignments)
    return 2 * len(true_beads & aligned_beads) / (len(true_beads) + len(aligned_beads))


def _numbered(documents: Iterable[Sequence[Bead]]) -> set[tuple[int, Bead]]:
    """Return the beads of all documents, each with the number of its document."""
    numbered = set[tuple[int, Bead]]()
    for number, beads in enumerate(documents):
        for bead in beads:
            numbered.add((number, bead))
    return numbered
