"""The sentences of the phrasebook, split into train, valid and test."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bleuprint.corpus.phrasebook import english, french, german
from bleuprint.corpus.phrasebook.grammar import Writer
from bleuprint.runtime.files import whole_file

LANGUAGES = ("en", "de", "fr")
SPLITS = {"train": 14_000, "valid": 500, "test": 500}
SEED = 1729
LONGEST = 22  # English words
Triple = tuple[str, str, str]


def generate(split: str) -> tuple[Triple, ...]:
    """The sentences of a split, each in English, German and French."""
    if split not in SPLITS:
        raise ValueError(f"no split {split!r}: choose from {', '.join(SPLITS)}")
    return _corpus()[split]


def sentences(split: str, language: str) -> Iterator[str]:
    """The sentences of a split in one language; line by line, the languages translate each
    other."""
    rows = generate(split)
    if language not in LANGUAGES:
        raise ValueError(f"no language {language!r}: choose from {', '.join(LANGUAGES)}")
    column = LANGUAGES.index(language)
    return (row[column] for row in rows)


def write(split: str, language: str, path: Path) -> None:
    """Write a split in one language, a sentence a line."""
    lines = sentences(split, language)
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


@cache
def _corpus() -> dict[str, tuple[Triple, ...]]:
    """Every split, from one stream, so that all have one distribution.

    No sentence comes twice, in none of the languages.
    """
    writer = Writer(SEED)
    seen: tuple[set[str], ...] = (set(), set(), set())
    rows: list[Triple] = []
    while len(rows) < sum(SPLITS.values()):
        tree = writer.sentence()
        row = english.sentence(tree), german.sentence(tree), french.sentence(tree)
        pairs = tuple(zip(row, seen, strict=True))
        if 1 < row[0].count(" ") < LONGEST and all(text not in texts for text, texts in pairs):
            rows.append(row)
            for text, texts in pairs:
                texts.add(text)
    every = sum(SPLITS.values()) // SPLITS["valid"]
    train = tuple(row for place, row in enumerate(rows) if place % every > 1)
    return {"train": train, "valid": tuple(rows[::every]), "test": tuple(rows[1::every])}
