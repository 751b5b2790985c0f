"""Stages that change or drop pairs of the training text, one by one."""

import shutil
from abc import abstractmethod
from collections.abc import Iterable, Sequence
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

_COUNTS = "counts.json"

# For each pair of a set 0 if it is kept, else the number, from 1, of the rule that drops it.
DroppedBy: TypeAlias = "npt.NDArray[np.uint8]"


class FilteredBlock(NamedTuple):
    """The pairs kept of a block, both sides as bytes, and its counts."""

    source: bytes
    target: bytes
    counts: SetCounts


@dataclass(frozen=True)
class FilterStep(Step):
    """A stage on one corpus that filters `before` into the folder `output`."""

    @abstractmethod
    def filter_block(self, name: str, block: Block) -> FilteredBlock:
        """The pairs that are kept of a block of the set `name`."""

    def write_held_out(self, after: TextFolder, filter_stats: FilterStats, workers: int) -> None:  # noqa: ARG002
        """Write validation and test sets: copies, unless a stage overrides this."""
        copy_sets(self.input_text, after, self.input_text.held_out(), filter_stats)

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Write the pairs kept of a shard of train, and its counts."""
        counts = self.new_filter_stats().add_set("train")
        blocks, pairs = self.shard_blocks(shard)
        self.filter_set("train", blocks, pairs, self.input_text.with_path(part), counts, workers)
        write_json(part / _COUNTS, vars(counts))

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards of train, and write the held-out sets and the filtering statistics."""
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as unfinished:
            after, counts = self.input_text.with_path(unfinished), filter_stats.add_set("train")
            for part in parts:
                remedy = f"remove {part}, and run its shard again"
                counts.add(read_record(SetCounts, part / _COUNTS, remedy))
            texts = zip(*(after.with_path(part).files("train") for part in parts), strict=True)
            for files, joined in zip(texts, after.files("train"), strict=True):
                join_files(files, joined)
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
        """Write the pairs kept of blocks, of `pairs` pairs, as a set, and add to its counts."""
        progress = Progress(f"{self.stage} {self.corpus} {name}", pairs, "pairs")
        with after.writer(name) as writer, progress:
            for filtered in map_parts(partial(partial, self.filter_block, name), blocks, workers):
                writer.write_packed(filtered.source, filtered.target)
                counts.add(filtered.counts)
                progress.advance(filtered.counts.pairs_in)


def kept_pairs(block: Block, rules: Sequence[str | None]) -> FilteredBlock:
    """The pairs of a block that no rule drops; `rules`: the one that drops each pair, or None."""
    counts = SetCounts()
    counts.count_kept(rules.count(None))
    numbered = zip(block.numbered_pairs(), rules, strict=True) if any(rules) else ()
    for (number, pair), rule in numbered:
        if rule is not None:
            counts.record_dropped(rule, number, pair)
    return FilteredBlock(*block.select(rule is None for rule in rules), counts)


def write_kept(
    before: TextFolder,
    after: TextFolder,
    dropped_by: DroppedBy,
    rules: Sequence[str],
    counts: SetCounts,
) -> None:
    """Write the pairs of train that are kept; rule n of `dropped_by` is `rules[n - 1]`."""
    names = (None, *rules)
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            numbers = dropped_by[block.first - 1 :][: len(block)].tolist()
            kept = kept_pairs(block, [names[number] for number in numbers])
            writer.write_packed(kept.source, kept.target)
            counts.add(kept.counts)


def join_files(files: Iterable[Path], joined: Path) -> None:
    """Concatenate files that end at a line's end."""
    with joined.open("wb") as out:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)


def copy_sets(
    before: TextFolder, after: TextFolder, names: Iterable[str], filter_stats: FilterStats
) -> None:
    """Copy sets byte for byte, and count them; raises UserError if one is not parallel UTF-8."""
    for name in names:
        for old, new in zip(before.files(name), after.files(name), strict=True):
            shutil.copyfile(old, new)
        counts = filter_stats.add_set(name)
        for block in after.blocks(name):
            counts.count_kept(len(block.pairs()))
