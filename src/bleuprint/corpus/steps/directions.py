"""Joins the texts of a corpus with several directions: split samples them, tokenize tags them.

Each direction is prepared on its own, in a folder CORPUS/DIRECTION. After each stage this module
joins what the stage wrote for all directions, in the folder of the corpus: train, valid, and
test.DIRECTION-NAME, in files of the "languages" src and tgt. In these files, the first word of a
source sentence is a tag that names the language to translate into.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.directions import SOURCE, TARGET, target_languages_by_tag
from bleuprint.config.pair_name import PairName, split_direction
from bleuprint.corpus.steps.filter_stats import (
    COPIES_KEY,
    FilterStats,
    FilterStatsRecord,
    SetCounts,
)
from bleuprint.runtime import fingerprint
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_links import link_or_copy
from bleuprint.runtime.schema import read_record
from bleuprint.text.language_tag import tag
from bleuprint.text.parallel import Block, PairWriter, TextFolder


def join_pairs(name: str, corpus: Corpus, stage: str) -> None:
    """Join what a stage wrote for the directions of a multilingual corpus.

    A direction is a language pair, such as en-de, which each stage prepares on its own. A corpus
    with one language pair has nothing to join.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        stage: The name of the stage. All stages write filtering statistics, which are joined. After
            `split` and `tokenize`, the texts are joined as well.

    Raises:
        UserError: A tokenized source sentence contains a tag as a word.
    """
    if corpus.directions is None:
        return
    # How many copies of training pairs are added, so that small directions are sampled more often.
    copies = 0
    if stage == "split":
        copies = join_split(name, corpus)
    join_filter_stats(name, corpus, stage, copies)
    if stage == "tokenize":
        join_tokens(name, corpus)


def texts_of_all_pairs(name: str, text: TextFolder) -> list[TextFolder]:
    """Return the texts of all language pairs of a corpus.

    Args:
        name: The name of one language pair, such as `multi30k/en-de`; or of the corpus, if it has
            only one.
        text: The text of this pair. Its folder is next to the folders of the other pairs.
    """
    has_one_pair = PairName.parse(name).direction == ""
    if has_one_pair:
        return [text]
    texts = []
    for path in sorted(text.path.parent.iterdir()):
        # Snakemake puts a file next to these folders, which are named after their languages.
        if path.is_dir():
            source, target = split_direction(path.name)
            texts.append(TextFolder(path, source, target))
    return texts


def sampled_pairs(pairs: Mapping[str, int], temperature: float) -> dict[str, int]:
    """Return how many training pairs each language pair gets, by temperature-based sampling.

    Language pair i, with n_i sentence pairs, gets a share proportional to n_i^(1/T), for the
    temperature T (Arivazhagan et al. 2019, section 4.2). So small language pairs are seen more
    often: with T = 2, 100 and 10,000 pairs become 1,000 and 10,000. The largest language pair keeps
    its number; a zero-shot one, which has no pairs, gets none.

    Args:
        pairs: The number of sentence pairs of each language pair, such as `en-de`.
        temperature: T; 1 keeps the numbers as they are.
    """
    largest = max(pairs.values())
    wanted = {}
    for direction, count in pairs.items():
        wanted[direction] = round(largest * (count / largest) ** (1 / temperature))
    return wanted


def join_split(name: str, corpus: Corpus) -> int:
    """Combine the sets of all language pairs of a multilingual corpus, after they were split.

    The training text of each language pair stays in its own folder. Small ones get copies of their
    pairs (temperature-based sampling); the others, and held-out sets, become hard links. Validation
    and test sets are also joined.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.

    Returns:
        The number of copies of training pairs.
    """
    texts = _texts_by_direction(name, corpus, "split")
    pairs = {direction: text.count("train") for direction, text in texts.items()}
    wanted = sampled_pairs(pairs, corpus.split.temperature or 1.0)
    with atomic_folder(paths.corpus_folder(name, "split")) as unfinished:
        for direction, split_text in texts.items():
            sampled_text = split_text.with_path(unfinished / direction)
            sampled_text.path.mkdir()
            unchanged_sets = split_text.held_out()
            if wanted[direction] == pairs[direction]:
                unchanged_sets.append("train")
            else:
                _write_sampled_train(split_text, sampled_text, wanted[direction], corpus.split.seed)
            for set_name in unchanged_sets:
                files = split_text.files(set_name)
                links = sampled_text.files(set_name)
                for path, link in zip(files, links, strict=True):
                    link_or_copy(path, link)
        _join_held_out_sets(texts, unfinished)
    return sum(wanted.values()) - sum(pairs.values())


def join_tokens(name: str, corpus: Corpus) -> None:
    """Join the tokenized texts of all language pairs of a multilingual corpus.

    Each source sentence begins with a tag that names the language to translate into, such as
    `<2de>`.

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
    """Join the filtering statistics of all language pairs of a corpus into one file.

    The statistics of a stage say how many pairs it kept, changed and dropped. The numbers of the
    training and validation sets are added up. Test sets are listed one by one, with their language
    pair in their names. The files of the language pairs are then removed.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        stage: The name of the stage.
        copies: How many copies of training pairs sampling has added; they count as a change.
    """
    joined = FilterStats(stage, name, settings="")
    settings_of_pairs = []
    for language_pair in corpus.language_pairs(name):
        pair_name = PairName.parse(language_pair)
        record = read_record(FilterStatsRecord, paths.filter_stats_file(language_pair, stage))
        settings_of_pairs.append(record.settings)
        for set_name, counts in record.sets.items():
            joined_name = pair_name.set_name(set_name)
            joined_counts = joined.sets.setdefault(joined_name, SetCounts())
            joined_counts.add(counts)
    if copies:
        train_counts = joined.sets["train"]
        train_counts.pairs_out += copies
        train_counts.changed[COPIES_KEY] = copies
    joined.settings = fingerprint.of_settings(settings_of_pairs)
    joined.write(paths.filter_stats_file(name, stage))
    _remove_filter_stats(name, corpus, stage)


