"""Deduplication: each training pair once, and none that validation or a test set gives away.

Sifting hashes the pairs, a shard at a time; gathering sees the hashes of all shards together, so
that no duplicate hides in another shard, and drops pairs in the order of the text.

Memory: 16 bytes a training pair while duplicates are looked for, then 4 for each way in which they
are, 1 for what becomes of the pair, and the hash of each that occurs more than once; in each worker
four hashes a pair held out.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus, Dedup
from bleuprint.corpus.heldout import HASH_BYTES, HeldOutSentences, hash_of
from bleuprint.corpus.steps.filtering import Verdicts, carry_over, drop, join_files, refuse_nothing
from bleuprint.corpus.steps.ledger import Ledger
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import shard_blocks
from bleuprint.rules.rule import Edits, edited
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair, TextFolder

# Of these the first that holds drops a pair; the names are those of the settings.
_KEYS: dict[str, Callable[[Pair], bytes]] = {
    "pairs": lambda pair: hash_of(f"{pair.source}\n{pair.target}"),
    "sources": lambda pair: hash_of(pair.source),
    "targets": lambda pair: hash_of(pair.target),
}
_RULES = {"pairs": "duplicate_pair", "sources": "same_source", "targets": "same_target"}
_OVERLAPS = ("source_held_out", "target_held_out")
_HELD_OUT = "held-out"
_HASHES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Deduplication:
    """The stage for one corpus; `edits` are those that its training text has been through.

    Sentences held out are looked for as they are, and as they would be after the same edits.
    """

    corpus: str
    settings: Dedup
    edits: Edits
    before: TextFolder
    dedup: Path
    ledger: Path

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage as its settings and the layout have it."""
        return cls(
            name,
            corpus.dedup,
            corpus.clean,
            TextFolder(paths.folder(name, "clean", root), corpus.source, corpus.target),
            paths.folder(name, "dedup", root),
            paths.ledger(name, "dedup", root),
        )

    def sift(self, shard: Shard, part: Path, workers: int) -> None:
        """Hash the pairs of a shard of train, and look for them in the sets held out."""
        blocks, pairs = shard_blocks(self.before, shard)
        progress = Progress(f"hash {self.corpus} train", pairs, "pairs")
        with ExitStack() as opened:
            names = (*self.keys, _HELD_OUT)
            files = [opened.enter_context((part / name).open("wb")) for name in names]
            for found in map_parts(partial(_Hashes, self), blocks, workers):
                for file, data in zip(files, found, strict=True):
                    file.write(data)
                progress.advance(len(found[-1]))
        progress.close()

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Drop repeated and leaked pairs from train."""
        rules = (*(_RULES[key] for key in self.keys), *self._overlaps)
        ledger = Ledger("dedup", self.corpus, rules)
        with whole_folder(self.dedup) as unfinished:
            after = TextFolder(unfinished, self.before.source, self.before.target)
            account = ledger.open("train")
            verdicts = self._verdicts(parts, unfinished)
            drop(self.before, after, verdicts, rules, account)
            refuse_nothing(account, "train", ledger)
            carry_over(self.before, after, self.before.held_out(), ledger)
            ledger.write(self.ledger)

    @property
    def keys(self) -> list[str]:
        """What duplicates are looked for by."""
        return [key for key in _KEYS if getattr(self.settings, key)]

    @property
    def _overlaps(self) -> tuple[str, ...]:
        return () if self.settings.overlap == "none" else _OVERLAPS

    def _verdicts(self, parts: Sequence[Path], scratch: Path) -> Verdicts:
        """For each pair of train 0 if it stays, else the number, from 1, of the rule it breaks."""
        leaks = np.concatenate([np.fromfile(part / _HELD_OUT, np.uint8) for part in parts])
        if len(leaks) != (pairs := self.before.count("train")):
            raise UserError(
                f"{parts[0].parent}: shards of {len(leaks)} pairs, but there are {pairs}: remove it"
            )
        verdicts = np.where(leaks, leaks + len(self.keys), 0).astype(np.uint8)
        groups = []
        for key in self.keys:
            joined = scratch / key
            join_files([part / key for part in parts], joined)
            if joined.stat().st_size != HASH_BYTES * pairs:
                raise UserError(f"{parts[0].parent}: shards without all hashes: remove it")
            groups.append(_groups(joined))
            joined.unlink()
        repeated = np.zeros(len(verdicts), bool)
        for of_key in groups:
            repeated |= of_key > 0
        seen = [bytearray(int(of_key.max(initial=0)) + 1) for of_key in groups]
        # A pair that is dropped is no reason to drop another: of those that agree, one stays.
        for index in np.flatnonzero(repeated & (verdicts == 0)).tolist():
            ids = [int(of_key[index]) for of_key in groups]
            known = (n for n, group in enumerate(ids) if group and seen[n][group])
            if (rule := next(known, None)) is not None:
                verdicts[index] = rule + 1
                continue
            for n, group in enumerate(ids):
                seen[n][group] = 1
        return verdicts


class _Hashes:
    """Turns a block into the hashes of its pairs, one string a key, and what is held out of it."""

    def __init__(self, stage: Deduplication) -> None:
        self._keys = [_KEYS[key] for key in stage.keys]
        self._held_out = HeldOutSentences(stage.settings.overlap)
        languages = stage.before.source, stage.before.target
        for name in stage.before.held_out():
            for pair in stage.before.pairs(name):
                source, target = map(edited, pair, languages, (stage.edits, stage.edits))
                self._held_out.add([pair, Pair(source, target)])

    def __call__(self, block: Block) -> list[bytes]:
        pairs = block.pairs()
        hashes = [b"".join(map(key, pairs)) for key in self._keys]
        return [*hashes, self._held_out.sides(pairs)]


def _groups(hashes: Path) -> npt.NDArray[np.int32]:
    """For each hash in a file 0 if it is there once, else a number that equal ones share.

    Sorting an array finds those in 16 bytes a hash; a Python set of all would take 100.
    """
    # Fixed-width byte strings compare as a whole here: what numpy ignores at the end of one, NUL,
    # is what it pads the shorter one with.
    array = np.fromfile(hashes, f"S{HASH_BYTES}")
    groups = np.zeros(len(array), np.int32)
    array.sort()
    repeated = np.unique(array[1:][array[1:] == array[:-1]])
    del array
    if len(repeated):
        with hashes.open("rb") as file:
            start = 0
            while data := file.read(HASH_BYTES * _HASHES_AT_ONCE):
                some = np.frombuffer(data, f"S{HASH_BYTES}")
                places = np.searchsorted(repeated, some)
                same = repeated[np.minimum(places, len(repeated) - 1)] == some
                groups[start : start + len(some)] = np.where(same, places + 1, 0)
                start += len(some)
    return groups
