"""Scores by bucket: BLEU by source length, and word accuracy by training frequency."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS

# The upper bounds of all buckets but the last, and the buckets' names.
_LENGTHS = (0, 10, 20, 30, 40, 50)
LENGTHS = ("0", "1-10", "11-20", "21-30", "31-40", "41-50", "over 50")
_COUNTS = (0, 1, 4, 9, 99)
COUNTS = ("0", "1", "2-4", "5-9", "10-99", "100+")


class ByLength(TypedDict):
    """BLEU of the lines in one bucket of source lengths."""

    tokens: str
    lines: int
    bleu: float


class ByCount(TypedDict):
    """Recall of the references' words in one bucket of training counts.

    `found` of `words` occur in the translations; `accuracy` is their ratio, 0 to 1.
    """

    count: str
    words: int
    found: int
    accuracy: float


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    source_tokens: Sequence[int],
    language: str,
) -> list[ByLength]:
    """BLEU by source length; empty buckets are left out."""
    buckets: dict[int, list[tuple[str, str]]] = {}
    for hypothesis, reference, tokens in zip(hypotheses, references, source_tokens, strict=True):
        buckets.setdefault(bisect_left(_LENGTHS, tokens), []).append((hypothesis, reference))
    scores = []
    for bucket, lines in sorted(buckets.items()):
        translated, expected = zip(*lines, strict=True)
        score = bleu_metric(expected, language).corpus_score(translated, None).score
        scores.append(ByLength(tokens=LENGTHS[bucket], lines=len(lines), bleu=round(score, DIGITS)))
    return scores


def word_accuracy(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    training_counts: Mapping[str, int],
) -> list[ByCount]:
    """Recall of the references' tokens by training count; empty buckets are left out.

    A word counts as often as it occurs. Equal to compare-mt's (Neubig et al. 2019)
    WordBucketer.calc_bucketed_matches.
    """
    words, matched = Counter[int](), Counter[int]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        expected = Counter(reference)
        for counter, counted in ((words, expected), (matched, expected & Counter(hypothesis))):
            for word, times in counted.items():
                counter[bisect_left(_COUNTS, training_counts[word])] += times
    return [
        {
            "count": COUNTS[bucket],
            "words": total,
            "found": matched[bucket],
            "accuracy": round(matched[bucket] / total, DIGITS),
        }
        for bucket, total in sorted(words.items())
    ]
