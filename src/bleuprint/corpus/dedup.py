"""The stage dedup: drops repeated training pairs, and pairs with a held-out sentence.

Pairs are hashed shard by shard; gathering compares the hashes of all shards and drops pairs in the
order of the text, so that duplicates are found across shards.

Memory: 4 bytes a training pair for each key, 3 for what drops it, the hashes that occur more than
once, and 1 GB; in each worker the held-out sentences. Hashes are 16 bytes a pair and key on
disk: they are read once for every 64 million pairs, each time for the hashes of one range.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from bleuprint.config.corpus import Corpus, Dedup
from bleuprint.corpus.heldout import HASH_BYTES, HeldOutSentences, hash_of
from bleuprint.corpus.steps.filtering import DroppedBy, copy_sets, join_files, write_kept
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step, step_files
from bleuprint.rules.rule import Edits, apply_edits
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair

# Rules and keys by the names of settings; the first key shared with an earlier pair drops a pair.
_KEYS: dict[str, tuple[str, Callable[[Pair], bytes]]] = {
    "pairs": ("duplicate_pair", lambda pair: hash_of(f"{pair.source}\n{pair.target}")),
    "sources": ("same_source", lambda pair: hash_of(pair.source)),
    "targets": ("same_target", lambda pair: hash_of(pair.target)),
}
_OVERLAP_RULES = ("source_held_out", "target_held_out")
_HELD_OUT = "held-out"
# numpy ignores NULs at the end of byte strings, but pads with them too: comparison is exact.
_HASH = np.dtype(f"S{HASH_BYTES}")
_Hashes = npt.NDArray[np.bytes_]
_Places = npt.NDArray[np.intp]
_HASHES_AT_ONCE = 1 << 16
# Hashes that are sorted together, about: those that begin with the same bits.
_SORTED = 1 << 26


@dataclass(frozen=True)
class Deduplication(Step):
    """The stage for one corpus; `edits` are those applied to its training text.

    Training sentences are compared with held-out sentences of all language pairs of the corpus, as
    published and after the edits.
    """

    stage = "dedup"
    settings: Dedup
    edits: Edits

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
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
        """Hash the pairs of a shard of train, and look them up in the held-out sets."""
        blocks, pairs = self.shard_blocks(shard)
        with ExitStack() as opened:
            progress = opened.enter_context(Progress(f"hash {self.corpus} train", pairs, "pairs"))
            names = (*self.keys, _HELD_OUT)
            files = [opened.enter_context((part / name).open("wb")) for name in names]
            for columns in map_parts(partial(_BlockHasher, self), blocks, workers):
                for file, data in zip(files, columns, strict=True):
                    file.write(data)
                progress.advance(len(columns[-1]))

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Drop repeated and held-out pairs from train."""
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as unfinished:
            after = self.input_text.with_path(unfinished)
            dropped_by = self.dropped_by(parts, unfinished)
            write_kept(
                self.input_text, after, dropped_by, self.rules, filter_stats.add_set("train")
            )
            copy_sets(self.input_text, after, self.input_text.held_out(), filter_stats)
            filter_stats.write(self.filter_stats_path)

    @property
    def keys(self) -> list[str]:
        """The keys by which pairs are compared: pairs, sources, targets."""
        return [key for key in _KEYS if getattr(self.settings, key)]

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that may drop a pair."""
        overlaps = () if self.settings.decontaminate == "none" else _OVERLAP_RULES
        return *(_KEYS[key][0] for key in self.keys), *overlaps

    def dropped_by(self, parts: Sequence[Path], scratch: Path) -> DroppedBy:
        """The rule that drops each pair of train; `parts` are its processed shards."""
        leaks = np.concatenate([np.fromfile(part / _HELD_OUT, np.uint8) for part in parts])
        dropped_by = np.where(leaks, leaks + len(self.keys), 0).astype(np.uint8)
        groups, repeated = [], np.zeros(len(leaks), bool)
        for key in self.keys:
            join_files([part / key for part in parts], joined := scratch / key)
            groups.append(_groups(joined))
            joined.unlink()
            repeated |= groups[-1] > 0
        seen = [bytearray(int(key_groups.max(initial=0)) + 1) for key_groups in groups]
        # Only a pair that is kept drops later ones: of the pairs that agree, one stays.
        for index in np.flatnonzero(repeated & (dropped_by == 0)).tolist():
            ids = [int(key_groups[index]) for key_groups in groups]
            known = (n for n, group in enumerate(ids) if group and seen[n][group])
            if (rule := next(known, None)) is not None:
                dropped_by[index] = rule + 1
                continue
            for n, group in enumerate(ids):
                seen[n][group] = 1
        return dropped_by


class _BlockHasher:
    """Returns for a block the hashes of its pairs by each key, and its held-out sides."""

    def __init__(self, stage: Deduplication) -> None:
        self._keys = [_KEYS[key][1] for key in stage.keys]
        self._held_out = HeldOutSentences(stage.settings.decontaminate)
        ours = stage.input_text.languages
        for texts in stage.texts_of_all_pairs:
            for pair in (pair for name in texts.held_out() for pair in texts.pairs(name)):
                sides = dict(zip(texts.languages, pair, strict=True))
                after = {of: apply_edits(side, of, stage.edits) for of, side in sides.items()}
                self._held_out.add((by.get(ours[0]), by.get(ours[1])) for by in (sides, after))

    def __call__(self, block: Block) -> list[bytes]:
        pairs = block.pairs()
        hashes = [b"".join(map(key, pairs)) for key in self._keys]
        return [*hashes, self._held_out.sides(*block.sides())]


def _groups(hashes: Path) -> npt.NDArray[np.int32]:
    """For each hash in a file 0 if it occurs once, else a number shared by equal hashes.

    Equal hashes begin with the same bits: a turn for each value of these sorts a part of them.
    """
    groups = np.zeros(hashes.stat().st_size // HASH_BYTES, np.int32)
    turns, known = -(-len(groups) // _SORTED), 0
    for turn in range(turns):
        data = bytearray()  # grows in place, as an array does not
        for _, some in _of_turn(hashes, turn, turns):
            data += some.tobytes()
        part = np.frombuffer(data, _HASH)
        part.sort()
        repeated = np.unique(part[1:][part[1:] == part[:-1]])
        del part, data
        for places, some in _of_turn(hashes, turn, turns) if len(repeated) else ():
            found = np.searchsorted(repeated, some)
            same = repeated[np.minimum(found, len(repeated) - 1)] == some
            groups[places[same]] = known + 1 + found[same]
        known += len(repeated)
    return groups


def _of_turn(hashes: Path, turn: int, turns: int) -> Iterator[tuple[_Places, _Hashes]]:
    """The places in a file of the hashes whose first 32 bits have their turn, and these hashes."""
    with hashes.open("rb") as file:
        start = 0
        while len(some := np.fromfile(file, _HASH, _HASHES_AT_ONCE)):
            first = some.view("<u4")[:: HASH_BYTES // 4].astype(np.uint64)
            (places,) = np.nonzero((first * turns) >> 32 == turn)
            yield start + places, some[places]
            start += len(some)