def _remove_filter_stats(name: str, corpus: Corpus, stage: str) -> None:
    """Remove the filtering statistics of each language pair, once they are joined in one file.

    dvc.yaml does not list these files as outputs of the stage.
    """
    for language_pair in corpus.language_pairs(name):
        path = paths.filter_stats_file(language_pair, stage)
        path.unlink()
        # Removing the folder fails if it is not empty: if a later stage failed in an earlier run
        # and left its file. The folder then stays.
        with suppress(OSError):
            path.parent.rmdir()


def _texts_by_direction(name: str, corpus: Corpus, stage: str) -> dict[str, TextFolder]:
    """Find the texts that a stage wrote for the language pairs of a multilingual corpus.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        stage: The folder of the stage in data/, such as `split`.

    Returns:
        The texts by direction, such as `en-de`.
    """
    texts = {}
    for language_pair, pair_corpus in corpus.language_pairs(name).items():
        direction = PairName.parse(language_pair).direction
        source, target = pair_corpus.languages
        texts[direction] = TextFolder(paths.corpus_folder(language_pair, stage), source, target)
    return texts


def _write_sampled_train(
    split_text: TextFolder, sampled_text: TextFolder, wanted: int, seed: int
) -> None:
    """Write training pairs repeatedly, until there are as many as wanted.

    If 7 pairs are wanted and there are 3, each pair is written twice, and a random one a third
    time. The copies of a pair follow each other.

    Args:
        split_text: The folder to read.
        sampled_text: The folder to write to.
        wanted: The number of pairs to write, at least the number of pairs in `split_text`.
        seed: The sampling seed.
    """
    pair_count = split_text.count("train")
    # A zero-shot language pair has no pairs: do not divide by 0.
    copies_of_all = wanted // pair_count if pair_count else 0
    # How often each pair is written: first the copies of all pairs, then one more of random ones.
    copies = np.full(pair_count, copies_of_all)
    random_order = np.random.Generator(np.random.PCG64(seed)).permutation(pair_count)
    rest = wanted - int(copies.sum())
    copies[random_order[:rest]] += 1
    with sampled_text.writer("train") as writer:
        for block in split_text.blocks("train"):
            start = block.first - 1  # `first` counts from 1.
            copies_in_block = copies[start : start + len(block)].tolist()
            writer.write_lines(
                source=_repeat_lines(block.source, copies_in_block),
                target=_repeat_lines(block.target, copies_in_block),
            )


