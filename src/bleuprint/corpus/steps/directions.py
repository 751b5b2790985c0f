"""Joins the texts of a corpus with several directions: split samples them, tokenize tags them.

Each direction is prepared on its own, in a folder CORPUS/DIRECTION. After each stage this module
joins what the stage wrote for all directions, in the folder of the corpus: train, valid, and
test.DIRECTION-NAME, in files of the "languages" src and tgt. In these files, the first word of a
source sentence is a tag that names the language to translate into.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.directions import SOURCE, TARGET, tag, target_languages_by_tag
from bleuprint.config.pair_name import PairName
from bleuprint.corpus.steps.filter_stats import COPIES, FilterStats, FilterStatsRecord, SetCounts
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import Block, PairWriter, TextFolder


def join_pairs(name: str, corpus: Corpus, stage: str) -> None:
    """Join what a stage wrote for each direction of a corpus; does nothing without directions.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        stage: The name of the stage. All stages write filtering statistics; the texts that split
            and tokenize write are joined as well.

    Raises:
        UserError: A tokenized source sentence contains a tag as a word.
    """
    if corpus.directions is None:
        return
    copies = 0
    if stage == "split":
        copies = join_split(name, corpus)
    join_filter_stats(name, corpus, stage, copies)
    if stage == "tokenize":
        join_tokens(name, corpus)


def texts_of_all_pairs(name: str, text: TextFolder) -> list[TextFolder]:
    """Return the texts of all directions of a corpus, each with its own languages.

    Args:
        name: The name of a language pair of the corpus.
        text: The text of this pair, in a folder next to those of the other directions.
    """
    if not PairName.parse(name).direction:
        return [text]
    texts = []
    for path in sorted(text.path.parent.iterdir()):
        if path.is_dir():  # Snakemake puts a file next to these folders
            source, target = path.name.split("-")
            texts.append(TextFolder(path, source, target))
    return texts


def sampled_pairs(pairs: Mapping[str, int], temperature: float) -> dict[str, int]:
    """Return how many training pairs each direction gets, by temperature-based sampling.

    The share of direction i is proportional to n_i^(1/T), for n_i pairs and the temperature T
    (Arivazhagan et al. 2019, section 4.2). The largest direction keeps all of its pairs once, so
    smaller ones get copies. A zero-shot direction, which has no pairs, gets none.

    Args:
        pairs: The number of pairs of each direction.
        temperature: T; 1 keeps the numbers as they are.
    """
    largest = max(pairs.values())
    wanted = {}
    for direction, count in pairs.items():
        wanted[direction] = round(largest * (count / largest) ** (1 / temperature))
    return wanted


def join_split(name: str, corpus: Corpus) -> int:
    """Sample the training text of each direction, and join the held-out sets.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.

    Returns:
        The number of training pairs that sampling added.
    """
    texts = _texts_by_direction(name, corpus, "split")
    pairs = {direction: text.count("train") for direction, text in texts.items()}
    wanted = sampled_pairs(pairs, corpus.split.temperature or 1.0)
    with atomic_folder(paths.corpus_folder(name, "split")) as unfinished:
        for direction, before in texts.items():
            after = before.with_path(unfinished / direction)
            after.path.mkdir()
            for set_name in before.held_out():
                source, target = before.files(set_name)
                source_copy, target_copy = after.files(set_name)
                shutil.copyfile(source, source_copy)
                shutil.copyfile(target, target_copy)
            _write_sampled_train(before, after, wanted[direction], corpus.split.seed)
        _join_held_out_sets(texts, unfinished)
    return sum(wanted.values()) - sum(pairs.values())


def join_tokens(name: str, corpus: Corpus) -> None:
    """Join the tokens of all directions, each source after the tag of its target language.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.

    Raises:
        UserError: A source sentence contains a tag as a word.
    """
    texts = _texts_by_direction(name, corpus, "tokens")
    with atomic_folder(paths.corpus_folder(name, "tokens")) as unfinished:
        _join_tagged_sets(corpus, texts, unfinished)


def join_filter_stats(name: str, corpus: Corpus, stage: str, copies: int = 0) -> None:
    """Join the filtering statistics of all directions, and remove those of each direction.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        stage: The name of the stage.
        copies: The number of pairs that sampling added to train.
    """
    joined = FilterStats(stage, name, settings="")
    settings_of_directions = []
    for language_pair in corpus.language_pairs(name):
        pair_name = PairName.parse(language_pair)
        record = read_record(FilterStatsRecord, paths.filter_stats_file(language_pair, stage))
        settings_of_directions.append(record.settings)
        for set_name, counts in record.sets.items():
            joined_counts = joined.sets.setdefault(pair_name.set_name(set_name), SetCounts())
            joined_counts.add(counts)
    if copies:
        train_counts = joined.sets["train"]
        train_counts.pairs_out += copies
        train_counts.changed[COPIES] = copies
    joined.settings = fingerprint.of_settings(settings_of_directions)
    joined.write(paths.filter_stats_file(name, stage))
    for language_pair in corpus.language_pairs(name):
        # dvc.yaml does not list these files as outputs of the stage.
        path = paths.filter_stats_file(language_pair, stage)
        path.unlink()
        # The folder is not empty if a later stage failed in an earlier run and left its file.
        with suppress(OSError):
            path.parent.rmdir()


def _texts_by_direction(name: str, corpus: Corpus, stage: str) -> dict[str, TextFolder]:
    """Return the text that a stage wrote for each direction of a corpus."""
    texts = {}
    for language_pair, pair_corpus in corpus.language_pairs(name).items():
        direction = PairName.parse(language_pair).direction
        source, target = pair_corpus.languages
        texts[direction] = TextFolder(paths.corpus_folder(language_pair, stage), source, target)
    return texts


def _write_sampled_train(before: TextFolder, after: TextFolder, wanted: int, seed: int) -> None:
    """Write a number of training pairs, which may exceed the number of pairs.

    Each pair is repeated as often as all pairs fit into the number; the rest are random pairs. The
    copies of a pair follow each other.

    Args:
        before: The folder to read.
        after: The folder to write to.
        wanted: The number of pairs to write.
        seed: The sampling seed.
    """
    pair_count = before.count("train")
    copies_of_all = wanted // pair_count if pair_count else 0
    copies = np.full(pair_count, copies_of_all)
    random_order = np.random.Generator(np.random.PCG64(seed)).permutation(pair_count)
    rest = wanted - int(copies.sum())
    copies[random_order[:rest]] += 1
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            start = block.first - 1  # pairs are numbered from 1
            copies_in_block = copies[start : start + len(block)].tolist()
            writer.write_packed(
                source=_repeat_lines(block.source, copies_in_block),
                target=_repeat_lines(block.target, copies_in_block),
            )


def _repeat_lines(lines: bytes, copies: list[int]) -> bytes:
    """Return lines, each as often as `copies` says."""
    repeated = []
    for line, count in zip(BytesIO(lines).readlines(), copies, strict=True):
        repeated.append(line * count)
    return b"".join(repeated)


def _join_held_out_sets(texts: Mapping[str, TextFolder], folder: Path) -> None:
    """Write the validation and test sets of all directions, without tags."""
    with ExitStack() as opened:
        writers = _SetWriters(folder, opened)
        for direction, text in texts.items():
            for set_name in text.held_out():
                writer = writers.get(direction, set_name)
                for block in text.blocks(set_name):
                    writer.write_packed(block.source, block.target)


def _join_tagged_sets(corpus: Corpus, texts: Mapping[str, TextFolder], folder: Path) -> None:
    """Write all sets of all directions, each source sentence after its tag."""
    with ExitStack() as opened:
        writers = _SetWriters(folder, opened)
        for direction, text in texts.items():
            for set_name in text.set_names():
                writer = writers.get(direction, set_name)
                for block in text.blocks(set_name):
                    tagged_source = b"".join(_tag_lines(corpus, block, text.target))
                    writer.write_packed(tagged_source, block.target)


class _SetWriters:
    """The open files of a corpus's joined sets, to which all directions append."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        """Write to a folder; the files are closed with `opened`."""
        self._text = TextFolder(folder, SOURCE, TARGET)
        self._opened = opened
        self._writers: dict[str, PairWriter] = {}

    def get(self, direction: str, set_name: str) -> PairWriter:
        """Return the writer of the joined set to which a set of a direction belongs.

        Args:
            direction: The direction, such as en-de.
            set_name: The name of the set in the direction, such as test.news.
        """
        joined_name = PairName("", direction).set_name(set_name)
        if joined_name not in self._writers:
            writer = self._opened.enter_context(self._text.writer(joined_name))
            self._writers[joined_name] = writer
        return self._writers[joined_name]


