"""The stage split: draws the validation and test sets that a corpus lacks.

The pairs with the smallest hashes are drawn to test, those with the largest to validate, so that
text that is added or dropped changes few others; or every n-th pair validates. The other pairs keep
their order. Pairs left in train that share a sentence with a drawn pair are dropped, and drawn
validation pairs that share one with the test set.

Memory, where pairs are drawn: 17 bytes a training pair, and the sentences that are drawn.
"""

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.config.corpus import Split
from bleuprint.corpus.heldout import Decontaminate, HeldOutSentences
from bleuprint.corpus.steps.filter_stats import FilterStats
from bleuprint.corpus.steps.filtering import DroppedBy, copy_sets, write_kept
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, TextFolder

RULES = ("drawn_for_valid", "drawn_for_test", "source_held_out", "target_held_out")
DRAWN_TEST_SET = "test.held-out"

# As numbers of RULES: 0 stays in train.
_TRAIN, _VALID, _TEST = range(3)


def split_folder(
    corpus: str,
    settings: Split,
    decontaminate: Decontaminate,
    before: TextFolder,
    split: Path,
    filter_stats_path: Path,
    workers: int,
) -> None:
    """Draw the sets that are missing; published sets are copied."""
    filter_stats = FilterStats(
        "split", corpus, fingerprint.of_settings(settings, decontaminate), RULES
    )
    given = before.held_out()
    with atomic_folder(split) as unfinished:
        after = before.with_path(unfinished)
        # from an empty text, of a zero-shot direction, nothing is drawn
        if ("valid" in given and len(given) > 1) or not before.count("train"):
            copy_sets(before, after, ["train"], filter_stats)
        else:
            drawn_for = _draw(corpus, settings, before, given, workers)
            held_out = HeldOutSentences(decontaminate)
            for name, number in ((DRAWN_TEST_SET, _TEST), ("valid", _VALID)):
                if (drawn := drawn_for == number).any():
                    _write_drawn(before, after, name, drawn, held_out, filter_stats)
                    held_out.add(after.pairs(name))
            sides = _held_out_sides(corpus, before, held_out, workers)
            rest = np.where(drawn_for, drawn_for, np.where(sides, sides + _TEST, 0))
            write_kept(before, after, rest.astype(np.uint8), RULES, filter_stats.add_set("train"))
        copy_sets(before, after, given, filter_stats)
        filter_stats.write(filter_stats_path)


def _draw(
    corpus: str, settings: Split, before: TextFolder, given: list[str], workers: int
) -> DroppedBy:
    """The set of each training pair: _TRAIN, _VALID or _TEST."""
    pairs = before.count("train")
    has_valid, has_test = "valid" in given, any(name != "valid" for name in given)
    every = 0 if has_valid else settings.every or 0
    valid = 0 if has_valid or every else max(1, round(settings.valid * pairs))
    test = 0 if has_test else max(1, round(settings.test * pairs))
    if valid + test >= pairs:
        raise UserError(
            f"corpus {corpus}: too few pairs ({pairs}) to draw {valid} for validation and {test} "
            "to test, and train on the rest"
        )
    drawn_for = np.full(pairs, _TRAIN, np.uint8)
    if every:
        drawn_for[every - 1 :: every] = _VALID
    if valid + test:
        blocks = map_parts(partial(_hasher, settings.seed), before.blocks("train"), workers)
        order = np.frombuffer(b"".join(blocks), "<u8").argsort(kind="stable")
        drawn_for[order[:test]] = _TEST
        drawn_for[order[pairs - valid :]] = _VALID
    if every and not (drawn_for == _VALID).any():
        raise UserError(f"corpus {corpus}: no pair is left for validation by split.every {every}")
    return drawn_for


def _hasher(seed: int) -> Callable[[Block], bytes]:
    """Hashes of the pairs of a block, 8 bytes each, by the seed."""
    key = seed.to_bytes(4, "little")

    def hashes(block: Block) -> bytes:
        texts = ("\t".join(pair).encode() for pair in block.pairs())
        return b"".join(blake2b(text, digest_size=8, key=key).digest() for text in texts)

    return hashes


def _write_drawn(
    before: TextFolder,
    after: TextFolder,
    name: str,
    drawn: npt.NDArray[np.bool_],
    held_out: HeldOutSentences,
    filter_stats: FilterStats,
) -> None:
    """Write the pairs drawn for one set, except those with a held-out sentence."""
    counts = filter_stats.add_set(name)
    with after.writer(name) as writer:
        for block in before.blocks("train"):
            chosen = drawn[block.first - 1 :][: len(block)]
            pairs = [*compress(block.numbered_pairs(), chosen)] if chosen.any() else []
            sides = held_out.sides(*([pair[side] for _, pair in pairs] for side in (0, 1)))
            for (number, pair), side in zip(pairs, sides, strict=True):
                if side:
                    counts.record_dropped(RULES[1 + side], number, pair)
                else:
                    counts.count_kept()
                    writer.write(pair)


def _held_out_sides(
    corpus: str, train: TextFolder, held_out: HeldOutSentences, workers: int
) -> DroppedBy:
    """For each training pair 0, or the side that is a held-out sentence: 1 or 2."""
    sides = []
    with Progress(f"split {corpus} train", train.count("train"), "pairs") as progress:
        for data in map_parts(partial(_side_finder, held_out), train.blocks("train"), workers):
            sides.append(np.frombuffer(data, np.uint8))
            progress.advance(len(data))
    return np.concatenate(sides)


def _side_finder(held_out: HeldOutSentences) -> Callable[[Block], bytes]:
    return lambda block: held_out.sides(*block.sides())