def _repeat_lines(lines: bytes, copies: list[int]) -> bytes:
    r"""Repeat the lines of a text.

    Args:
        lines: The text; each line ends with \n.
        copies: For each line how often it is repeated.
    """
    repeated = []
    for line, count in zip(BytesIO(lines).readlines(), copies, strict=True):
        repeated.append(line * count)
    return b"".join(repeated)


def _join_held_out_sets(texts: Mapping[str, TextFolder], folder: Path) -> None:
    """Join the validation and test sets of all language pairs of a multilingual corpus.

    Args:
        texts: The text of each direction, such as `en-de`.
        folder: The folder to write to.
    """
    with ExitStack() as opened:
        writers = _SetWriters(folder, opened)
        for direction, text in texts.items():
            for set_name in text.held_out():
                writer = writers.get(direction, set_name)
                for block in text.blocks(set_name):
                    writer.write_lines(block.source, block.target)


def _join_tagged_sets(corpus: Corpus, texts: Mapping[str, TextFolder], folder: Path) -> None:
    """Join the data sets of all language pairs of a multilingual corpus, with tags.

    Each source sentence begins with a tag that names the language to translate into.

    Args:
        corpus: The settings of the corpus.
        texts: The tokenized text of each direction, such as `en-de`.
        folder: The folder to write to.
    """
    with ExitStack() as opened:
        writers = _SetWriters(folder, opened)
        for direction, text in texts.items():
            for set_name in text.set_names():
                writer = writers.get(direction, set_name)
                for block in text.blocks(set_name):
                    tagged_source = b"".join(_tag_lines(corpus, block, text.target))
                    writer.write_lines(tagged_source, block.target)


class _SetWriters:
    """The open files of a multilingual corpus's data sets, to which all language pairs append.

    The training and validation text of all language pairs is joined in one set each; each test set
    stays on its own.
    """

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        """Prepare to write data sets; their files are opened when they are first needed.

        Args:
            folder: The folder to write to.
            opened: The stack that closes the opened files when its `with` block ends.
        """
        self._text = TextFolder(folder, SOURCE, TARGET)
        self._opened = opened
        self._writers: dict[str, PairWriter] = {}

    def get(self, direction: str, set_name: str) -> PairWriter:
        """Return the open files of the joined data set to which a data set is appended.

        Args:
            direction: The language pair of the data set, such as `en-de`.
            set_name: The name of the data set in its language pair, such as `train`.
        """
        joined_name = PairName("", direction).set_name(set_name)
        if joined_name not in self._writers:
            writer = self._opened.enter_context(self._text.writer(joined_name))
            self._writers[joined_name] = writer
        return self._writers[joined_name]


def _tag_lines(corpus: Corpus, block: Block, target_language: str) -> Iterator[bytes]:
    """Put a tag before each source sentence, which tells a multilingual model the target language.

    Args:
        corpus: The settings of the corpus.
        block: Sentence pairs of one language pair.
        target_language: The target language of these pairs, such as `de`.

    Yields:
        The source sentences with the tag, as lines.

    Raises:
        UserError: A source sentence contains a tag as a word.
    """
    all_tags = [known_tag.encode() for known_tag in target_languages_by_tag(corpus)]
    line_tag = tag(target_language).encode()
    # The text stays in bytes, which is faster.
    for number, line in enumerate(BytesIO(block.source).readlines(), block.first):
        # All tags begin with <2. Other lines need not be split into words, which is slow.
        if b"<2" in line:
            source_file, _ = block.files
            _check_tags(line, all_tags, f"{source_file}:{number}")
        # No space follows the tag of an empty sentence: tokens are separated by single spaces.
        separator = b"" if line == b"\n" else b" "
        yield line_tag + separator + line


def _check_tags(line: bytes, all_tags: list[bytes], location: str) -> None:
    """Check that a source sentence does not contain a word that looks like a language tag.

    A tag before a sentence tells a multilingual model the target language, so it must be unique.

    Args:
        line: The tokens of the sentence.
        all_tags: The tags of all target languages of the corpus.
        location: The file and line, for the message.

    Raises:
        UserError: The sentence contains a tag as a word.
    """
    words = line.split()
    for known_tag in all_tags:
        if known_tag in words:
            raise UserError(
                f"{location}: the text contains the word {known_tag.decode()!r}, which is the tag "
                "of a target language. Remove it from the text"
            )
