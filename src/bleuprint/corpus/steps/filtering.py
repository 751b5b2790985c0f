"""Filtering pairs one by one, by blocks and shards, for the stages that change or drop pairs."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair, TextFolder, count_lines, packed

_COUNTS = "counts.json"

# For each pair of a set 0 if it is kept, else the number, from 1, of the rule that drops it.
DroppedBy = npt.NDArray[np.uint8]


class FilteredBlock(NamedTuple):
    """The pairs kept of a block, both sides as bytes, and its counts."""

    source: bytes
    target: bytes
    counts: SetCounts


# Returns the pair to keep, or counts it as dropped and returns None; the int is its number.
KeepOrDrop = Callable[[int, Pair, SetCounts], Pair | None]


class PairFilter:
    """Filters blocks with `keep_or_drop`; `zero` makes the counts of a block."""

    def __init__(self, keep_or_drop: KeepOrDrop, zero: Callable[[], SetCounts]) -> None:
        self._keep_or_drop, self._zero = keep_or_drop, zero

    def __call__(self, block: Block) -> FilteredBlock:
        counts, kept = self._zero(), []
        for number, pair in block.numbered():
            if (new := self._keep_or_drop(number, pair, counts)) is not None:
                counts.keep()
                kept.append(new)
        return FilteredBlock(*packed(kept), counts)


def filter_blocks(
    blocks: Iterable[Block],
    prepare: Callable[[], Callable[[Block], FilteredBlock]],
    after: TextFolder,
    name: str,
    progress: Progress,
    counts: SetCounts,
    workers: int,
) -> None:
    """Write the pairs kept of blocks as set `name` of `after`, and add to its counts."""
    with after.writer(name) as writer, progress:
        for filtered in map_parts(prepare, blocks, workers):
            writer.write_packed(filtered.source, filtered.target)
            counts.add(filtered.counts)
            progress.advance(filtered.counts.pairs_in)


def filter_shard(
    blocks: Iterable[Block],
    pairs: int,
    prepare: Callable[[], Callable[[Block], FilteredBlock]],
    part: TextFolder,
    ledger: Ledger,
    workers: int,
) -> None:
    """Write the pairs kept of a shard, of `pairs` pairs, and its counts into `part`."""
    counts = ledger.open("train")
    progress = Progress(f"{ledger.stage} {ledger.corpus} train", pairs, "pairs")
    filter_blocks(blocks, prepare, part, "train", progress, counts, workers)
    write_json(part.path / _COUNTS, vars(counts))


def gather_train(parts: Sequence[Path], after: TextFolder, ledger: Ledger, pairs: int) -> None:
    """Join the training texts and counts of shards.

    Raises UserError if a shard differs from its counts, if the shards are not of `pairs` pairs in
    all, and if no pair is left.
    """
    counts = ledger.open("train")
    texts = [TextFolder(part, after.source, after.target).files("train") for part in parts]
    for part, files in zip(parts, texts, strict=True):
        shard_counts = SetCounts(**read_json(part / _COUNTS))
        counts.add(shard_counts)
        for path in files:
            if (lines := count_lines(path)) != shard_counts.pairs_out:
                raise UserError(
                    f"{path}: {lines} lines, not {shard_counts.pairs_out}: damaged; remove {part}"
                )
    check_pairs(parts, counts.pairs_in, pairs)
    for files, joined in zip(zip(*texts, strict=True), after.files("train"), strict=True):
        join_files(files, joined)
    check_not_empty(counts, "train", ledger)


def check_pairs(parts: Sequence[Path], found: int, pairs: int) -> None:
    """Raise UserError if shards have another number of pairs than their text."""
    if found != pairs:
        raise UserError(
            f"{parts[0].parent}: shards of {found} pairs, but there are {pairs}: remove it"
        )


def write_kept(
    before: TextFolder,
    after: TextFolder,
    dropped_by: DroppedBy,
    rules: Sequence[str],
    counts: SetCounts,
) -> None:
    """Write the pairs of train that are kept; rule n of `dropped_by` is `rules[n - 1]`."""
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            numbers = dropped_by[block.first - 1 :][: len(block)].tolist()
            if not any(numbers):
                writer.write_packed(block.source, block.target)
                counts.keep(len(numbers))
                continue
            kept = []
            for (number, pair), rule in zip(block.numbered(), numbers, strict=True):
                if rule:
                    counts.drop(rules[rule - 1], number, pair)
                else:
                    counts.keep()
                    kept.append(pair)
            writer.write_packed(*packed(kept))


def check_not_empty(counts: SetCounts, name: str, ledger: Ledger) -> None:
    """Raise UserError if no pair of a set is left."""
    if not counts.pairs_out:
        raise UserError(
            f"corpus {ledger.corpus}: nothing left of {name} after {ledger.stage}: {counts.drops}"
        )


def join_files(files: Iterable[Path], joined: Path) -> None:
    """Concatenate files that end at a line's end."""
    with joined.open("wb") as out:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)


def copy_sets(before: TextFolder, after: TextFolder, names: Iterable[str], ledger: Ledger) -> None:
    """Copy sets byte for byte, and count them."""
    for name in names:
        for old, new in zip(before.files(name), after.files(name), strict=True):
            shutil.copyfile(old, new)
        count_set(after, name, ledger)


def count_set(folder: TextFolder, name: str, ledger: Ledger) -> None:
    """Count a set of which every pair is kept; raises UserError if it is not parallel UTF-8."""
    counts = ledger.open(name)
    for block in folder.blocks(name):
        counts.keep(len(block.pairs()))
