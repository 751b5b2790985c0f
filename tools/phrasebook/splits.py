"""The sentences of the phrasebook, split into train, valid and test, and train with faults."""

from collections.abc import Iterator
from functools import cache

from tools.phrasebook import english, french, german
from tools.phrasebook.grammar import Writer
from tools.phrasebook.noise import Line, Triple, with_faults

LANGUAGES = ("en", "de", "fr")
SPLITS = {"train": 14_000, "valid": 500, "test": 500}
SEED = 1729
LONGEST = 22  # English words
# The name of the training text with faults.
NOISY = "noisy"


def generate(split: str) -> tuple[Triple, ...]:
    """The sentences of a split, each in English, German and French."""
    return _corpus()[split]


@cache
def noisy_lines() -> tuple[Line, ...]:
    """The training text with faults, line by line."""
    return with_faults(generate("train"), generate("test"))


def sentences(split: str, language: str) -> Iterator[str]:
    """The lines of a split, or of NOISY, in one language; lines of equal number are parallel."""
    column = LANGUAGES.index(language)
    rows = (line.text for line in noisy_lines()) if split == NOISY else generate(split)
    return (row[column] for row in rows)


@cache
def _corpus() -> dict[str, tuple[Triple, ...]]:
    """All splits, drawn from one stream; no sentence of a language occurs twice."""
    writer = Writer(SEED)
    seen: set[tuple[int, str]] = set()
    rows: list[Triple] = []
    while len(rows) < sum(SPLITS.values()):
        tree = writer.sentence()
        row = english.sentence(tree), german.sentence(tree), french.sentence(tree)
        texts = set(enumerate(row))
        if 1 < row[0].count(" ") < LONGEST and seen.isdisjoint(texts):
            rows.append(row)
            seen |= texts
    every = sum(SPLITS.values()) // SPLITS["valid"]
    train = tuple(row for place, row in enumerate(rows) if place % every > 1)
    return {"train": train, "valid": tuple(rows[::every]), "test": tuple(rows[1::every])}
