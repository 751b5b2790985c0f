"""Learning the vocabularies of a corpus, and how text is split into the tokens of the model.

There are three kinds of tokens: subwords of byte-pair encoding (BPE), pieces of SentencePiece
(learn_sentencepiece.py), and whole words. Memory grows with the number of distinct words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from bleuprint.config.corpus import Bpe as BpeSettings
from bleuprint.config.corpus import Units, Words
from bleuprint.dataset.bpe_learner import learn_merges
from bleuprint.dataset.count_units import Splitter, count_units
from bleuprint.dataset.learn_sentencepiece import language_groups, learn_sentencepiece
from bleuprint.dataset.subwords.bpe import HEADER, Bpe
from bleuprint.dataset.subwords.segmentation import SEGMENTATION_FILE, read_bpe
from bleuprint.dataset.subwords.vocabulary import Vocabulary, most_frequent, write_counts
from bleuprint.runtime.atomic_files import atomic_folder, write_text
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.progress import track
from bleuprint.text.parallel import TextFolder

# The number of words whose subwords from C++ are compared with subword-nmt's; this takes a few
# milliseconds.
_COMPARED_WORDS = 200

# Word counts by language: of both languages of a joint vocabulary, or of one language.
WordCounts = dict[str, Counter[str]]


def learn_segmentation(
    corpus: str, settings: Units, tokens: TextFolder, folder: Path, workers: int = 1
) -> None:
    """Learn the vocabularies of a corpus, and how words are split into the tokens of the model.

    Both are learned from the training text. Tokens are subwords of BPE, pieces of SentencePiece, or
    whole words. Writes these files, the last four for each LANGUAGE:

    - segmentation.json: the kind of tokens, and whether the vocabulary is joint
    - vocabulary.LANGUAGE: the tokens and their counts
    - codes.LANGUAGE: the merge operations of BPE
    - allowed.LANGUAGE: with a threshold of BPE, the subwords that reach it and their counts, in the
      format of subword-nmt's --vocabulary
    - sentencepiece.LANGUAGE: the model of SentencePiece

    With a joint vocabulary, codes, model and vocabulary are learned from both languages together
    and are the same for both.

    Args:
        corpus: The name of the corpus, for messages.
        settings: The kind and number of tokens.
        tokens: The tokenized text.
        folder: The folder to write.
        workers: The number of processes that count words or pieces.

    Raises:
        UserError: The text has too few words for the settings.
    """
    with atomic_folder(folder) as unfinished_folder:
        description = {"kind": _token_kind(settings), "joint": settings.joint}
        write_json(unfinished_folder / SEGMENTATION_FILE, description)
        if settings.sentencepiece is not None:
            learn_sentencepiece(corpus, settings.sentencepiece, tokens, unfinished_folder, workers)
            return
        word_counts = count_words(corpus, tokens, workers)
        # Languages that share a vocabulary are in one group.
        for languages in language_groups(tokens.languages, settings.joint):
            group_counts = {language: word_counts[language] for language in languages}
            if settings.bpe is not None:
                _learn_bpe(corpus, settings.bpe, group_counts, unfinished_folder)
            vocabulary = _shared_vocabulary(corpus, settings.words, group_counts, unfinished_folder)
            for language in languages:
                vocabulary.write(unfinished_folder / f"vocabulary.{language}")


def _token_kind(settings: Units) -> str:
    """Return the kind of tokens that the settings ask for, as segmentation.json records it."""
    if settings.bpe:
        return "bpe"
    if settings.words:
        return "words"
    return "sentencepiece"  # Exactly one of the three kinds is set.


def count_words(corpus: str, tokens: TextFolder, workers: int = 1) -> WordCounts:
    """Count how often each word occurs in the training text, by language.

    Args:
        corpus: The name of the corpus, for the progress bar.
        tokens: The tokenized text, in which words are separated by spaces.
        workers: The number of processes that count.

    Returns:
        The counts by language, with the words in the order in which they first occur.
    """
    counts = count_units(f"count words {corpus}", tokens, workers, _word_splitter)
    for language_counts in counts.values():
        # Splitting an empty line gives one empty word, which is not counted.
        del language_counts[""]
    return counts


def _word_splitter(_language: str) -> Splitter[str]:
    """Return the function that splits lines into words; it is the same for every language."""
    return lambda lines: " ".join(lines).split(" ")


def learn_codes(progress_name: str, settings: BpeSettings, word_counts: Mapping[str, int]) -> str:
    """Learn the merge operations of BPE, and return them as the text of a file.

    The text is the one that `subword-nmt learn-bpe` writes: a header, and one merge operation per
    line, that is, the two symbols to join.

    Args:
        progress_name: The name of the progress bar.
        settings: The settings, with the largest number of merge operations.
        word_counts: How often each word occurs.
    """
    learned_counts = {}
    for word, count in word_counts.items():
        # Leave out words that begin with \r. subword-nmt drops an \r at the start of a line, and
        # would learn from a different word.
        if not word.startswith("\r"):
            learned_counts[word] = count
    merges = track(
        learn_merges(learned_counts, settings.num_merges),
        progress_name,
        settings.num_merges,
        "BPE merge operations",
    )
    lines = [HEADER]
    for first, second in merges:
        lines.append(f"{first} {second}\n")
    return "".join(lines)


def _learn_bpe(corpus: str, settings: BpeSettings, group_counts: WordCounts, folder: Path) -> None:
    """Learn the merge operations of BPE for the languages that share a vocabulary, and write them.

    Each language gets a copy of the file. With a threshold, a second file lists the subwords that
    occur at least that often in the language. Only these may be used in it: a subword that occurs
    only in the other language would not be trained.

    Args:
        corpus: The name of the corpus, for messages.
        settings: The number of merge operations, and the threshold.
        group_counts: The word counts of these languages.
        folder: The folder to write into.

    Raises:
        UserError: No subword of a language reaches the threshold.
    """
    progress_name = f"learn_vocabulary {corpus} {'+'.join(group_counts)}"
    codes = learn_codes(progress_name, settings, _sum_counts(group_counts.values()))
    for language, word_counts in group_counts.items():
        write_text(folder / f"codes.{language}", codes)
        if not settings.threshold:
            continue  # All subwords may be used.
        subword_counts = _count_subwords(read_bpe(folder, language), word_counts)
        allowed = most_frequent(subword_counts, settings.threshold)
        if not allowed:
            raise UserError(
                f"corpora.{corpus}.vocabulary.bpe.threshold is {settings.threshold}, but no "
                f"subword of {language} occurs that often in train. Lower threshold"
            )
        write_counts(folder / f"allowed.{language}", allowed)


def _shared_vocabulary(
    corpus: str, word_settings: Words | None, group_counts: WordCounts, folder: Path
) -> Vocabulary:
    """Return the vocabulary that one language uses, or that both languages share.

    It consists of whole words, or of the subwords into which BPE splits all words.

    Args:
        corpus: The name of the corpus, for messages.
        word_settings: The settings of a vocabulary of whole words; None for subwords.
        group_counts: The word counts of the languages that share the vocabulary.
        folder: The folder with the merge operations of BPE, if the tokens are subwords.
    """
    if word_settings is not None:
        return _word_vocabulary(corpus, word_settings, group_counts)
    subword_counts = []
    for language, word_counts in group_counts.items():
        bpe = read_bpe(folder, language)
        subword_counts.append(_count_subwords(bpe, word_counts))
    return Vocabulary.from_counts(_sum_counts(subword_counts))


def _word_vocabulary(corpus: str, settings: Words, group_counts: WordCounts) -> Vocabulary:
    """Return the vocabulary of the most frequent words, which one language uses or both share.

    Args:
        corpus: The name of the corpus, for messages.
        settings: How many words are kept, and how often a word must occur.
        group_counts: The word counts of the languages that share the vocabulary.

    Raises:
        UserError: No word occurs often enough.
    """
    counts = _sum_counts(group_counts.values())
    highest_count = max(counts.values(), default=0)
    if highest_count < settings.min_count:
        raise UserError(
            f"corpora.{corpus}.vocabulary.words.min_count is {settings.min_count}, but no word "
            "occurs that often in train. Lower min_count"
        )
    return Vocabulary.from_counts(counts, settings.max_size, settings.min_count)


def _sum_counts(counters: Iterable[Counter[str]]) -> Counter[str]:
    """Add up the counts of several languages."""
    total = Counter[str]()
    for counter in counters:
        # The operator `+` would take ten times as long, because it removes counts below 1.
        total.update(counter)
    return total


def _count_subwords(bpe: Bpe, word_counts: Counter[str]) -> Counter[str]:
    """Count how often each subword of BPE occurs in a text, from the counts of its words.

    Each different word is split only once, and its subwords get the count of the word.

    Args:
        bpe: The merge operations that split a word into subwords.
        word_counts: How often each word occurs in the text.
    """
    # A check of the C++ code that splits words: subword-nmt must split the first words equally.
    for word in islice(word_counts, _COMPARED_WORDS):
        is_equal = bpe.split(word) == bpe.split_by_subword_nmt(word)
        assert is_equal, f"C++ splits {word!r} differently from subword-nmt"
    subword_counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for subword in bpe.split(word):
            subword_counts[subword] += count
    return subword_counts
