"""Put faults of crawled text into known lines of the phrasebook's training text.

Tests of the cleaning rules use them: they know which lines are faulty, and in what way. A line has
its fault between any two of the three languages.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
_MISALIGNED_GROUP = 4
_OVERLONG_SENTENCES = 14
# A year or a time, also as in 10 h 30.
_NUMBER = re.compile(r"\d+(?:(?::| h )\d+)?")


class Line(NamedTuple):
    """A line of the text in English, German and French.

    Attributes:
        text: The line.
        fault: The name of its fault in `FAULTS`, or empty.
        right: The line without its fault; None if the text without faults has no such line.
    """

    text: Triple
    fault: str = ""
    right: Triple | None = None


def add_faults(train: Sequence[Triple], test: Sequence[Triple]) -> tuple[Line, ...]:
    """Return a training text into which faults of real web text are put, in fixed numbers.

    Cleaning is tested with it: `FAULTS` says how many lines have which fault.

    Args:
        train: The training text without faults.
        test: The test set, of which some sentences are added to the training text.
    """
    noise = _Noise(Random(SEED), train, test)
    for fault, line_count in FAULTS.items():
        if fault == "misaligned":
            for _ in range(line_count // _MISALIGNED_GROUP):
                noise.misalign_group()
        else:
            for _ in range(line_count):
                noise.add(fault)
    return noise.lines()


class _Noise:
    """Changes lines of the training text, and inserts lines between them."""

    def __init__(self, random: Random, train: Sequence[Triple], test: Sequence[Triple]) -> None:
        """Choose the sentences of the test set that are inserted.

        Args:
            random: The source of all random choices.
            train: The training text without faults.
            test: The test set.
        """
        self._random = random
        self._train = train
        # The lines that replace a line of the training text, by its number.
        self._changed_lines: dict[int, Line] = {}
        self._used_numbers = set[int]()
        # New lines, each with its position in the text: 3.5 means between lines 3 and 4.
        self._inserted_lines = list[tuple[float, Line]]()
        self._test_sentences = iter(random.sample(test, FAULTS["test_sentence"]))

    def lines(self) -> tuple[Line, ...]:
        """Return the complete text: unchanged, changed and new lines, in their order."""
        positioned_lines = list(self._inserted_lines)
        for number, triple in enumerate(self._train):
            line = self._changed_lines.get(number, Line(triple, right=triple))
            positioned_lines.append((number, line))
        positioned_lines.sort(key=lambda positioned_line: positioned_line[0])
        return tuple(line for _, line in positioned_lines)

    def add(self, fault: str) -> None:
        """Add one line with a fault: a new line, or a line without a fault that is changed."""
        match fault:
            case "duplicate":
                number = self._take_line()
                self._insert(Line(self._train[number], fault), line_number=number)
            case "near_duplicate":
                number = self._take_line()
                self._insert(
                    Line(_varied(self._train[number], self._random), fault), line_number=number
                )
            case "test_sentence":
                self._insert(Line(next(self._test_sentences), fault))
            case "overlong":
                triples = self._random.sample(self._train, _OVERLONG_SENTENCES)
                self._insert(Line(_joined(triples), fault))
            case _:
                self._change_line(fault, _CHANGES[fault])

    def _change_line(self, fault: str, change: "_Change") -> None:
        """Put a fault into a random line that can have it.

        Args:
            fault: The name of the fault.
            change: Which lines can have the fault, and how it changes a line.
        """
        number = self._take_line(change.fits)
        triple = self._train[number]
        following = self._train[number + 1]
        text = change.apply(triple, following, self._random)
        self._changed_lines[number] = Line(text, fault, right=triple)

    def misalign_group(self) -> None:
        """Shift the translations of consecutive lines by one line; the last gets the first one."""
        first = self._take_line(size=_MISALIGNED_GROUP)
        triples = self._train[first : first + _MISALIGNED_GROUP]
        for index, triple in enumerate(triples):
            english, _, _ = triple
            _, german, french = triples[(index + 1) % _MISALIGNED_GROUP]
            line = Line((english, german, french), "misaligned", right=triple)
            self._changed_lines[first + index] = line

    def _insert(self, line: Line, line_number: int = 0) -> None:
        """Insert a line at a random position after the line with a number."""
        position = self._random.uniform(line_number + 0.5, len(self._train))
        self._inserted_lines.append((position, line))

    def _take_line(self, fits: Callable[[Triple], bool] | None = None, size: int = 1) -> int:
        """Draw consecutive lines that no fault uses yet, and mark them as used.

        Args:
            fits: Returns whether a line can have the fault; asked for the first line. None allows
                any line.
            size: The number of lines.

        Returns:
            The number of the first line.
        """
        while True:
            # `- size` keeps one line free after the last drawn one: some faults take words from it.
            number = self._random.randrange(len(self._train) - size)
            numbers = range(number, number + size)
            is_free = self._used_numbers.isdisjoint(numbers)
            if is_free and (fits is None or fits(self._train[number])):
                self._used_numbers.update(numbers)
                return number


def _varied(triple: Triple, random: Random) -> Triple:
    """Return a near duplicate: a line with other case or punctuation, on one side only."""
    vary = random.choice(_VARIATIONS)
    english, german, french = triple
    if random.random() < 0.5:
        return vary(english), german, french
    return english, vary(german), vary(french)


def _with_dash(text: str) -> str:
    """Return a sentence as a line of a dialog."""
    return f"- {text}"


def _with_exclamation_mark(text: str) -> str:
    """Return a sentence with another mark at its end."""
    return f"{text[:-1].rstrip()}!"


def _with_dots(text: str) -> str:
    """Return a sentence with three dots instead of the mark at its end."""
    return f"{text[:-1].rstrip()}..."


_VARIATIONS: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.lower,
    _with_dash,
    _with_exclamation_mark,
    _with_dots,
)


def _joined(triples: Sequence[Triple]) -> Triple:
    """Return several lines as one, joined by spaces in each language."""
    english = " ".join(triple[0] for triple in triples)
    german = " ".join(triple[1] for triple in triples)
    french = " ".join(triple[2] for triple in triples)
    return english, german, french


# The functions below change a line. All have the same parameters: the line, the line that follows
# it, and the source of random choices. An underscore marks what a function does not need.


def _empty_one_side(triple: Triple, _following: Triple, random: Random) -> Triple:
    """Remove the English, or the German and the French, of a line."""
    blank = random.choice(("", " "))
    english, german, french = triple
    if random.random() < 0.5:
        return blank, german, french
    return english, blank, blank


def _copy_source(triple: Triple, _following: Triple, _random: Random) -> Triple:
    """Replace the translations by the English."""
    english = triple[0]
    return english, english, english


def _exchange_languages(triple: Triple, _following: Triple, _random: Random) -> Triple:
    """Exchange the German and the French."""
    english, german, french = triple
    return english, french, german


def _cut_translations(triple: Triple, _following: Triple, random: Random) -> Triple:
    """End the translations after a third to two thirds of their words."""
    share = random.uniform(1 / 3, 2 / 3)
    english, german, french = triple
    return english, _first_words(german, share), _first_words(french, share)


def _first_words(text: str, share: float) -> str:
    """Return the first words of a text, one at least.

    Args:
        text: The text.
        share: The share of its words, from 0 to 1.
    """
    words = text.split()
    count = max(1, round(share * len(words)))
    return " ".join(words[:count])


def _join_next_translations(triple: Triple, following: Triple, _random: Random) -> Triple:
    """Append the translations of the next line to those of a line."""
    english = triple[0]
    _, german, french = _joined([triple, following])
    return english, german, french


def _misread_encoding(triple: Triple, _following: Triple, _random: Random) -> Triple:
    """Read the UTF-8 of the translations as Windows-1252."""
    english, german, french = triple
    return english, german.encode().decode("cp1252"), french.encode().decode("cp1252")


def _add_markup(triple: Triple, _following: Triple, random: Random) -> Triple:
    """Put each sentence of a line into an HTML element, escaped."""
    tag = random.choice(("b", "i", "p", "span"))
    start = f"&lt;{tag}&gt;"
    end = f"&lt;/{tag}&gt;"
    english, german, french = triple
    return start + english + end, start + german + end, start + french + end


def _drop_numbers(triple: Triple, _following: Triple, _random: Random) -> Triple:
    """Remove the numbers from the translations."""
    english, german, french = triple
    return english, _without_numbers(german), _without_numbers(french)


def _without_numbers(text: str) -> str:
    """Return a text without its numbers and the spaces around them."""
    words = _NUMBER.sub("", text).split()
    return " ".join(words)


def _has_number(triple: Triple) -> bool:
    """Return whether the English of a line contains a number."""
    return _NUMBER.search(triple[0]) is not None


def _has_umlauts_and_accents(triple: Triple) -> bool:
    """Return whether neither translation is ASCII, so that a wrong encoding changes both."""
    _, german, french = triple
    return not german.isascii() and not french.isascii()


@dataclass(frozen=True)
class _Change:
    """How a line is changed.

    Attributes:
        apply: Returns the changed line.
        fits: Returns whether a line can be changed; None if every line can.
    """

    apply: Callable[[Triple, Triple, Random], Triple]
    fits: Callable[[Triple], bool] | None = None


# The faults that change a line.
_CHANGES = {
    "empty_side": _Change(_empty_one_side),
    "copied_source": _Change(_copy_source),
    "other_language": _Change(_exchange_languages),
    "cut": _Change(_cut_translations),
    "joined": _Change(_join_next_translations),
    "mojibake": _Change(_misread_encoding, fits=_has_umlauts_and_accents),
    "markup": _Change(_add_markup),
    "lost_number": _Change(_drop_numbers, fits=_has_number),
}
