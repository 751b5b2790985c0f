"""The stage split: draw the validation and test sets that a corpus lacks.

`split_folder` is the stage. Each training pair has a hash. The pairs with the smallest hashes
become the test set, and those with the largest hashes the validation set, so that adding or
dropping text changes few other pairs of these sets. With `split.every`, each n-th pair becomes a
validation pair instead. The remaining pairs keep their order.

A sentence must not be in two sets: pairs that share a sentence with a drawn pair are dropped from
the training text, and validation pairs that share one with the test set are dropped, too.

Files that do not change are not copied: they become hard links to the files of the stage filter.

Memory, where pairs are drawn: 17 bytes per training pair, and the sentences that are drawn.
"""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.config.corpus import Split
from bleuprint.corpus.heldout import Decontaminate, HeldOutSentences
from bleuprint.corpus.steps.filter_stats import FilterStats
from bleuprint.corpus.steps.filtering import link_sets, write_kept
from bleuprint.runtime import fingerprint
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, TextFolder

# The reasons for which a pair leaves the training text, as the filtering statistics name them.
RULES = ("drawn_for_valid", "drawn_for_test", "source_held_out", "target_held_out")
# The name of a test set that is drawn.
DRAWN_TEST_SET = "test.held-out"

# The numbers of the sets that a training pair can be drawn for. _VALID and _TEST are also the
# numbers, from 1, of their rules in RULES.
_TRAIN = 0
_VALID = 1
_TEST = 2
# In RULES, the two rules of drawn pairs come before source_held_out and target_held_out.
# HeldOutSentences numbers the sides of a pair: source 1, target 2. So the number of a side's rule
# is the number of the side plus 2.
_RULES_BEFORE_SIDES = 2

_HASH_BYTES = 8
# The same 8 bytes as a number for numpy: unsigned, little-endian.
_HASH_DTYPE = "<u8"


def split_folder(
    corpus: str,
    settings: Split,
    decontaminate: Decontaminate,
    filtered_text: TextFolder,
    split: Path,
    filter_stats_path: Path,
    workers: int,
) -> None:
    """Draw the validation and test sets that a corpus lacks; the other sets stay as they are.

    The missing sets are drawn from the training text. Training pairs that share a sentence with a
    drawn set are then dropped, so that no system is tested on sentences that it has seen.

    Published sets do not change, and neither does the training text if no set is missing. Such sets
    are not copied: their files become hard links to the files of the filtered text.

    Args:
        corpus: The name of the corpus.
        settings: How many pairs to draw, and the sampling seed.
        decontaminate: How sentences of two sets are compared: "exact", "normalized" (without case
            and punctuation), or "none", which drops no training pairs.
        filtered_text: The folder with the filtered text.
        split: The folder to write.
        filter_stats_path: The file for the filtering statistics: how many pairs were kept, drawn
            and dropped.
        workers: The number of processes.

    Raises:
        UserError: The corpus has too few pairs to draw from.
    """
    settings_sha256 = fingerprint.of_settings(settings, decontaminate)
    filter_stats = FilterStats("split", corpus, settings_sha256, RULES)
    existing_sets = filtered_text.held_out()
    has_all_sets = "valid" in existing_sets and len(existing_sets) > 1
    # The training text of a zero-shot direction is empty, so that nothing can be drawn from it.
    is_empty = filtered_text.count("train") == 0
    with atomic_folder(split) as unfinished:
        split_text = filtered_text.with_path(unfinished)
        if has_all_sets or is_empty:
            link_sets(filtered_text, split_text, ["train"], filter_stats)
        else:
            set_of_pair = _draw_sets(corpus, settings, filtered_text, existing_sets, workers)
            held_out = HeldOutSentences(decontaminate)
            # This also fills `held_out` with the sentences of the drawn sets.
            _write_drawn_sets(filtered_text, split_text, set_of_pair, held_out, filter_stats)
            held_out_sides = _find_held_out_sides(corpus, filtered_text, held_out, workers)
            rule_of_pair = _combine_rules(set_of_pair, held_out_sides)
            write_kept(
                filtered_text, split_text, rule_of_pair, RULES, filter_stats.add_set("train")
            )
        link_sets(filtered_text, split_text, existing_sets, filter_stats)
        filter_stats.write(filter_stats_path)


def _write_drawn_sets(
    filtered_text: TextFolder,
    split_text: TextFolder,
    set_of_pair: npt.NDArray[np.uint8],
    held_out: HeldOutSentences,
    filter_stats: FilterStats,
) -> None:
    """Write the test set, then the validation set that were drawn from the training text.

    The test set is written first, because validation pairs that share a sentence with it are
    dropped.

    Args:
        filtered_text: The folder with the filtered text.
        split_text: The folder to write to.
        set_of_pair: The set that each pair is drawn for: `_TRAIN`, `_VALID` or `_TEST`, (pairs,).
        held_out: An empty collection, to which the sentences of both sets are added.
        filter_stats: The statistics to which the kept and dropped pairs of the sets are added.
    """
    for set_name, set_number in ((DRAWN_TEST_SET, _TEST), ("valid", _VALID)):
        is_drawn = set_of_pair == set_number
        if is_drawn.any():
            _write_drawn_set(filtered_text, split_text, set_name, is_drawn, held_out, filter_stats)
            held_out.add(split_text.pairs(set_name))


