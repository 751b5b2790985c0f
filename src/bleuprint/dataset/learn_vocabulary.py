"""Learning how text is split into the tokens of the model, and their vocabularies.

Memory grows with the number of distinct words; learn_sentencepiece.py says how it does there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from bleuprint.config.corpus import Bpe as BpeSettings
from bleuprint.config.corpus import Units
from bleuprint.dataset.bpe_learner import learn_merges
from bleuprint.dataset.count_units import Splitter, count_units
from bleuprint.dataset.learn_sentencepiece import learn_sentencepiece
from bleuprint.dataset.subwords.bpe import HEADER, Bpe
from bleuprint.dataset.subwords.segmentation import ABOUT, read_bpe
from bleuprint.dataset.subwords.vocabulary import Vocabulary, most_frequent, write_counts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, write_json
from bleuprint.runtime.progress import track
from bleuprint.text.parallel import TextFolder

# Words that subword-nmt splits, too, a few milliseconds.
_COMPARED = 200

# Word counts by language: both languages of a joint vocabulary, or one.
WordCounts = dict[str, Counter[str]]


def learn_segmentation(
    corpus: str, settings: Units, tokens: TextFolder, folder: Path, workers: int = 1
) -> None:
    """Learn the codes and vocabularies of both languages from train.

    Writes segmentation.json and, for each LANGUAGE, vocabulary.LANGUAGE; with BPE also
    codes.LANGUAGE and, if there is a threshold, allowed.LANGUAGE: the subwords that reach it and
    their counts, the format of subword-nmt's --vocabulary; with SentencePiece its model,
    sentencepiece.LANGUAGE. If joint, codes or model and vocabulary are learned from both languages
    together and are the same for both.
    """
    with atomic_folder(folder) as unfinished:
        kind = "bpe" if settings.bpe else "words" if settings.words else "sentencepiece"
        write_json(unfinished / ABOUT, {"kind": kind, "joint": settings.joint})
        if settings.sentencepiece is not None:
            learn_sentencepiece(corpus, settings.sentencepiece, tokens, unfinished, workers)
            return
        words = count_words(corpus, tokens, workers)
        groups = [words] if settings.joint else [{language: words[language]} for language in words]
        for group in groups:
            if settings.bpe is not None:
                _learn_bpe(corpus, settings.bpe, group, unfinished)
            vocabulary = _vocabulary(corpus, settings, group, unfinished)
            for language in group:
                vocabulary.write(unfinished / f"vocabulary.{language}")


def count_words(corpus: str, tokens: TextFolder, workers: int = 1) -> WordCounts:
    """How often each word occurs in train, in the order of first occurrence."""
    counts = count_units(f"count words {corpus}", tokens, workers, _word_splitter)
    for words in counts.values():
        del words[""]
    return counts


def _word_splitter(_: str) -> Splitter[str]:
    return lambda lines: " ".join(lines).split(" ")


def learn_codes(what: str, settings: BpeSettings, words: Mapping[str, int]) -> str:
    """Learn the codes of at most `settings.num_merges` merges from word counts.

    The result is that of `subword-nmt learn-bpe`. `what` names the progress.
    """
    # subword-nmt drops a leading \r
    words = {word: count for word, count in words.items() if not word.startswith("\r")}
    learned = learn_merges(words, settings.num_merges)
    merges = track(learned, what, settings.num_merges, "BPE merge operations")
    return HEADER + "".join(f"{first} {second}\n" for first, second in merges)


def _learn_bpe(corpus: str, settings: BpeSettings, group: WordCounts, folder: Path) -> None:
    """Write the codes of a group and the subwords that each language may use."""
    words = _sum(group.values())
    codes = learn_codes(f"learn_vocabulary {corpus} {'+'.join(group)}", settings, words)
    for language in group:
        (folder / f"codes.{language}").write_bytes(codes.encode())
        if settings.threshold:
            counts = _count_subwords(read_bpe(folder, language), group[language])
            allowed = most_frequent(counts, settings.threshold)
            if not allowed:
                raise UserError(
                    f"corpora.{corpus}.vocabulary.bpe.threshold is {settings.threshold}: "
                    f"no subword of {language} occurs that often in train"
                )
            write_counts(folder / f"allowed.{language}", allowed)


def _vocabulary(corpus: str, settings: Units, group: WordCounts, folder: Path) -> Vocabulary:
    """The vocabulary of a group's languages once segmented."""
    if settings.words is not None:
        words = _sum(group.values())
        least = settings.words.min_count
        if max(words.values(), default=0) < least:
            raise UserError(
                f"corpora.{corpus}.vocabulary.words.min_count is {least}: no word is as frequent"
            )
        return Vocabulary.from_counts(words, settings.words.max_size, least)
    subwords = (_count_subwords(read_bpe(folder, language), group[language]) for language in group)
    return Vocabulary.from_counts(_sum(subwords))


def _sum(counts: Iterable[Counter[str]]) -> Counter[str]:
    """The sums of counts; + would take ten times as long."""
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return total


def _count_subwords(codes: Bpe, words: Counter[str]) -> Counter[str]:
    """How often each subword occurs; each distinct word is segmented once.

    In C++, where it was built: the first words are compared with subword-nmt's.
    """
    for word in islice(words, _COMPARED):
        assert codes.split(word) == codes.split_by_subword_nmt(word), f"{word!r} is split otherwise"
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for subword in codes.split(word):
            counts[subword] += count
    return counts
