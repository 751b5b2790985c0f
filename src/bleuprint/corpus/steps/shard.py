"""A shard of the training text of a corpus."""

import re
from dataclasses import dataclass

from bleuprint.runtime.errors import UserError


@dataclass(frozen=True)
class Shard:
    """Shard `number`, from 1, of `of`; written 3-of-8, as by Snakemake."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that `text` names; raises UserError if it names none."""
        match = re.fullmatch(r"([1-9][0-9]*)-of-([1-9][0-9]*)", text)
        if match is None or int(match[1]) > int(match[2]):
            raise UserError(f"shard {text!r}: not one such as 3-of-8")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def all(cls, of: int) -> list["Shard"]:
        """All shards, in the order of their numbers."""
        return [cls(number, of) for number in range(1, of + 1)]

    def bounds(self, pairs: int) -> tuple[int, int | None]:
        """The first pair of the shard in a text of `pairs` pairs, and the one after its last.

        The last shard has an open end (None): its reader checks that both sides end there.
        """
        start = pairs * (self.number - 1) // self.of
        return start, None if self.number == self.of else pairs * self.number // self.of

    def __str__(self) -> str:
        return f"{self.number}-of-{self.of}"
