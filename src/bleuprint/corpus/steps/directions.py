"""The text of a corpus of several directions: sampled by split, tagged and joined by tokenize.

Directions are prepared one by one, in folders CORPUS/DIRECTION. Then their sets are joined in the
folder of the corpus: train, valid, and test.DIRECTION-NAME, in files of the languages src and tgt.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.directions import SOURCE, TARGET, PairName, tag, target_languages_by_tag
from bleuprint.corpus.steps.filter_stats import COPIES, FilterStats, FilterStatsRecord, SetCounts
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import Block, PairWriter, TextFolder


def join_pairs(name: str, corpus: Corpus, stage: str) -> None:
    """Join what a stage wrote for each direction of a corpus; one without has nothing to join.

    Args:
        name: The name of the corpus.
        corpus: The corpus.
        stage: The name of the stage. The texts that split and tokenize write are joined, too.

    Raises:
        UserError: A tokenized source contains a tag as a word.
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
    """Return the texts of all directions of a corpus, each with the languages of its own.

    Args:
        name: The name of a language pair.
        text: Its text, which stands beside those of the other directions.
    """
    if not PairName.parse(name).direction:
        return [text]
    texts = []
    for path in sorted(text.path.parent.iterdir()):
        if path.is_dir():  # Snakemake puts a file beside them
            texts.append(TextFolder(path, *path.name.split("-")))
    return texts


def sampled_pairs(pairs: Mapping[str, int], temperature: float) -> dict[str, int]:
    """The pairs that are taken of each direction: all of the largest, once; of a zero-shot one 0.

    The share of direction i is proportional to n_i^(1/T) (Arivazhagan et al. 2019, section 4.2).
    """
    most = max(pairs.values())
    return {name: round(most * (n / most) ** (1 / temperature)) for name, n in pairs.items()}


def join_split(name: str, corpus: Corpus) -> int:
    """Sample the training text of each direction, and join the sets held out; returns the copies.

    Each pair is repeated as often as all go into the number wanted; the rest is drawn at random.
    """
    copies, temperature = 0, corpus.split.temperature or 1.0
    texts = _texts(name, corpus, "split")
    counts = {direction: text.count("train") for direction, text in texts.items()}
    wanted = sampled_pairs(counts, temperature)
    with atomic_folder(paths.corpus_folder(name, "split")) as unfinished:
        for direction, before in texts.items():
            after = before.with_path(unfinished / direction)
            after.path.mkdir()
            for held_out in before.held_out():
                for old, new in zip(before.files(held_out), after.files(held_out), strict=True):
                    shutil.copyfile(old, new)
            _write_sampled(before, after, wanted[direction], corpus.split.seed)
            copies += wanted[direction] - counts[direction]
        _join(corpus, texts, unfinished, tagged=False)
    return copies


def join_tokens(name: str, corpus: Corpus) -> None:
    """Join the tokens of all directions, each source after the tag of its target language.

    Raises UserError at a source that has a tag as a word.
    """
    with atomic_folder(paths.corpus_folder(name, "tokens")) as unfinished:
        _join(corpus, _texts(name, corpus, "tokens"), unfinished, tagged=True)


def join_filter_stats(name: str, corpus: Corpus, stage: str, copies: int = 0) -> None:
    """Join the filtering statistics of all directions; `copies` of pairs in train were added."""
    joined, settings = FilterStats(stage, name, ""), list[str]()
    for part in corpus.language_pairs(name):
        pair_name = PairName.parse(part)
        filter_stats = read_record(FilterStatsRecord, paths.filter_stats_file(part, stage))
        settings.append(filter_stats.settings)
        for set_name, counts in filter_stats.sets.items():
            joined.sets.setdefault(pair_name.set_name(set_name), SetCounts()).add(counts)
    if copies:
        joined.sets["train"].pairs_out += copies
        joined.sets["train"].changed[COPIES] = copies
    joined.settings = fingerprint.of_settings(settings)
    joined.write(paths.filter_stats_file(name, stage))
    for part in corpus.language_pairs(name):  # no outputs of the stage
        paths.filter_stats_file(part, stage).unlink()
        with suppress(OSError):  # a later stage's, which failed
            paths.filter_stats_file(part, stage).parent.rmdir()


def _texts(name: str, corpus: Corpus, stage: str) -> dict[str, TextFolder]:
    """The text of each direction after a stage."""
    texts = {}
    for pair_name, pair in corpus.language_pairs(name).items():
        text = TextFolder(paths.corpus_folder(pair_name, stage), *pair.languages)
        texts[PairName.parse(pair_name).direction] = text
    return texts


def _write_sampled(before: TextFolder, after: TextFolder, wanted: int, seed: int) -> None:
    """Write as many pairs of train as are wanted; copies follow each other."""
    pairs = before.count("train")
    times = np.full(pairs, wanted // pairs if pairs else 0)
    drawn = np.random.Generator(np.random.PCG64(seed)).permutation(pairs)
    times[drawn[: wanted - int(times.sum())]] += 1
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            times_in_block = times[block.first - 1 :][: len(block)].tolist()
            source = _repeated(block.source, times_in_block)
            target = _repeated(block.target, times_in_block)
            writer.write_packed(source, target)


def _repeated(lines: bytes, times: list[int]) -> bytes:
    """Return lines, each as often as `times` says."""
    repeated = []
    for line, count in zip(BytesIO(lines).readlines(), times, strict=True):
        repeated.append(line * count)
    return b"".join(repeated)


def _join(corpus: Corpus, texts: Mapping[str, TextFolder], folder: Path, *, tagged: bool) -> None:
    """Write the sets of all directions, without train if not tagged; a zero-shot one is empty."""
    after, writers = TextFolder(folder, SOURCE, TARGET), dict[str, PairWriter]()
    with ExitStack() as opened:
        for direction, before in texts.items():
            names = before.names() if tagged else before.held_out()
            for set_name in names:
                joined = PairName("", direction).set_name(set_name)
                if joined not in writers:
                    writers[joined] = opened.enter_context(after.writer(joined))
                for block in before.blocks(set_name):
                    source = b"".join(_tagged(corpus, block)) if tagged else block.source
                    writers[joined].write_packed(source, block.target)


def _tagged(corpus: Corpus, block: Block) -> Iterator[bytes]:
    """The sources of a block, each after the tag of its target, the language of the file."""
    known = [each.encode() for each in target_languages_by_tag(corpus)]
    target_tag = tag(block.files[1].name.rpartition(".")[2]).encode()
    for number, line in enumerate(BytesIO(block.source).readlines(), block.first):
        if b"<2" in line:
            _refuse_tags(line, known, f"{block.files[0]}:{number}")
        yield target_tag + line if line == b"\n" else target_tag + b" " + line


def _refuse_tags(line: bytes, tags: list[bytes], place: str) -> None:
    """Raise UserError if a source contains a tag as a word."""
    words = line.split()
    for each in tags:
        if each in words:
            raise UserError(f"{place}: the text has {each.decode()!r}, a tag, as a word")
