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
from typing import TYPE_CHECKING, NamedTuple

from bleuprint.corpus.steps.filter_stats import FilterStats, SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.file_links import link_or_copy
from bleuprint.runtime.json_files import write_json
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
        """Filter consecutive sentence pairs, and count what happened to them.

        Args:
            name: The data set that the pairs belong to, such as `train`.
            block: The pairs.
        """

    def write_held_out(
        self,
        output_text: TextFolder,
        filter_stats: FilterStats,
        workers: int,  # noqa: ARG002
    ) -> None:
        """Write the validation and test sets: copies, unless a stage overrides this method.

        Args:
            output_text: The folder to write to.
            filter_stats: The statistics of the stage, to which each set's pairs are added.
            workers: The number of processes; a stage that overrides this method may need them.
        """
        copy_sets(self.input_text, output_text, self.input_text.held_out(), filter_stats)

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Filter one part of the training text.

        A large text is divided into parts, its shards, so that several machines can filter it.

        Args:
            shard: Which part of the training text to read.
            part: The folder to write to: the pairs that are kept, and how many were kept, changed
                and dropped.
            workers: The number of processes.
        """
        counts = self.new_filter_stats().add_set("train")
        blocks, pair_count = self.shard_blocks(shard)
        output_text = self.input_text.with_path(part)
        self.filter_set("train", blocks, pair_count, output_text, counts, workers)
        write_json(part / _COUNTS_FILE, vars(counts))

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the filtered parts of the training text, and write the validation and test sets.

        Also write the filtering statistics: how many pairs were kept, changed and dropped.

        Args:
            parts: The folders that `process_shard` has written, in the order of the text.
            workers: The number of processes, for the validation and test sets.
        """
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as unfinished:
            output_text = self.input_text.with_path(unfinished)
            train_counts = filter_stats.add_set("train")
            source_parts = []
            target_parts = []
            for part in parts:
                remedy = f"Remove {part}, and run its shard again"
                train_counts.add(read_record(SetCounts, part / _COUNTS_FILE, remedy))
                source_part, target_part = self.input_text.with_path(part).files("train")
                source_parts.append(source_part)
                target_parts.append(target_part)
            source_file, target_file = output_text.files("train")
            join_files(source_parts, source_file)
            join_files(target_parts, target_file)
            self.write_held_out(output_text, filter_stats, workers)
            filter_stats.write(self.filter_stats_path)

    def filter_set(
        self,
        name: str,
        blocks: Iterable[Block],
        pair_count: int | None,
        output_text: TextFolder,
        counts: SetCounts,
        workers: int,
    ) -> None:
        """Filter the sentence pairs of a data set in several processes, and write those kept.

        Args:
            name: The data set, such as `train`.
            blocks: The pairs to filter: all pairs of the set, or a part of it.
            pair_count: The number of these pairs, for the progress bar; None if it is unknown.
            output_text: The folder to write to.
            counts: The statistics of the set, to which these pairs are added.
            workers: The number of processes.
        """
        progress = Progress(f"{self.stage} {self.corpus} {name}", pair_count, "pairs")
        # Each worker process calls `create_filter` once. It returns the function that filters a
        # block.
        create_filter = partial(self._block_filter, name)
        with output_text.writer(name) as writer, progress:
            for filtered in map_parts(create_filter, blocks, workers):
                writer.write_lines(filtered.source, filtered.target)
                counts.add(filtered.counts)
                progress.advance(filtered.counts.pairs_in)

    def _block_filter(self, name: str) -> Callable[[Block], FilteredBlock]:
        """Return the function that filters blocks of a set; each worker process calls this once."""
        return partial(self.filter_block, name)