def _draw_sets(
    corpus: str,
    settings: Split,
    filtered_text: TextFolder,
    existing_sets: Sequence[str],
    workers: int,
) -> npt.NDArray[np.uint8]:
    """Choose the training pairs that become the validation and test sets which a corpus lacks.

    The pairs with the smallest hashes become the test set, those with the largest hashes the
    validation set. A hash depends on the pair alone, not on its position: if pairs are added to the
    text, most of the drawn ones stay the same. With the setting `every`, the validation set is each
    n-th pair instead.

    Args:
        corpus: The name of the corpus, for messages.
        settings: How many pairs to draw, and the sampling seed.
        filtered_text: The folder with the filtered text.
        existing_sets: The names of the validation and test sets that the corpus has.
        workers: The number of processes.

    Returns:
        For each pair the set that it is drawn for: `_TRAIN`, `_VALID` or `_TEST`, (pairs,).

    Raises:
        UserError: The corpus has too few pairs, or none is left for the validation set.
    """
    pair_count = filtered_text.count("train")
    valid_interval = None if "valid" in existing_sets else settings.every
    valid_count, test_count = _counts_to_draw(corpus, settings, pair_count, existing_sets)
    set_of_pair = np.full(pair_count, _TRAIN, np.uint8)
    if valid_interval is not None:
        first_valid = valid_interval - 1  # The n-th pair has the index n - 1.
        set_of_pair[first_valid::valid_interval] = _VALID
    if valid_count + test_count > 0:
        # The pair with the smallest hash comes first.
        indices_by_hash = _sort_by_hash(filtered_text, settings.seed, workers)
        set_of_pair[indices_by_hash[:test_count]] = _TEST
        set_of_pair[indices_by_hash[pair_count - valid_count :]] = _VALID
    # Of a small text, all validation pairs may have been drawn for the test set as well.
    has_valid_pair = (set_of_pair == _VALID).any()
    if valid_interval is not None and not has_valid_pair:
        raise UserError(
            f"corpus {corpus}: no pair is left for validation. Lower split.every, which is "
            f"{valid_interval}"
        )
    return set_of_pair


def _counts_to_draw(
    corpus: str, settings: Split, pair_count: int, existing_sets: Sequence[str]
) -> tuple[int, int]:
    """Return how many training pairs to draw by their hashes, for validation and for the test set.

    The number is 0 for a set that exists, and for a validation set of each n-th pair (the setting
    `every`), which does not depend on hashes.

    Args:
        corpus: The name of the corpus, for the message.
        settings: The share of the pairs to draw for each set.
        pair_count: The number of training pairs.
        existing_sets: The names of the validation and test sets that the corpus has.

    Raises:
        UserError: No pair would be left to train on.
    """
    valid_count = 0
    if "valid" not in existing_sets and settings.every is None:
        valid_count = max(1, round(settings.valid * pair_count))
    test_count = 0
    has_test = any(set_name != "valid" for set_name in existing_sets)
    if not has_test:
        test_count = max(1, round(settings.test * pair_count))
    if valid_count + test_count >= pair_count:
        raise UserError(
            f"corpus {corpus}: too few pairs ({pair_count}) to draw {valid_count} for validation "
            f"and {test_count} for testing, and to train on the rest. Add text"
        )
    return valid_count, test_count


def _sort_by_hash(train: TextFolder, seed: int, workers: int) -> npt.NDArray[np.intp]:
    """Bring the training pairs into a random order, by sorting them by their hashes.

    The order of two pairs does not depend on which other pairs the text contains.

    Args:
        train: The folder with the training text.
        seed: The sampling seed; another one gives another order.
        workers: The number of processes.

    Returns:
        The indices of the pairs in this order, (pairs,).
    """
    create_hasher = partial(_block_hasher, seed)
    hashes_of_blocks = map_parts(create_hasher, train.blocks("train"), workers)
    hashes = np.frombuffer(b"".join(hashes_of_blocks), _HASH_DTYPE)
    # A stable sort: equal pairs have equal hashes, and stay in the order of the text.
    return hashes.argsort(kind="stable")


