"""Learning how the languages of a corpus are segmented and numbered.

Memory grows with the number of different words.
"""

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path

from subword_nmt.learn_bpe import learn_bpe

from bleuprint.config.experiment import Bpe as BpeSettings
from bleuprint.config.experiment import Units
from bleuprint.corpus.steps.shard import Shard
from bleuprint.dataset.bpe_learner import learn_merges
from bleuprint.dataset.subwords.bpe import HEADER, Bpe
from bleuprint.dataset.subwords.segmentation import ABOUT, read_bpe
from bleuprint.dataset.subwords.vocabulary import Vocabulary, most_frequent, write_counts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder, write_json
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress, track
from bleuprint.text.parallel import Span, TextFolder

# Into so many parts train is cut to count its words.
_PARTS = 8

# How often each word occurs, by language: of two that are learnt from together, or of one.
Group = dict[str, Counter[str]]


def learn_segmentation(
    corpus: str, settings: Units, tokens: TextFolder, folder: Path, workers: int = 1
) -> None:
    """Learn from train how its two languages are segmented and numbered.

    Writes segmentation.json and, for each LANGUAGE, vocabulary.LANGUAGE; with BPE also
    codes.LANGUAGE and, where there is a threshold, allowed.LANGUAGE: the units that reach it and
    how often they occur, as for subword-nmt's --vocabulary. If joint, codes and vocabulary are
    learnt from both languages together, and are the same for both.
    """
    words = count_words(corpus, tokens, workers)
    groups = [words] if settings.joint else [{language: words[language]} for language in words]
    with whole_folder(folder) as unfinished:
        kind = "words" if settings.bpe is None else "bpe"
        write_json(unfinished / ABOUT, {"kind": kind, "joint": settings.joint})
        for group in groups:
            if settings.bpe is not None:
                _learn_bpe(corpus, settings.bpe, group, unfinished)
            vocabulary = _vocabulary(settings, group, unfinished)
            for language in group:
                vocabulary.write(unfinished / f"vocabulary.{language}")


def count_words(corpus: str, tokens: TextFolder, workers: int = 1) -> Group:
    """How often each token occurs in train, in the order of their first occurrence."""
    counts: Group = {tokens.source: Counter(), tokens.target: Counter()}
    total = tokens.count("train")
    spans = [shard.span(total) for shard in Shard.all(_PARTS)]
    with Progress(f"count words {corpus}", len(spans), "parts") as progress:
        for part in map_parts(partial(_Words, tokens), spans, workers):
            for words, more in zip(counts.values(), part, strict=True):
                words.update(more)
            progress.advance()
    for words in counts.values():
        del words[""]
    return counts


class _Words:
    """Counts the words of a span of train on both sides, in whichever process."""

    def __init__(self, tokens: TextFolder) -> None:
        self._tokens = tokens

    def __call__(self, span: Span) -> tuple[Counter[str], Counter[str]]:
        source, target = Counter[str](), Counter[str]()
        for block in self._tokens.blocks("train", span):
            for lines, words in zip(
                zip(*block.pairs(), strict=True), (source, target), strict=True
            ):
                words.update(" ".join(lines).split(" "))
        return source, target


def learn_codes(what: str, settings: BpeSettings, words: Mapping[str, int]) -> str:
    """The codes of at most `settings.merges` merges, learnt from how often words occur.

    They are those of `subword-nmt learn-bpe`. A line on stderr says how many merges were learnt,
    of `what`, and how long that took.
    """
    # A word of one character holds no pair; of one that begins with \r, subword-nmt would see
    # the rest as the word.
    words = {
        word: count for word, count in words.items() if len(word) > 1 and not word.startswith("\r")
    }
    learn = {"incremental": _incremental, "subword-nmt": _subword_nmt}[settings.engine]
    start = time.monotonic()
    text = learn(what, words, settings.merges) if settings.merges and words else HEADER
    learnt, seconds = text.count("\n") - 1, time.monotonic() - start
    said = f"{what}: {learnt:,} merges learnt in {seconds:.1f} s ({settings.engine})"
    print(said, file=sys.stderr, flush=True)
    return text


def _learn_bpe(corpus: str, settings: BpeSettings, group: Group, folder: Path) -> None:
    """Write the codes of a group, the same for each language, and which units each may use."""
    words = sum(group.values(), Counter[str]())
    codes = learn_codes(f"learn_bpe {corpus} {'+'.join(group)}", settings, words)
    for language in group:
        (folder / f"codes.{language}").write_bytes(codes.encode())
        if settings.threshold:
            counts = _count_units(read_bpe(folder, language), group[language])
            allowed = most_frequent(counts, settings.threshold)
            if not allowed:
                raise UserError(
                    f"corpora.{corpus}.vocabulary.bpe.threshold is {settings.threshold}: "
                    f"no unit of {language} occurs so often in train"
                )
            write_counts(folder / f"allowed.{language}", allowed)


def _vocabulary(settings: Units, group: Group, folder: Path) -> Vocabulary:
    """The units that a group's languages are made of in the end."""
    if settings.words is not None:
        words = sum(group.values(), Counter[str]())
        return Vocabulary.of(words, settings.words.max_size, settings.words.min_count)
    units = (_count_units(read_bpe(folder, language), group[language]) for language in group)
    return Vocabulary.of(sum(units, Counter[str]()))


def _count_units(codes: Bpe, words: Counter[str]) -> Counter[str]:
    """How often each unit occurs; each different word is segmented once."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for unit in codes.split(word):
            counts[unit] += count
    return counts


def _incremental(what: str, words: Mapping[str, int], merges: int) -> str:
    found = track(learn_merges(words, merges), what, merges, "merges")
    return HEADER + "".join(f"{first} {second}\n" for first, second in found)


def _subword_nmt(_: str, words: Mapping[str, int], merges: int) -> str:
    learnt = io.StringIO(newline="\n")
    # Counts are passed on, and not the text: subword-nmt splits lines where Python does.
    entries = [f"{word} {count}" for word, count in words.items()]
    with _quiet():
        learn_bpe(entries, learnt, merges, is_dict=True)
    return learnt.getvalue()


@contextmanager
def _quiet() -> Iterator[None]:
    """Let the learner's bar reach a terminal and nothing else, since it never ends a line."""
    if sys.stderr.isatty():
        yield
        return
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        yield
