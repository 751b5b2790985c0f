"""Faults of crawled text in known lines of the phrasebook's training text.

A line has the same fault between any two languages.
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

# A sentence in English, German and French.
Triple = tuple[str, str, str]

# The number of lines with each fault.
FAULTS = {
    "duplicate": 300,
    "near_duplicate": 250,
    "test_sentence": 150,
    "overlong": 100,
    "empty_side": 130,
    "copied_source": 130,
    "other_language": 150,
    "misaligned": 160,
    "cut": 100,
    "joined": 100,
    "mojibake": 130,
    "markup": 100,
    "lost_number": 50,
}
SEED = 1848
# Misaligned lines come in groups, in which translations are one line too early.
_GROUP = 4
_OVERLONG_SENTENCES = 14


class Line(NamedTuple):
    """A line of the text in English, German and French.

    `fault`: its name in FAULTS, or empty; `right`: the line without it, None if the text without
    faults has no such line.
    """

    text: Triple
    fault: str = ""
    right: Triple | None = None


def with_faults(rows: Sequence[Triple], tests: Sequence[Triple]) -> tuple[Line, ...]:
    """A training text with FAULTS[name] lines of each fault, at places drawn with SEED."""
    noise = _Noise(Random(SEED), rows, tests)
    for fault, count in FAULTS.items():
        for _ in range(count // (_GROUP if fault == "misaligned" else 1)):
            noise.add(fault)
    return noise.lines()


class _Noise:
    """Changes rows of the training text, and inserts lines between them."""

    def __init__(self, random: Random, rows: Sequence[Triple], tests: Sequence[Triple]) -> None:
        self._random, self._rows = random, rows
        self._changed: dict[int, Line] = {}
        self._used: set[int] = set()
        self._inserted: list[tuple[float, Line]] = []
        self._tests = iter(random.sample(tests, FAULTS["test_sentence"]))

    def lines(self) -> tuple[Line, ...]:
        rows = (self._changed.get(n, Line(row, "", row)) for n, row in enumerate(self._rows))
        ordered = sorted([*enumerate(rows), *self._inserted], key=lambda entry: entry[0])
        return tuple(line for _, line in ordered)

    def add(self, fault: str) -> None:
        """Add a fault at a random place that has none."""
        match fault:
            case "duplicate" | "near_duplicate":
                number = self._free()
                row = self._rows[number]
                text = row if fault == "duplicate" else _varied(row, self._random)
                self._insert(number, Line(text, fault))
            case "test_sentence":
                self._insert(0, Line(next(self._tests), fault))
            case "overlong":
                rows = self._random.sample(self._rows, _OVERLONG_SENTENCES)
                self._insert(0, Line(_joined(*rows), fault))
            case "misaligned":
                self._misalign()
            case _:
                fits, change = _CHANGES[fault]
                number = self._free(fits)
                row, following = self._rows[number : number + 2]
                text = change(row, following, self._random)
                self._changed[number] = Line(text, fault, row)

    def _insert(self, after: int, line: Line) -> None:
        """Insert a line somewhere after row `after`."""
        place = self._random.uniform(after + 0.5, len(self._rows))
        self._inserted.append((place, line))

    def _free(self, fits: Callable[[Triple], bool] = bool, size: int = 1) -> int:
        """The number of an unused row that fits, the first of `size`, which are used from now."""
        while True:
            number = self._random.randrange(len(self._rows) - size)
            numbers = range(number, number + size)
            if self._used.isdisjoint(numbers) and fits(self._rows[number]):
                self._used.update(numbers)
                return number

    def _misalign(self) -> None:
        first = self._free(size=_GROUP)
        rows = self._rows[first : first + _GROUP]
        for place, row in enumerate(rows):
            _, german, french = rows[(place + 1) % _GROUP]
            self._changed[first + place] = Line((row[0], german, french), "misaligned", row)


def _varied(row: Triple, random: Random) -> Triple:
    """A row whose English, or whose German and French, differ in case or punctuation."""
    vary = random.choice(_VARIATIONS)
    english, german, french = row
    if random.random() < 0.5:
        return vary(english), german, french
    return english, vary(german), vary(french)


def _joined(*rows: Triple) -> Triple:
    english, german, french = (" ".join(texts) for texts in zip(*rows, strict=True))
    return english, german, french


def _with_empty_side(row: Triple, _: Triple, random: Random) -> Triple:
    blank = random.choice(("", " "))
    return (blank, *row[1:]) if random.random() < 0.5 else (row[0], blank, blank)


def _copied(row: Triple, _: Triple, __: Random) -> Triple:
    return row[0], row[0], row[0]


def _in_other_language(row: Triple, _: Triple, __: Random) -> Triple:
    return row[0], row[2], row[1]


def _cut(row: Triple, _: Triple, random: Random) -> Triple:
    """A row whose translations end after a third to two thirds of their words."""
    share = random.uniform(1 / 3, 2 / 3)
    german, french = (
        " ".join((words := text.split())[: max(1, round(share * len(words)))]) for text in row[1:]
    )
    return row[0], german, french


def _with_next(row: Triple, following: Triple, _: Random) -> Triple:
    return row[0], *_joined(row, following)[1:]


def _misread(row: Triple, _: Triple, __: Random) -> Triple:
    """UTF-8 read as Windows-1252."""
    german, french = (text.encode().decode("cp1252") for text in row[1:])
    return row[0], german, french


def _marked_up(row: Triple, _: Triple, random: Random) -> Triple:
    """A row with escaped HTML elements."""
    tag = random.choice(("b", "i", "p", "span"))
    english, german, french = (f"&lt;{tag}&gt;{text}&lt;/{tag}&gt;" for text in row)
    return english, german, french


def _without_numbers(row: Triple, _: Triple, __: Random) -> Triple:
    german, french = (" ".join(_NUMBER.sub("", text).split()) for text in row[1:])
    return row[0], german, french


# A year or a time, also as in 10 h 30.
_NUMBER = re.compile(r"\d+(?:(?::| h )\d+)?")

_VARIATIONS: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.lower,
    lambda text: f"- {text}",
    lambda text: f"{text[:-1].rstrip()}!",
    lambda text: f"{text[:-1].rstrip()}...",
)

_Change = Callable[[Triple, Triple, Random], Triple]

# For each fault that changes a row: the rows that can have it, and the row with it, made of the
# row and the one that follows.
_CHANGES: dict[str, tuple[Callable[[Triple], bool], _Change]] = {
    "empty_side": (bool, _with_empty_side),
    "copied_source": (bool, _copied),
    "other_language": (bool, _in_other_language),
    "cut": (bool, _cut),
    "joined": (bool, _with_next),
    "mojibake": (lambda row: not (row[1].isascii() or row[2].isascii()), _misread),
    "markup": (bool, _marked_up),
    "lost_number": (lambda row: bool(_NUMBER.search(row[0])), _without_numbers),
}
