"""Scores by bucket: BLEU by source length, and word accuracy by training frequency."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bleuprint.scoring.bleu_variants import in_own_tokens
from bleuprint.scoring.metric import Floats, Metric, MetricValue, Texts, untested_value

# The upper bounds of all buckets but the last, and the buckets' names.
_LENGTHS = (0, 10, 20, 30, 40, 50)
LENGTH_BUCKETS = ("0", "1-10", "11-20", "21-30", "31-40", "41-50", "over 50")
_COUNTS = (0, 1, 4, 9, 99)
COUNT_BUCKETS = ("0", "1", "2-4", "5-9", "10-99", "100+")
# The groups of records are named after a bucket: length 11-20, count 2-4.
LENGTH_GROUP, COUNT_GROUP = "length", "count"
WORD_ACCURACY = "word_accuracy"


def by_length(metric: Metric, statistics: Floats, tokens: Sequence[int]) -> Iterator[MetricValue]:
    """A metric by source length; empty buckets are left out."""
    buckets = np.searchsorted(_LENGTHS, tokens)
    for bucket in np.unique(buckets):
        lines = statistics[buckets == bucket]
        yield untested_value(
            metric.key,
            metric.overall_value(lines),
            len(lines),
            f"{LENGTH_GROUP} {LENGTH_BUCKETS[bucket]}",
        )


def by_count(texts: Texts) -> Iterator[MetricValue]:
    """Word accuracy by training count, per cent; none if tokens are characters."""
    counts = texts.description.training_counts
    if counts is not None:
        hypotheses, references = ([line.split() for line in side] for side in in_own_tokens(texts))
        for bucket, (found, words) in word_accuracy(hypotheses, references, counts).items():
            yield untested_value(
                WORD_ACCURACY, 100 * found / words, words, f"{COUNT_GROUP} {bucket}"
            )


def word_accuracy(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    training_counts: Mapping[str, int],
) -> dict[str, tuple[int, int]]:
    """The references' tokens found in the translations, and all, by bucket of training counts.

    A word counts as often as it occurs; empty buckets are left out. Equal to compare-mt's (Neubig
    et al. 2019) WordBucketer.calc_bucketed_matches.
    """
    words, matched = Counter[int](), Counter[int]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        expected = Counter(reference)
        for counter, counted in ((words, expected), (matched, expected & Counter(hypothesis))):
            for word, times in counted.items():
                counter[bisect_left(_COUNTS, training_counts[word])] += times
    return {
        COUNT_BUCKETS[bucket]: (matched[bucket], total) for bucket, total in sorted(words.items())
    }
