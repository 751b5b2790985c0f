"""The stage dedup: drop repeated training pairs, and pairs with a held-out sentence.

`Deduplication` is the stage. Each shard of the training text is hashed on its own. Gathering then
compares the hashes of all shards and drops pairs in the order of the text, so that duplicates are
found across shards.

Memory: 4 bytes per training pair and key, 3 bytes per pair for the rule that drops it, the hashes
that occur more than once, and 1 GB; in each worker process, the held-out sentences. On disk, a pair
takes 16 bytes per key. The hashes are divided into ranges of about 64 million, and are read twice
for each range.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from bleuprint.config.corpus import Corpus, Dedup
from bleuprint.corpus.heldout import HASH_BYTES, HeldOutSentences, hash_text
from bleuprint.corpus.steps.filtering import DroppedBy, copy_sets, join_files, write_kept
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step, step_files
from bleuprint.rules.rule import Edits, apply_edits
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair


@dataclass(frozen=True)
class _Key:
    """A key by which pairs are compared. A pair is dropped if an earlier pair has an equal key.

    Attributes:
        setting: The name of its setting in `dedup`, and of its file of hashes in a shard.
        rule: The name of the rule that drops pairs, in the filtering statistics.
        text: Returns the text of a pair that is compared.
    """

    setting: str
    rule: str
    text: Callable[[Pair], str]


# If a pair has an equal key of several kinds, the first one here counts as the reason.
_KEYS = (
    # A line break separates the sides, since no sentence contains one.
    _Key("pairs", "duplicate_pair", lambda pair: f"{pair.source}\n{pair.target}"),
    _Key("sources", "same_source", lambda pair: pair.source),
    _Key("targets", "same_target", lambda pair: pair.target),
)
# The rules for sides 1 and 2 of a pair, as HeldOutSentences numbers them.
_OVERLAP_RULES = ("source_held_out", "target_held_out")
# The file of a shard with the held-out side of each pair, one byte per pair.
_HELD_OUT = "held-out"

# A hash as a byte string. numpy ignores zero bytes at the end of a byte string, but all hashes have
# the same length, so that comparisons are exact.
_HASH = np.dtype(f"S{HASH_BYTES}")
_Hashes = npt.NDArray[np.bytes_]
_Positions = npt.NDArray[np.intp]
_Groups = npt.NDArray[np.int32]
# The number of hashes that are read from a file at once.
_HASHES_PER_READ = 1 << 16
# The approximate number of hashes that are sorted in memory at once.
_HASHES_PER_RANGE = 1 << 26


@dataclass(frozen=True)
class Deduplication(Step):
    """The stage dedup on one corpus.

    Training sentences are compared with the held-out sentences of all language pairs of the corpus,
    both as published and after the edits.

    Attributes:
        settings: Which pairs are dropped.
        edits: The edits of the stage clean.
    """

    stage = "dedup"
    settings: Dedup
    edits: Edits

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Create the stage with the settings and paths of a corpus.

        Args:
            name: The name of the corpus.
            corpus: The settings of the corpus.
            root: The folder of the experiment.
        """
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="clean",
            output_folder="dedup",
        )
        return cls(*files, settings=corpus.dedup, edits=corpus.clean)

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Hash the pairs of a shard of the training text, and look them up in the held-out sets.

        Args:
            shard: The shard.
            part: The folder of the shard. It gets one file of hashes per key, and one file with
                the held-out side of each pair.
            workers: The number of processes.
        """
        blocks, pair_count = self.shard_blocks(shard)
        file_names = [key.setting for key in self.keys]
        file_names.append(_HELD_OUT)
        create_hasher = partial(_BlockHasher, self)
        with ExitStack() as open_files:
            progress = open_files.enter_context(
                Progress(f"hash {self.corpus} train", pair_count, "pairs")
            )
            files = []
            for file_name in file_names:
                files.append(open_files.enter_context((part / file_name).open("wb")))
            for columns in map_parts(create_hasher, blocks, workers):
                for file, column in zip(files, columns, strict=True):
                    file.write(column)
                # The last column has one byte per pair.
                progress.advance(len(columns[-1]))

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Drop the repeated and held-out pairs from the training text, and copy the held-out sets.

        Args:
            parts: The folders of the processed shards, in the order of the text.
            workers: The number of processes. Gathering uses one process, so it is not used.
        """
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as unfinished:
            after = self.input_text.with_path(unfinished)
            dropped_by = self.dropped_by(parts, unfinished)
            train_counts = filter_stats.add_set("train")
            write_kept(self.input_text, after, dropped_by, self.rules, train_counts)
            copy_sets(self.input_text, after, self.input_text.held_out(), filter_stats)
            filter_stats.write(self.filter_stats_path)

    @property
    def keys(self) -> list[_Key]:
        """The keys by which the settings compare pairs."""
        return [key for key in _KEYS if getattr(self.settings, key.setting)]

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that may drop a pair: those of keys, then those of held-out sides.

        The number of a rule is its position here, counted from 1.
        """
        key_rules = tuple(key.rule for key in self.keys)
        if self.settings.decontaminate == "none":
            return key_rules
        return key_rules + _OVERLAP_RULES

    def dropped_by(self, parts: Sequence[Path], scratch: Path) -> DroppedBy:
        """Find out which rule drops each pair of the training text.

        Args:
            parts: The folders of the processed shards, in the order of the text.
            scratch: A folder for temporary files.

        Returns:
            The number of the rule in `rules`, from 1, or 0 for a pair that is kept; shape (pairs,).
        """
        held_out_sides = np.concatenate([np.fromfile(part / _HELD_OUT, np.uint8) for part in parts])
        # The rules of the two held-out sides follow the rules of the keys.
        key_count = len(self.keys)
        dropped_by = np.where(held_out_sides, key_count + held_out_sides, 0).astype(np.uint8)
        groups_of_keys = []
        is_repeated = np.zeros(len(dropped_by), bool)
        for key in self.keys:
            hashes = scratch / key.setting
            join_files([part / key.setting for part in parts], hashes)
            groups = _group_equal_hashes(hashes)
            hashes.unlink()
            groups_of_keys.append(groups)
            is_repeated |= groups > 0
        candidates = np.flatnonzero(is_repeated & (dropped_by == 0))
        _drop_duplicates(dropped_by, candidates, groups_of_keys)
        return dropped_by


def _drop_duplicates(
    dropped_by: DroppedBy, candidates: _Positions, groups_of_keys: Sequence[_Groups]
) -> None:
    """Drop each pair that shares a key with an earlier pair that is kept.

    Only a pair that is kept drops later ones. So whether a pair is dropped depends on all pairs
    before it, and the pairs are visited in the order of the text.

    Args:
        dropped_by: The rule that drops each pair, shape (pairs,). The pairs that are dropped here
            are marked with the number of the key, from 1.
        candidates: The indices of the pairs that share a key with any other pair and are not
            dropped yet, in ascending order.
        groups_of_keys: For each key the group of each pair, shape (pairs,): the same number for
            pairs with equal keys, and 0 for a pair whose key no other pair has.
    """
    # For each key and group, whether a pair of the group was kept. Group 0 is never looked up.
    has_kept_pair = [bytearray(int(groups.max(initial=0)) + 1) for groups in groups_of_keys]
    for pair_index in candidates.tolist():
        groups_of_pair = [int(groups[pair_index]) for groups in groups_of_keys]
        shared_key = _find_shared_key(groups_of_pair, has_kept_pair)
        if shared_key is not None:
            dropped_by[pair_index] = shared_key + 1
            continue
        for key_index, group in enumerate(groups_of_pair):
            has_kept_pair[key_index][group] = True


def _find_shared_key(
    groups_of_pair: Sequence[int], has_kept_pair: Sequence[bytearray]
) -> int | None:
    """Return the index of the first key that a pair shares with a kept pair; None without any.

    Args:
        groups_of_pair: The group of the pair by each key; 0 if no other pair has an equal key.
        has_kept_pair: For each key and group, whether a pair of the group was kept.
    """
    for key_index, group in enumerate(groups_of_pair):
        if group > 0 and has_kept_pair[key_index][group]:
            return key_index
    return None


class _BlockHasher:
    """Hashes the pairs of a block by each key, and finds their held-out sides.

    Each worker process creates one, with its own copy of the held-out sentences.
    """

    def __init__(self, stage: Deduplication) -> None:
        """Read the held-out sentences."""
        self._keys = stage.keys
        self._held_out = _read_held_out(stage)

    def __call__(self, block: Block) -> list[bytes]:
        """Return the columns of a block: the hashes by each key, then the held-out sides.

        The hashes have 16 bytes per pair, the sides one byte per pair.
        """
        pairs = block.pairs()
        columns = []
        for key in self._keys:
            columns.append(b"".join([hash_text(key.text(pair)) for pair in pairs]))
        sources, targets = block.sentences()
        columns.append(self._held_out.find_sides(sources, targets))
        return columns


def _read_held_out(stage: Deduplication) -> HeldOutSentences:
    """Read the held-out sentences of all language pairs, as published and after the edits.

    A held-out sentence belongs to the side of its language. For example, an English target of a
    test set from German is a source for a corpus from English.
    """
    held_out = HeldOutSentences(stage.settings.decontaminate)
    source_language, target_language = stage.input_text.languages
    for text in stage.texts_of_all_pairs:
        for set_name in text.held_out():
            for pair in text.pairs(set_name):
                before_edits = dict(zip(text.languages, pair, strict=True))
                after_edits = {}
                for language, sentence in before_edits.items():
                    after_edits[language] = apply_edits(sentence, language, stage.edits)
                for sentences in (before_edits, after_edits):
                    source = sentences.get(source_language)
                    target = sentences.get(target_language)
                    held_out.add([(source, target)])
    return held_out


def _group_equal_hashes(path: Path) -> _Groups:
    """Give equal hashes of a file the same group number.

    To limit memory, the hashes are divided into ranges by their first bits. Equal hashes are in the
    same range.

    Args:
        path: A file of hashes, 16 bytes each.

    Returns:
        For each hash the number of its group, from 1, or 0 if it occurs once; shape (hashes,).
    """
    hash_count = path.stat().st_size // HASH_BYTES
    groups = np.zeros(hash_count, np.int32)
    range_count = math.ceil(hash_count / _HASHES_PER_RANGE)
    group_count = 0
    for range_index in range(range_count):
        repeated_hashes = _find_repeated_hashes(path, range_index, range_count)
        if len(repeated_hashes) == 0:
            continue
        for positions, hashes in _read_range(path, range_index, range_count):
            indices = np.searchsorted(repeated_hashes, hashes)
            # A hash after all repeated ones gets the index after the last, which does not exist.
            indices = np.minimum(indices, len(repeated_hashes) - 1)
            is_repeated = repeated_hashes[indices] == hashes
            groups[positions[is_repeated]] = group_count + 1 + indices[is_repeated]
        group_count += len(repeated_hashes)
    return groups


def _find_repeated_hashes(path: Path, range_index: int, range_count: int) -> _Hashes:
    """Return the hashes of one range that occur more than once, sorted, each one once."""
    # A bytearray grows in place. Concatenating arrays would need twice the memory.
    data = bytearray()
    for _, hashes in _read_range(path, range_index, range_count):
        data += hashes.tobytes()
    sorted_hashes = np.frombuffer(data, _HASH)
    sorted_hashes.sort()
    # Equal hashes are neighbors after sorting.
    is_repeated = sorted_hashes[1:] == sorted_hashes[:-1]
    return np.unique(sorted_hashes[1:][is_repeated])


def _read_range(
    path: Path, range_index: int, range_count: int
) -> Iterator[tuple[_Positions, _Hashes]]:
    """Read the hashes of one range from a file, some at a time.

    Args:
        path: A file of hashes, 16 bytes each.
        range_index: The number of the range, from 0.
        range_count: The number of ranges into which the values of the first 32 bits are divided.

    Yields:
        The positions of hashes of this range in the file, from 0, and these hashes.
    """
    with path.open("rb") as file:
        first_position = 0
        while len(hashes := np.fromfile(file, _HASH, _HASHES_PER_READ)):
            # The hashes as numbers of 32 bits, of which every fourth one begins a hash.
            first_bits = hashes.view("<u4")[:: HASH_BYTES // 4].astype(np.uint64)
            # Divides the 2**32 values of the first bits into ranges of equal size.
            ranges = (first_bits * range_count) >> 32
            (positions,) = np.nonzero(ranges == range_index)
            yield first_position + positions, hashes[positions]
            first_position += len(hashes)
