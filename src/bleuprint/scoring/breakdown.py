"""Scores by bucket: BLEU by source length, and word accuracy by training frequency."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bleuprint.scoring.bleu_variants import in_own_tokens
from bleuprint.scoring.metric import Floats, Metric, MetricValue, Texts, untested_value

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
    """How many words of the references the translations have.

    Attributes:
        matched: The words of the references that the translations have.
        words: All words of the references.
    """

    matched: int
    words: int


def by_length(metric: Metric, statistics: Floats, tokens: Sequence[int]) -> Iterator[MetricValue]:
    """Yield a metric for each bucket of source lengths that has lines.

    Args:
        metric: The metric.
        statistics: Its counts, (lines, counts).
        tokens: The source length of each line in tokens.
    """
    buckets = np.searchsorted(_MAX_LENGTHS, tokens)
    for bucket in np.unique(buckets):
        lines = statistics[buckets == bucket]
        yield untested_value(
            metric.key,
            metric.overall_value(lines),
            units=len(lines),
            group=f"{LENGTH_GROUP} {LENGTH_BUCKETS[bucket]}",
        )


def by_count(texts: Texts) -> Iterator[MetricValue]:
    """Yield the word accuracy, in percent, for each bucket of training counts.

    Nothing if the tokens of the corpus are characters, whose training counts are not known.
    """
    training_counts = texts.description.training_counts
    if training_counts is None:
        return
    sides = in_own_tokens(texts)
    hypotheses = [line.split() for line in sides.hypotheses]
    references = [line.split() for line in sides.references]
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
    """Count the words of the references that the translations have, by training frequency.

    A word counts as often as it occurs. Equal to compare-mt's (Neubig et al. 2019)
    WordBucketer.calc_bucketed_matches.

    Args:
        hypotheses: The words of each translation.
        references: The words of each reference.
        training_counts: How often each word occurs in the training text.

    Returns:
        The accuracy of each bucket that has words, rarest first.
    """
    words: Counter[int] = Counter()
    matched: Counter[int] = Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        expected = Counter(reference)
        for word, occurrences in expected.items():
            words[_count_bucket(training_counts[word])] += occurrences
        for word, occurrences in (expected & Counter(hypothesis)).items():
            matched[_count_bucket(training_counts[word])] += occurrences
    accuracies = {}
    for bucket in sorted(words):
        accuracies[COUNT_BUCKETS[bucket]] = Accuracy(matched[bucket], words[bucket])
    return accuracies


def _count_bucket(training_count: int) -> int:
    """Return the number of the bucket of a training count, from 0."""
    return bisect_left(_MAX_COUNTS, training_count)
