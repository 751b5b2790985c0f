"""A vocabulary: units and their ids.

The special symbols are defined here and nowhere else. A unit of the text that is spelt like one
("<s>", say) is not given an id of its own and reads as UNK, so text can never end a sentence or
pass for padding.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.text.parallel import read_lines

PAD, BOS, EOS, UNK = range(4)
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """Units in the order of their ids: the special symbols, then by count, then by code point."""

    def __init__(self, counts: Iterable[tuple[str, int]]) -> None:
        """`counts`: units other than the special symbols, in the order of their ids."""
        self.counts = [(symbol, 0) for symbol in SPECIALS] + list(counts)
        self.units = [unit for unit, _ in self.counts]
        self._ids = {unit: i for i, unit in enumerate(self.units) if i >= len(SPECIALS)}

    @classmethod
    def of(
        cls, counts: Counter[str], max_size: int | None = None, min_count: int = 1
    ) -> "Vocabulary":
        """The vocabulary of a text, from how often each unit occurs in it.

        `max_size`: the most frequent units that are kept (None: all), the special symbols not
        among them; what is rarer than `min_count` is left out.
        """
        known = Counter({unit: count for unit, count in counts.items() if unit not in SPECIALS})
        return cls(most_frequent(known, min_count)[:max_size])

    def __len__(self) -> int:
        return len(self.units)

    def encode(self, units: Iterable[str]) -> list[int]:
        """The ids of `units`; UNK for those that are not in the vocabulary. Adds no EOS."""
        return [self._ids.get(unit, UNK) for unit in units]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The units of `ids` without padding, BOS and EOS; UNK reads "<unk>"."""
        return [self.units[i] for i in ids if i not in (PAD, BOS, EOS)]

    def write(self, path: Path) -> None:
        """Write "unit count" a line; the line number less one is the id."""
        write_counts(path, self.counts)

    @classmethod
    def read(cls, path: Path) -> "Vocabulary":
        entries = read_counts(path)
        found = tuple(unit for unit, _ in entries[: len(SPECIALS)])
        if found != SPECIALS:
            raise UserError(f"{path}: does not begin with {_shown(SPECIALS)} but {_shown(found)}")
        return cls(entries[len(SPECIALS) :])


def most_frequent(counts: Counter[str], min_count: int) -> list[tuple[str, int]]:
    """The units that occur at least `min_count` times: by count, then by code point."""
    entries = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return list(takewhile(lambda entry: entry[1] >= min_count, entries))


def write_counts(path: Path, entries: Iterable[tuple[str, int]]) -> None:
    """Write "unit count" a line, in the order given."""
    with whole_file(path) as partial, partial.open("wb") as file:
        for unit, count in entries:
            file.write(f"{unit} {count}\n".encode())


def read_counts(path: Path) -> list[tuple[str, int]]:
    """What `write_counts` wrote; raises UserError at a line that is something else."""
    return [_entry(line, path, number) for number, line in enumerate(read_lines(path), 1)]


def _entry(line: str, path: Path, number: int) -> tuple[str, int]:
    unit, space, count = line.rpartition(" ")
    if not space or not unit or not count.isdecimal():
        raise UserError(f"{path}:{number}: {line!r} is not a unit and its count")
    return unit, int(count)


def _shown(units: Sequence[str]) -> str:
    return " ".join(units) or "nothing"
