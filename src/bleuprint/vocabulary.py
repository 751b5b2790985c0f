"""The joint vocabulary of both languages: units and their ids.

The special symbols are defined here and nowhere else. A unit of the text that is spelt like one
("<s>", say) is not given an id of its own and reads as UNK, so text can never end a sentence or
pass for padding.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bleuprint.errors import UserError
from bleuprint.files import whole_file
from bleuprint.pairs import read_lines

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
    def of(cls, counts: Counter[str]) -> "Vocabulary":
        """The vocabulary of a text, from how often each unit occurs in it."""
        known = ((unit, count) for unit, count in counts.items() if unit not in SPECIALS)
        return cls(sorted(known, key=lambda entry: (-entry[1], entry[0])))

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
        with whole_file(path) as partial, partial.open("wb") as file:
            for unit, count in self.counts:
                file.write(f"{unit} {count}\n".encode())

    @classmethod
    def read(cls, path: Path) -> "Vocabulary":
        entries = [_entry(line, path, number) for number, line in enumerate(read_lines(path), 1)]
        found = tuple(unit for unit, _ in entries[: len(SPECIALS)])
        if found != SPECIALS:
            raise UserError(f"{path}: does not begin with {_shown(SPECIALS)} but {_shown(found)}")
        return cls(entries[len(SPECIALS) :])


def _entry(line: str, path: Path, number: int) -> tuple[str, int]:
    unit, space, count = line.rpartition(" ")
    if not space or not unit or not count.isdecimal():
        raise UserError(f"{path}:{number}: {line!r} is not a unit and its count")
    return unit, int(count)


def _shown(units: Sequence[str]) -> str:
    return " ".join(units) or "nothing"
