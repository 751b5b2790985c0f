"""Scores by bucket: BLEU by source length, and word accuracy by training frequency."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bleuprint.scoring.bleu_variants import in_corpus_tokens
from bleuprint.scoring.metric import Floats, Metric, MetricValue, TranslatedSet, untested_value

# The upper bounds of all buckets of lengths but the last, and the buckets' names.
_MAX_LENGTHS = (0, 10, 20, 30, 40, 50)
LENGTH_BUCKETS = ("0", "1-10", "11-20", "21-30", "31-40", "41-50", "over 50")
# The upper bounds of all buckets of training counts but the last, and the buckets' names.
_MAX_COUNTS = (0, 1, 4, 9, 99)
COUNT_BUCKETS = ("0", "1", "2-4", "5-9", "10-99", "100+")
# The groups of values are named after a bucket: length 11-20, count 2-4.
LENGTH_GROUP = "length"
COUNT_GROUP = "count"
WORD_ACCURACY = "word_accuracy"


class Accuracy(NamedTuple):
    """How many words of the references occur in the translations.

    Attributes:
        matched: The number of words that also occur in the translation of their line.
        words: The number of all words of the references.
    """

    matched: int
    words: int


def by_length(metric: Metric, statistics: Floats, tokens: Sequence[int]) -> Iterator[MetricValue]:
    """Yield the value of a metric for each range of source lengths, such as `length 11-20`.

    Ranges without lines yield nothing.

    Args:
        metric: The metric.
        statistics: What it counts on each line, (lines, counts).
        tokens: The source length of each line in tokens.
    """
    # For each line the index of its range: the first one whose maximum is not below the length.
    buckets = np.searchsorted(_MAX_LENGTHS, tokens)
    for bucket in np.unique(buckets):
        bucket_statistics = statistics[buckets == bucket]
        yield untested_value(
            metric.key,
            metric.overall_value(bucket_statistics),
            units=len(bucket_statistics),
            group=f"{LENGTH_GROUP} {LENGTH_BUCKETS[bucket]}",
        )


def by_training_count(test_set: TranslatedSet) -> Iterator[MetricValue]:
    """Yield how many percent of the reference words are translated, for rare and frequent words.

    Words are grouped by how often they occur in the training text, such as `count 2-4`. If the
    tokens of the corpus are characters, nothing is known about words, and nothing is yielded.
    """
    training_counts = test_set.description.training_counts
    if training_counts is None:
        return
    # Training counts are of words as the tokenizer of the corpus splits them, so the lines to
    # compare must be split in the same way.
    compared = in_corpus_tokens(test_set)
    hypotheses = [line.split() for line in compared.hypotheses]
    references = [line.split() for line in compared.references]
    accuracies = word_accuracy(hypotheses, references, training_counts)
    for bucket, accuracy in accuracies.items():
        yield untested_value(
            WORD_ACCURACY,
            value=100 * accuracy.matched / accuracy.words,
            units=accuracy.words,
            group=f"{COUNT_GROUP} {bucket}",
        )


def word_accuracy(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    training_counts: Mapping[str, int],
) -> dict[str, Accuracy]:
    """Count how many reference words occur in the translations, for rare and frequent words.

    A reference word counts as translated if it occurs in the translation of its line; a word that
    occurs twice must occur twice there. Words are divided into buckets by how often they occur in
    the training text. The numbers equal the ones of compare-mt (Neubig et al. 2019), function
    WordBucketer.calc_bucketed_matches.

    Args:
        hypotheses: The words of each translation.
        references: The words of each reference.
        training_counts: How often each word occurs in the training text.

    Returns:
        The counts by bucket, such as `2-4`, from the rarest words on. Buckets without words are
        left out.
    """
    word_counts: Counter[int] = Counter()
    matched_counts: Counter[int] = Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        reference_words = Counter(reference)
        # Counter's operator & takes the smaller one of both counts of each word.
        matched_words = reference_words & Counter(hypothesis)
        for word, count in reference_words.items():
            word_counts[_bucket_index(training_counts[word])] += count
        for word, count in matched_words.items():
            matched_counts[_bucket_index(training_counts[word])] += count
    accuracies = {}
    for bucket in sorted(word_counts):
        bucket_name = COUNT_BUCKETS[bucket]
        accuracies[bucket_name] = Accuracy(matched_counts[bucket], word_counts[bucket])
    return accuracies


def _bucket_index(training_count: int) -> int:
    """Return the index of the bucket to which a training count belongs."""
    return bisect_left(_MAX_COUNTS, training_count)