def _block_hasher(seed: int) -> Callable[[Block], bytes]:
    """Return a function that hashes sentence pairs; each worker process calls this once.

    The hashes bring the pairs into a random order, to draw the validation and the test set. A hash
    depends on the pair and the seed alone, not on the position in the text.

    Args:
        seed: The sampling seed; another one draws other pairs.
    """
    key = seed.to_bytes(4, "little")

    def hash_pairs(block: Block) -> bytes:
        """Return the hashes of all sentence pairs of a block, 8 bytes each, one after the other."""
        hashes = []
        for pair in block.pairs():
            text = f"{pair.source}\t{pair.target}".encode()
            hashes.append(blake2b(text, digest_size=_HASH_BYTES, key=key).digest())
        return b"".join(hashes)

    return hash_pairs


def _write_drawn_set(
    filtered_text: TextFolder,
    split_text: TextFolder,
    set_name: str,
    is_drawn: npt.NDArray[np.bool_],
    held_out: HeldOutSentences,
    filter_stats: FilterStats,
) -> None:
    """Write a validation or test set of pairs that were drawn from the training text.

    A drawn pair is dropped if one of its sentences is in a set that was drawn before.

    Args:
        filtered_text: The folder with the filtered text.
        split_text: The folder to write to.
        set_name: The set to write, such as `valid`.
        is_drawn: Whether each training pair was drawn for this set, (pairs,).
        held_out: The sentences of the sets that were drawn before.
        filter_stats: The statistics to which the kept and dropped pairs of the set are added.
    """
    counts = filter_stats.add_set(set_name)
    with split_text.writer(set_name) as writer:
        for block in filtered_text.blocks("train"):
            first_index = block.first - 1  # `first` counts from 1.
            is_drawn_in_block = is_drawn[first_index : first_index + len(block)]
            if not is_drawn_in_block.any():
                continue
            drawn_pairs = list(compress(block.numbered_pairs(), is_drawn_in_block))
            held_out_sides = held_out.find_sides(
                sources=[pair.source for _, pair in drawn_pairs],
                targets=[pair.target for _, pair in drawn_pairs],
            )
            # The side that is in an earlier set: 1 for the source, 2 for the target, 0 for neither.
            for (number, pair), side in zip(drawn_pairs, held_out_sides, strict=True):
                if side != 0:
                    counts.record_dropped(_rule_of_side(side), number, pair)
                else:
                    counts.count_kept()
                    writer.write(pair)


def _rule_of_side(side: int) -> str:
    """Return the rule under which the statistics count a pair with a sentence of another set.

    Args:
        side: Which sentence of the pair is in another set: 1 for the source, 2 for the target.

    Returns:
        `source_held_out` or `target_held_out`.
    """
    rule_number = side + _RULES_BEFORE_SIDES
    return RULES[rule_number - 1]  # Rules are numbered from 1.


def _combine_rules(
    set_of_pair: npt.NDArray[np.uint8], held_out_sides: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Return for each training pair the number of the rule that drops it from the training text.

    A pair is dropped because it was drawn for the validation or test set, or otherwise because one
    of its sentences is also in such a set.

    Args:
        set_of_pair: The set that each pair is drawn for: `_TRAIN`, `_VALID` or `_TEST`, (pairs,).
            The last two are also the numbers of their rules.
        held_out_sides: Which side of each pair is in another set, (pairs,): 1 for the source, 2 for
            the target, 0 for neither.

    Returns:
        The number of each pair's rule in RULES, from 1; 0 if the pair is kept, (pairs,).
    """
    side_rules = np.where(held_out_sides > 0, held_out_sides + _RULES_BEFORE_SIDES, 0)
    is_drawn = set_of_pair != _TRAIN
    return np.where(is_drawn, set_of_pair, side_rules).astype(np.uint8)


def _find_held_out_sides(
    corpus: str, train: TextFolder, held_out: HeldOutSentences, workers: int
) -> npt.NDArray[np.uint8]:
    """Find the training pairs that share a sentence with a validation or test set.

    Args:
        corpus: The name of the corpus, for the progress bar.
        train: The folder with the training text.
        held_out: The sentences of the validation and test sets.
        workers: The number of processes.

    Returns:
        Which side of each pair is such a sentence, (pairs,): 1 for the source, 2 for the target, 0
        for neither.
    """
    sides_of_blocks = []
    with Progress(f"split {corpus} train", train.count("train"), "pairs") as progress:
        create_finder = partial(_block_side_finder, held_out)
        for sides in map_parts(create_finder, train.blocks("train"), workers):
            sides_of_blocks.append(np.frombuffer(sides, np.uint8))
            progress.advance(len(sides))
    return np.concatenate(sides_of_blocks)


def _block_side_finder(held_out: HeldOutSentences) -> Callable[[Block], bytes]:
    """Return a function that looks up training pairs in the validation and test sets.

    Each worker process calls this once.

    Args:
        held_out: The sentences of the validation and test sets.
    """

    def find_sides(block: Block) -> bytes:
        """Return which side of each pair of a block is in these sets, one byte per pair."""
        sources, targets = block.sentences()
        return held_out.find_sides(sources, targets)

    return find_sides
