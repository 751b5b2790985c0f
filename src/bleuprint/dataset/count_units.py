"""Counting the units of the training text, such as its words, by several processes."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import TextFolder

# The training text is divided into this many parts, which processes count independently.
_PARTS = 8

# A unit of text: a word (str), or the id of a subword (int).
Unit = TypeVar("Unit")
# A function that returns the units of some lines.
Splitter = Callable[[Sequence[str]], Iterable[Unit]]


def count_units(
    progress_name: str,
    tokens: TextFolder,
    workers: int,
    splitter_for: Callable[[str], Splitter[Unit]],
) -> dict[str, Counter[Unit]]:
    """Count how often each unit occurs in the training text.

    Args:
        progress_name: The name of the progress bar.
        tokens: The tokenized text.
        workers: The number of processes.
        splitter_for: A function that returns the splitter of a language. Each process calls it, so
            it must be picklable.

    Returns:
        The counts by language, in the order in which the units first occur.
    """
    counts: dict[str, Counter[Unit]] = {}
    for language in tokens.languages:
        counts[language] = Counter()
    total_pairs = tokens.count("train")
    parts = [shard.bounds(total_pairs) for shard in Shard.all(_PARTS)]
    counter = partial(_PartCounter, tokens, splitter_for)
    with Progress(progress_name, len(parts), "parts") as progress:
        for part_counts in map_parts(counter, parts, workers):
            for language, part_count in zip(tokens.languages, part_counts, strict=True):
                counts[language].update(part_count)
            progress.advance()
    return counts


class _PartCounter(Generic[Unit]):
    """Counts the units of a part of the training text; a process has one of these."""

    def __init__(self, tokens: TextFolder, splitter_for: Callable[[str], Splitter[Unit]]) -> None:
        """Create the counter with a splitter for each language."""
        self._tokens = tokens
        self._splitters = [splitter_for(language) for language in tokens.languages]

    def __call__(self, bounds: tuple[int, int | None]) -> Sequence[Counter[Unit]]:
        """Count the units of the lines from one number up to another.

        Args:
            bounds: The number of the first line, and of the line after the last one (None: to the
                end of the text).

        Returns:
            The counts of the source and the target side.
        """
        first_line, end_line = bounds
        counts = [Counter[Unit]() for _ in self._splitters]
        for block in self._tokens.blocks("train", first_line, end_line):
            for lines, split, count in zip(block.sentences(), self._splitters, counts, strict=True):
                count.update(split(lines))
        return counts
