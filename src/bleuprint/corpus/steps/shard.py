"""Shards of a training text, and what one process of a stage works on.

A stage that is too slow for one machine is run in shards, for example by Snakemake on a cluster:
one process that indexes the text, one for each `Shard`, in any order, then one process that gathers
`AllShards`. Without shards, one process does both for the `WholeText`.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

from bleuprint.runtime.errors import UserError


@dataclass(frozen=True)
class Shard:
    """Consecutive sentence pairs of a training text: one of `total` shards of equal size.

    Attributes:
        number: The number of the shard, from 1.
        total: The number of shards of the text.
    """

    number: int = 1
    total: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read which shard of how many is meant, from a text such as `3-of-8`.

        Raises:
            UserError: The text has another form, or the number is above the total.
        """
        match = re.fullmatch(r"([1-9][0-9]*)-of-([1-9][0-9]*)", text)
        if match is None or int(match[1]) > int(match[2]):
            raise UserError(f"invalid shard {text!r}. Write it like 3-of-8")
        return cls(number=int(match[1]), total=int(match[2]))

    @classmethod
    def all(cls, total: int) -> list["Shard"]:
        """Return all shards of a text, in the order of their numbers."""
        return [cls(number, total) for number in range(1, total + 1)]

    def bounds(self, pair_count: int) -> tuple[int, int | None]:
        """Return which sentence pairs of a text belong to this shard, one of its equal parts.

        Args:
            pair_count: The number of pairs of the text.

        Returns:
            The index of the first pair, counted from 0, and the index after the last pair. For the
            last shard, the second index is None, which means: read both files to their ends, and
            check that they end together.
        """
        start = pair_count * (self.number - 1) // self.total
        if self.number == self.total:
            return start, None
        stop = pair_count * self.number // self.total
        return start, stop

    def __str__(self) -> str:
        """Return the form that `parse` reads, which is also the name of the shard's folder."""
        return f"{self.number}-of-{self.total}"


@dataclass(frozen=True)
class AllShards:
    """All shards of a training text, to be gathered after each has been processed.

    Attributes:
        total: The number of shards.
    """

    total: int


@dataclass(frozen=True)
class WholeText:
    """A training text that one process processes and gathers, without shards."""


@dataclass(frozen=True)
class TextToIndex:
    """A training text that one process indexes, before other processes read its shards."""


# What one process of a stage works on: it indexes the text, processes a shard, or gathers all
# shards; for the whole text, it processes and gathers.
Work: TypeAlias = TextToIndex | Shard | AllShards | WholeText