def _tag_lines(corpus: Corpus, block: Block, target_language: str) -> Iterator[bytes]:
    """Yield the source lines of a block, each after the tag of its target language.

    Args:
        corpus: The settings of the corpus.
        block: The pairs of one direction.
        target_language: The target language of the direction.

    Raises:
        UserError: A source sentence contains a tag as a word.
    """
    all_tags = [known_tag.encode() for known_tag in target_languages_by_tag(corpus)]
    line_tag = tag(target_language).encode()
    for number, line in enumerate(BytesIO(block.source).readlines(), block.first):
        if b"<2" in line:  # tags begin so; few lines must be split into words
            _check_tags(line, all_tags, f"{block.files[0]}:{number}")
        # No space follows the tag of an empty sentence: tokens are separated by single spaces.
        separator = b"" if line == b"\n" else b" "
        yield line_tag + separator + line


def _check_tags(line: bytes, all_tags: list[bytes], location: str) -> None:
    """Raise UserError if a source sentence contains a tag as a word.

    Args:
        line: The tokens of the sentence.
        all_tags: The tags of all directions of the corpus.
        location: The file and line, for the message.
    """
    words = line.split()
    for known_tag in all_tags:
        if known_tag in words:
            raise UserError(f"{location}: the text has {known_tag.decode()!r}, a tag, as a word")
