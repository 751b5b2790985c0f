"""Stages that change or drop pairs of the training text, one by one.

A `FilterStep` needs only `filter_block`, which says what becomes of a block of pairs; this module
runs it in several processes and counts what it does. `write_kept` is for stages that decide about
all pairs at once, such as dedup.
"""

import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bleuprint.corpus.steps.filter_stats import FilterStats, SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step
from bleuprint.runtime.files import atomic_folder, write_json
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import Block, TextFolder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The file in a shard's folder with the counts of the shard.
_COUNTS_FILE = "counts.json"
_COPIED_BYTES = 1 << 20

# For each pair of a set 0 if it is kept, else the number, from 1, of the rule that drops it.
DroppedBy: TypeAlias = "npt.NDArray[np.uint8]"


class FilteredBlock(NamedTuple):
    """What a stage kept of a block of pairs.

    Attributes:
        source: The source lines of the kept pairs, each with its line end.
        target: The target lines of the kept pairs, each with its line end.
        counts: The counts of the block.
    """

    source: bytes
    target: bytes
    counts: SetCounts


@dataclass(frozen=True)
class FilterStep(Step):
    """A stage that filters the pairs of `input_text` into the folder `output`."""

    @abstractmethod
    def filter_block(self, name: str, block: Block) -> FilteredBlock:
        """Return the pairs that are kept of a block.

        Args:
            name: The set of the block, such as train.
            block: The pairs.
        """

    def write_held_out(self, after: TextFolder, filter_stats: FilterStats, workers: int) -> None:  # noqa: ARG002
        """Write validation and test sets: copies, unless a stage overrides this method.

        Args:
            after: The folder to write to.
            filter_stats: The statistics to which the sets are added.
            workers: The number of processes.
        """
        copy_sets(self.input_text, after, self.input_text.held_out(), filter_stats)

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Write the kept pairs of a shard of train, and its counts."""
        counts = self.new_filter_stats().add_set("train")
        blocks, pair_count = self.shard_blocks(shard)
        after = self.input_text.with_path(part)
        self.filter_set("train", blocks, pair_count, after, counts, workers)
        write_json(part / _COUNTS_FILE, vars(counts))

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards of train, and write the held-out sets and the filtering statistics."""
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as unfinished:
            after = self.input_text.with_path(unfinished)
            counts = filter_stats.add_set("train")
            source_parts = []
            target_parts = []
            for part in parts:
                remedy = f"remove {part}, and run its shard again"
                counts.add(read_record(SetCounts, part / _COUNTS_FILE, remedy))
                source_part, target_part = after.with_path(part).files("train")
                source_parts.append(source_part)
                target_parts.append(target_part)
            source_file, target_file = after.files("train")
            join_files(source_parts, source_file)
            join_files(target_parts, target_file)
            self.write_held_out(after, filter_stats, workers)
            filter_stats.write(self.filter_stats_path)

    def filter_set(
        self,
        name: str,
        blocks: Iterable[Block],
        pairs: int | None,
        after: TextFolder,
        counts: SetCounts,
        workers: int,
    ) -> None:
        """Filter a set, or a shard of it, in several processes.

        Args:
            name: The name of the set.
            blocks: The pairs to filter.
            pairs: The number of these pairs, if known, for the progress bar.
            after: The folder to write to.
            counts: The counts of the set, to which those of the blocks are added.
            workers: The number of processes.
        """
        progress = Progress(f"{self.stage} {self.corpus} {name}", pairs, "pairs")
        with after.writer(name) as writer, progress:
            for filtered in map_parts(partial(self._block_filter, name), blocks, workers):
                writer.write_packed(filtered.source, filtered.target)
                counts.add(filtered.counts)
                progress.advance(filtered.counts.pairs_in)

    def _block_filter(self, name: str) -> Callable[[Block], FilteredBlock]:
        """Return the function that filters blocks of a set; each worker process calls this once."""
        return partial(self.filter_block, name)


def kept_pairs(block: Block, rules: Sequence[str | None]) -> FilteredBlock:
    """Keep the pairs of a block that no rule drops.

    Args:
        block: The pairs.
        rules: For each pair the rule that drops it; None if it is kept.
    """
    counts = SetCounts()
    counts.count_kept(rules.count(None))
    # Decoding a block takes time: without a dropped pair, its bytes are kept as they are.
    if any(rules):
        for (number, pair), rule in zip(block.numbered_pairs(), rules, strict=True):
            if rule is not None:
                counts.record_dropped(rule, number, pair)
    source, target = block.select(rule is None for rule in rules)
    return FilteredBlock(source, target, counts)


def write_kept(
    before: TextFolder,
    after: TextFolder,
    dropped_by: DroppedBy,
    rules: Sequence[str],
    counts: SetCounts,
) -> None:
    """Write the pairs of train that no rule drops.

    Args:
        before: The folder to read.
        after: The folder to write to.
        dropped_by: For each pair the number of the rule that drops it, from 1; 0 if it is kept.
        rules: The names of the rules 1, 2, ...
        counts: The counts of train, to which the pairs are added.
    """
    rules_by_number = (None, *rules)
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            start = block.first - 1  # pairs are numbered from 1
            rule_numbers = dropped_by[start : start + len(block)].tolist()
            kept = kept_pairs(block, [rules_by_number[number] for number in rule_numbers])
            writer.write_packed(kept.source, kept.target)
            counts.add(kept.counts)


def join_files(files: Iterable[Path], joined: Path) -> None:
    """Concatenate files into the file `joined`; each must end at the end of a line."""
    with joined.open("wb") as output:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, output, _COPIED_BYTES)


def copy_sets(
    before: TextFolder, after: TextFolder, names: Iterable[str], filter_stats: FilterStats
) -> None:
    """Copy sets byte for byte, and count their pairs.

    Args:
        before: The folder to read.
        after: The folder to write to.
        names: The names of the sets.
        filter_stats: The statistics to which the sets are added.

    Raises:
        UserError: A set is not parallel or not UTF-8.
    """
    for name in names:
        source, target = before.files(name)
        source_copy, target_copy = after.files(name)
        shutil.copyfile(source, source_copy)
        shutil.copyfile(target, target_copy)
        counts = filter_stats.add_set(name)
        for block in after.blocks(name):
            counts.count_kept(len(block.pairs()))  # decoding the pairs checks them
