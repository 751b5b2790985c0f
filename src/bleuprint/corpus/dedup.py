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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from bleuprint.config.corpus import Corpus, Dedup
from bleuprint.corpus.cleaned_text import CleanedText, edits_of_parts
from bleuprint.corpus.heldout import HASH_BYTES, HeldOutSentences, hash_text
from bleuprint.corpus.steps.filtering import copy_sets, join_files, write_kept
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step, step_files
from bleuprint.rules.rule import Edits, apply_edits
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair


@dataclass(frozen=True)
class _Key:
    """A text of a sentence pair, such as its source, by which the stage finds duplicates.

    A pair is dropped if an earlier pair has an equal key.

    Attributes:
        setting: The name of its setting in `dedup`, and of its file of hashes in a shard: `sources`
            for example.
        rule: The name under which the filtering statistics count the dropped pairs, such as
            `same_source`.
        text: The function that returns this text of a pair.
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
# The rules that drop pairs with a sentence of a validation or test set, for sides 1 and 2 of a pair
# (HeldOutSentences numbers the sides).
OVERLAP_RULES = ("source_held_out", "target_held_out")
# The file in the output that says how many of the training pairs are from parts.
FILTERED_COUNT_FILE = "filtered.json"
# The file of a shard with the held-out side of each pair, one byte per pair.
_HELD_OUT_FILE = "held-out"

# A hash as a byte string. numpy ignores zero bytes at the end of a byte string, but all hashes have
# the same length, so that comparisons are exact.
_HASH = np.dtype(f"S{HASH_BYTES}")
_Hashes = npt.NDArray[np.bytes_]
_Positions = npt.NDArray[np.intp]
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
        other_edits: The edits of the parts that were cleaned by other rules than the corpus, each
            once. If there are none, this is None, which does not count in `settings_sha256`: so the
            hash of a corpus without parts stays as it is.
    """

    stage = "dedup"
    settings: Dedup
    edits: Edits
    other_edits: tuple[Edits, ...] | None = None

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Set up deduplication of one corpus: what it reads and writes, and what it drops.

        Args:
            name: Corpus name, such as `multi30k`.
            corpus: The settings of the corpus.
            root: The project folder; by default the current folder.
        """
        # Reads data/clean/NAME, and writes data/dedup/NAME and a file of statistics.
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="clean",
            output_folder="dedup",
        )
        return cls(
            corpus=name,
            # In place of `files.input_text`, which is the text without the parts.
            input_text=CleanedText.for_corpus(name, corpus, root),
            output=files.output,
            filter_stats_path=files.filter_stats_path,
            settings=corpus.dedup,
            edits=corpus.clean,
            other_edits=edits_of_parts(corpus) or None,
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Hash each sentence pair of a shard, and look it up in the validation and test sets.

        A shard is a part of the training text. When all shards are hashed, equal hashes show the
        duplicates. Each key of a pair is hashed, that is, each text by which duplicates are found:
        the pair, its source or its target.

        Args:
            shard: Which part of the training text to read.
            part: The folder to write to: a file of hashes for each key, and a file that says for
                each pair which side, if any, is a sentence of a validation or test set.
            workers: The number of processes.
        """
        blocks, pair_count = self.shard_blocks(shard)
        file_names = [key.setting for key in self.keys]
        file_names.append(_HELD_OUT_FILE)
        create_hasher = partial(_BlockHasher, self)
        with ExitStack() as open_files:
            progress = open_files.enter_context(
                Progress(f"hash {self.corpus} train", pair_count, "pairs")
            )
            files = []
            for file_name in file_names:
                files.append(open_files.enter_context((part / file_name).open("wb")))
            # Each column of a block contains the bytes that are appended to one of the files.
            for columns in map_parts(create_hasher, blocks, workers):
                for file, column in zip(files, columns, strict=True):
                    file.write(column)
                # The held-out file has one byte per pair.
                held_out_column = columns[-1]
                progress.advance(len(held_out_column))

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Write the training text without duplicates, and copy the validation and test sets.

        Training pairs that contain a sentence of a validation or test set are dropped as well.

        Args:
            parts: The folders that `process_shard` has written, in the order of the text.
            workers: Not used: this needs one process.
        """
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as unfinished:
            output_text = self.input_text.with_path(unfinished)
            rule_of_pair = self.find_rules_of_pairs(parts, scratch=unfinished)
            train_counts = filter_stats.add_set("train")
            write_kept(self.input_text, output_text, rule_of_pair, self.rules, train_counts)
            self._write_filtered_count(unfinished, rule_of_pair)
            held_out_sets = self.input_text.held_out()
            copy_sets(self.input_text, output_text, held_out_sets, filter_stats)
            filter_stats.write(self.filter_stats_path)

    def _write_filtered_count(self, folder: Path, rule_of_pair: npt.NDArray[np.uint8]) -> None:
        """Write how many pairs of the output are from parts, so that they are not filtered again.

        These pairs are the first ones of the output. Without parts, no file is written.

        Args:
            folder: The folder to write to.
            rule_of_pair: The number of the rule that drops each pair; 0 for a kept pair, (pairs,).
        """
        if not isinstance(self.input_text, CleanedText) or not self.input_text.parts:
            return
        rules_in_parts = rule_of_pair[: self.input_text.count_in_parts()]
        kept_count = int(np.count_nonzero(rules_in_parts == 0))
        write_json(folder / FILTERED_COUNT_FILE, {"pairs": kept_count})

    @property
    def keys(self) -> list[_Key]:
        """The keys by which the settings compare pairs, such as their sources."""
        return [key for key in _KEYS if getattr(self.settings, key.setting)]

    @property
    def rules(self) -> tuple[str, ...]:
        """The names under which dropped pairs are counted, such as `same_source`.

        Rules that find duplicates come first. Rules that find sentences of validation and test sets
        follow, unless the user turned them off. A rule's number is its position, from 1.
        """
        duplicate_rules = tuple(key.rule for key in self.keys)
        if self.settings.decontaminate == "none":
            return duplicate_rules
        return duplicate_rules + OVERLAP_RULES

    def find_rules_of_pairs(self, parts: Sequence[Path], scratch: Path) -> npt.NDArray[np.uint8]:
        """Find out which rule, if any, drops each pair of the training text.

        A pair is dropped if its source or target is in a validation or test set ("held out"), or if
        it is a duplicate by a key: the whole pair, its source or its target, as the settings say.

        Args:
            parts: The folders that `process_shard` has written, in the order of the text.
            scratch: A folder for temporary files.

        Returns:
            The number of each pair's rule in `rules`, from 1; 0 for a kept pair, (pairs,).
        """
        # For each pair 0, or 1 if its source is held out, or 2 if its target is.
        held_out_sides = np.concatenate(
            [np.fromfile(part / _HELD_OUT_FILE, np.uint8) for part in parts]
        )
        # `rules` begins with a rule for each key. Rules for a held-out source and target follow.
        key_count = len(self.keys)
        side_rules = np.where(held_out_sides > 0, key_count + held_out_sides, 0)
        rule_of_pair = side_rules.astype(np.uint8)
        groups_of_keys = []
        is_repeated = np.zeros(len(rule_of_pair), bool)
        for key in self.keys:
            hashes_of_all_shards = scratch / key.setting
            join_files([part / key.setting for part in parts], hashes_of_all_shards)
            # For each pair the number of the group of pairs with an equal key; 0 if it is unique.
            groups = _group_equal_hashes(hashes_of_all_shards)
            hashes_of_all_shards.unlink()
            groups_of_keys.append(groups)
            is_repeated |= groups > 0
        # Only these pairs can be duplicates. The others need not be visited one by one.
        candidates = np.flatnonzero(is_repeated & (rule_of_pair == 0))
        _drop_duplicates(rule_of_pair, candidates, groups_of_keys)
        return rule_of_pair


def _drop_duplicates(
    rule_of_pair: npt.NDArray[np.uint8],
    candidates: _Positions,
    groups_of_keys: Sequence[npt.NDArray[np.int32]],
) -> None:
    """Drop each sentence pair that is a duplicate of an earlier, kept pair.

    Pairs are compared by keys, such as the source: pairs with an equal key are a group. Only a kept
    pair makes later pairs duplicates, so the pairs are visited in the order of the text.

    Args:
        rule_of_pair: The number of the rule that drops each pair, or 0, (pairs,). For each
            duplicate, this function writes the number of its rule: the number of the key, from 1.
        candidates: The indices of the pairs to visit, ascending: pairs that are in a group with
            other pairs, and that no other rule drops.
        groups_of_keys: For each key the number of each pair's group, (pairs,); 0 for a pair whose
            key is unique.
    """
    # For each key and group: 1 if a pair of the group was kept, else 0. Bytes save memory.
    has_kept_pair = []
    for groups in groups_of_keys:
        largest_group = int(groups.max(initial=0))
        has_kept_pair.append(bytearray(largest_group + 1))
    for pair_index in candidates.tolist():
        groups_of_pair = [int(groups[pair_index]) for groups in groups_of_keys]
        duplicate_key = _key_of_duplicate(groups_of_pair, has_kept_pair)
        if duplicate_key is not None:
            rule_of_pair[pair_index] = duplicate_key + 1  # Rules are numbered from 1.
            continue
        for key_index, group in enumerate(groups_of_pair):
            has_kept_pair[key_index][group] = 1


def _key_of_duplicate(
    groups_of_pair: Sequence[int], has_kept_pair: Sequence[bytearray]
) -> int | None:
    """Return the index of the first key by which a pair equals an earlier, kept pair.

    A key is a text by which pairs are compared, such as the source. Pairs with an equal key have
    the same group number.

    Args:
        groups_of_pair: The pair's group number for each key; 0 if no other pair has an equal key.
        has_kept_pair: For each key and group 1 if a pair of the group was kept, else 0.

    Returns:
        The index of the key; None if the pair is not a duplicate.
    """
    for key_index, group in enumerate(groups_of_pair):
        if group > 0 and has_kept_pair[key_index][group]:
            return key_index
    return None


class _BlockHasher:
    """Hashes sentence pairs, and finds those that contain a sentence of a validation or test set.

    Each worker process creates one, with its own copy of the validation and test sentences.
    """

    def __init__(self, stage: Deduplication) -> None:
        """Read the sentences of all validation and test sets, to find them in the training text.

        Args:
            stage: The stage deduplication, set up for a corpus.
        """
        self._keys = stage.keys
        self._held_out = _read_held_out(stage)

    def __call__(self, block: Block) -> list[bytes]:
        """Hash the sentence pairs of a block, and look them up in the validation and test sets.

        Returns:
            A column of bytes for each key, that is, for each text by which pairs are compared: the
            hashes, 16 bytes per pair. Then a column with one byte per pair: which of its sides, if
            any, is a sentence of a validation or test set.
        """
        pairs = block.pairs()
        columns = []
        for key in self._keys:
            columns.append(b"".join([hash_text(key.text(pair)) for pair in pairs]))
        sources, targets = block.sentences()
        columns.append(self._held_out.find_sides(sources, targets))
        return columns


def _read_held_out(stage: Deduplication) -> HeldOutSentences:
    """Read the sentences of all validation and test sets, which must not be in the training text.

    Each sentence is added as published, and edited like the training text, since either form may
    occur there. The sets of the corpus's other language pairs are read, too: the English target
    of a German-English test set must not be a source of an English-French training text.

    Args:
        stage: The stage deduplication, on the training text of one language pair.
    """
    held_out = HeldOutSentences(stage.settings.decontaminate)
    source_language, target_language = stage.input_text.languages
    all_edits = [stage.edits, *(stage.other_edits or ())]
    for text in stage.texts_of_all_pairs:
        for set_name in text.held_out():
            for pair in text.pairs(set_name):
                published_sentences = dict(zip(text.languages, pair, strict=True))
                for sentence_by_language in _training_forms(published_sentences, all_edits):
                    # None if the set is not in this language, as for another language pair.
                    source = sentence_by_language.get(source_language)
                    target = sentence_by_language.get(target_language)
                    held_out.add([(source, target)])
    return held_out


def _training_forms(
    sentence_by_language: Mapping[str, str], all_edits: Iterable[Edits]
) -> Iterator[Mapping[str, str]]:
    """Yield the forms in which the sentences of a held-out pair may be in the training text.

    The first form is the published one.

    Args:
        sentence_by_language: The two published sentences, by language.
        all_edits: The edits of the corpus, and those of its parts.
    """
    yield sentence_by_language
    for edits in all_edits:
        edited_sentences = {}
        for language, sentence in sentence_by_language.items():
            edited_sentences[language] = apply_edits(sentence, language, edits)
        yield edited_sentences


def _group_equal_hashes(path: Path) -> npt.NDArray[np.int32]:
    """Give equal hashes in a file the same number: the hashes a b a c b get 1 2 1 0 2.

    The hashes of a large corpus do not fit into memory. So they are divided into ranges by their
    first bits, and the file is read again for each range. Equal hashes are in the same range.

    Args:
        path: A file of hashes, 16 bytes each.

    Returns:
        For each hash the number of its group of equal hashes, from 1; 0 if it occurs only once.
    """
    hash_count = path.stat().st_size // HASH_BYTES
    groups = np.zeros(hash_count, np.int32)
    range_count = math.ceil(hash_count / _HASHES_PER_RANGE)
    # The number of groups in the ranges that were read before.
    group_count = 0
    for range_index in range(range_count):
        repeated_hashes = _find_repeated_hashes(path, range_index, range_count)
        if len(repeated_hashes) == 0:
            continue
        last_index = len(repeated_hashes) - 1
        for positions, hashes in _read_range(path, range_index, range_count):
            # Where each hash is in the sorted array of repeated hashes; or where it would be, which
            # may be behind the end.
            indices = np.searchsorted(repeated_hashes, hashes)
            indices = np.minimum(indices, last_index)
            is_repeated = repeated_hashes[indices] == hashes
            groups[positions[is_repeated]] = group_count + 1 + indices[is_repeated]
        group_count += len(repeated_hashes)
    return groups


def _find_repeated_hashes(path: Path, range_index: int, range_count: int) -> _Hashes:
    """Return the hashes that occur more than once in a file, sorted, each of them once.

    Args:
        path: A file of hashes, 16 bytes each.
        range_index: The range of values to search, from 0; the rest of the file is ignored.
        range_count: The number of ranges into which the values are divided to limit memory.
    """
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
    """Read the hashes of a file whose values are in one range; the others are skipped.

    To limit memory, all possible values of a hash are divided into ranges of equal size, and the
    file is read a part at a time.

    Args:
        path: A file of hashes, 16 bytes each.
        range_index: The number of the range, from 0.
        range_count: The number of ranges.

    Yields:
        For each part of the file: the positions in the file of the hashes of this range, from 0;
        and these hashes.
    """
    with path.open("rb") as file:
        first_position = 0
        while len(hashes := np.fromfile(file, _HASH, _HASHES_PER_READ)):
            # Read as 32-bit numbers, a hash is several of them. The first one selects its range.
            numbers_per_hash = HASH_BYTES // 4
            first_numbers = hashes.view("<u4")[::numbers_per_hash].astype(np.uint64)
            # n * range_count // 2**32: the range of a number n below 2**32.
            ranges = (first_numbers * range_count) >> 32
            (positions,) = np.nonzero(ranges == range_index)
            yield first_position + positions, hashes[positions]
            first_position += len(hashes)
