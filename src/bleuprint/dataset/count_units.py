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
    """Count how often each unit occurs in the training text: each word, or each subword.

    The text is divided into parts, which several processes count; their counts are added up.

    Args:
        progress_name: The name of the progress bar.
        tokens: The tokenized text.
        workers: The number of processes.
        splitter_for: A function that gets a language and returns the function that splits its lines
            into units. Each process calls it, so it must be picklable.

    Returns:
        The counts by language, in the order in which the units first occur.
    """
    counts: dict[str, Counter[Unit]] = {}
    for language in tokens.languages:
        counts[language] = Counter()
    total_pairs = tokens.count("train")
    parts = [shard.bounds(total_pairs) for shard in Shard.all(_PARTS)]
    # Each process calls this function once, to create its own counter.
    create_counter = partial(_PartCounter, tokens, splitter_for)
    with Progress(progress_name, len(parts), "parts") as progress:
        for part_counts in map_parts(create_counter, parts, workers):
            for language, part_count in zip(tokens.languages, part_counts, strict=True):
                counts[language].update(part_count)
            progress.advance()
    return counts


class _PartCounter(Generic[Unit]):
    """Counts the units of a part of the training text; a process has one of these."""

    def __init__(self, tokens: TextFolder, splitter_for: Callable[[str], Splitter[Unit]]) -> None:
        """Create the functions that split the lines of both languages into units.

        Args:
            tokens: The tokenized text.
            splitter_for: Gets a language, and returns the function that splits its lines.
        """
        self._tokens = tokens
        self._splitters = [splitter_for(language) for language in tokens.languages]

    def __call__(self, bounds: tuple[int, int | None]) -> Sequence[Counter[Unit]]:
        """Count the units, such as words, of one part of the training text.

        Args:
            bounds: The index of the part's first sentence pair, and the index after its last pair;
                None means the end of the text.

        Returns:
            The counts of the source language and the counts of the target language.
        """
        start, stop = bounds
        source_counts = Counter[Unit]()
        target_counts = Counter[Unit]()
        split_source, split_target = self._splitters
        for block in self._tokens.blocks("train", start, stop):
            source_lines, target_lines = block.sentences()
            source_counts.update(split_source(source_lines))
            target_counts.update(split_target(target_lines))
        return source_counts, target_counts
