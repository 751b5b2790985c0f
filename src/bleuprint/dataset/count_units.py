"""Counts the units of the training text, such as words, in parallel."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import TextFolder

# Train is split into this many parts.
_PARTS = 8

U = TypeVar("U")
Splitter = Callable[[Sequence[str]], Iterable[U]]


def count_units(
    what: str, tokens: TextFolder, workers: int, splitter: Callable[[str], Splitter[U]]
) -> dict[str, Counter[U]]:
    """How often each unit occurs in train, by language, in the order of first occurrence.

    `splitter`: returns, for a language, a function from lines to their units; called in each
    process. `what` names the progress.
    """
    counts = {language: Counter[U]() for language in tokens.languages}
    total = tokens.count("train")
    parts = [shard.bounds(total) for shard in Shard.all(_PARTS)]
    with Progress(what, len(parts), "parts") as progress:
        for part in map_parts(partial(_PartCounter, tokens, splitter), parts, workers):
            for units, more in zip(counts.values(), part, strict=True):
                units.update(more)
            progress.advance()
    return counts


class _PartCounter(Generic[U]):
    """Returns how often each unit occurs in a part of train, on both sides."""

    def __init__(self, tokens: TextFolder, splitter: Callable[[str], Splitter[U]]) -> None:
        self._tokens, self._splitters = tokens, [*map(splitter, tokens.languages)]

    def __call__(self, bounds: tuple[int, int | None]) -> Sequence[Counter[U]]:
        counts = [Counter[U]() for _ in self._splitters]
        for block in self._tokens.blocks("train", *bounds):
            for lines, split, count in zip(block.sides(), self._splitters, counts, strict=True):
                count.update(split(lines))
        return counts