def kept_pairs(block: Block, rules: Sequence[str | None]) -> FilteredBlock:
    """Keep the sentence pairs of a block that no rule drops, and count how many each rule drops.

    Args:
        block: The pairs, as bytes.
        rules: For each pair the name of the rule that drops it, such as `length`; None if it is
            kept.
    """
    counts = SetCounts()
    counts.count_kept(rules.count(None))
    # Pairs are decoded only if a pair is dropped, since decoding takes time.
    if any(rules):
        for (number, pair), rule in zip(block.numbered_pairs(), rules, strict=True):
            if rule is not None:
                counts.record_dropped(rule, number, pair)
    source, target = block.select(rule is None for rule in rules)
    return FilteredBlock(source, target, counts)


def write_kept(
    input_text: TextFolder,
    output_text: TextFolder,
    rule_of_pair: "npt.NDArray[np.uint8]",
    rules: Sequence[str],
    counts: SetCounts,
) -> None:
    """Write the training pairs that no rule drops.

    Args:
        input_text: The folder to read.
        output_text: The folder to write to.
        rule_of_pair: The number of the rule that drops each pair, from 1; 0 for a kept pair,
            (pairs,).
        rules: The names of the rules with the numbers 1, 2, ...
        counts: The statistics of the training text, to which kept and dropped pairs are added.
    """
    # Number 0 means that no rule drops the pair.
    rules_by_number = (None, *rules)
    with output_text.writer("train") as writer:
        for block in input_text.blocks("train"):
            start = block.first - 1  # `first` counts from 1.
            rule_numbers = rule_of_pair[start : start + len(block)].tolist()
            rule_names = [rules_by_number[number] for number in rule_numbers]
            kept = kept_pairs(block, rule_names)
            writer.write_lines(kept.source, kept.target)
            counts.add(kept.counts)


def join_files(files: Iterable[Path], joined: Path) -> None:
    """Concatenate files into one.

    Args:
        files: The files, in order. A text file must end with a line end, or its last line would
            continue in the next file.
        joined: The file to write.
    """
    with joined.open("wb") as output:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, output, _COPIED_BYTES)


def copy_sets(
    input_text: TextFolder,
    output_text: TextFolder,
    names: Iterable[str],
    filter_stats: FilterStats,
) -> None:
    """Copy data sets byte for byte, check the copies, and count their sentence pairs.

    Args:
        input_text: The folder to read.
        output_text: The folder to write to.
        names: The data sets, such as `valid` and `test.flickr2016`.
        filter_stats: The statistics of the stage, to which each set's pairs are added as kept.

    Raises:
        UserError: A source file has more or fewer lines than its target file, or is not UTF-8.
    """
    for name in names:
        for path, copy in zip(input_text.files(name), output_text.files(name), strict=True):
            shutil.copyfile(path, copy)
        _count_kept_set(output_text, name, filter_stats)


def link_sets(
    input_text: TextFolder,
    output_text: TextFolder,
    names: Iterable[str],
    filter_stats: FilterStats,
) -> None:
    """Add data sets to another folder as hard links, check them, and count their sentence pairs.

    A large training text then takes no further room on the disk, and is only read, to check it.
    Where hard links are not possible, the sets are copied.

    Args:
        input_text: The folder to read.
        output_text: The folder to write to, which has none of these sets yet.
        names: The data sets, such as `train` and `valid`.
        filter_stats: The statistics of the stage, to which each set's pairs are added as kept.

    Raises:
        UserError: A source file has more or fewer lines than its target file, or is not UTF-8.
    """
    for name in names:
        for path, link in zip(input_text.files(name), output_text.files(name), strict=True):
            link_or_copy(path, link)
        _count_kept_set(output_text, name, filter_stats)


def _count_kept_set(text: TextFolder, name: str, filter_stats: FilterStats) -> None:
    """Check the files of a data set, and add all of its pairs to the statistics of a stage.

    Args:
        text: The folder with the set.
        name: The set, such as `valid`.
        filter_stats: The statistics of the stage, to which the pairs are added as kept.

    Raises:
        UserError: A source file has more or fewer lines than its target file, or is not UTF-8.
    """
    counts = filter_stats.add_set(name)
    for block in text.blocks(name):
        # Decodes the bytes of the block, which fails if they are not UTF-8.
        pairs = block.pairs()
        counts.count_kept(len(pairs))
