"""Score pairs of lines: how much likelier a pair is as a translation than by chance.

`PairScorer` scores all pairs of a text at some offset.

A pair combines line i of the source with line i + offset of the target. Its score is a natural
logarithm of a likelihood ratio, the sum of two parts:

- Lengths: the ranks of the lengths are mapped to quantiles of the normal distribution. The
  quantiles of both sides are modelled as bivariate normal; the text itself gives the correlation.
- Words: numbers, rare words such as names, and punctuation marks are often copied into the
  translation. For each of these three kinds, the text itself gives the probability of a copy.

Every pair may be an outlier, with the probability `_OUTLIER_PROBABILITY`. This limits how much a
single line counts.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

# The largest score that the words of one pair add, however many of them are copied.
_MAX_WORD_SCORE = 3.0
# The probability that a pair is not a translation although the pairs around it are.
_OUTLIER_PROBABILITY = 0.05
# An upper limit for the estimated correlation of lengths and for the estimated probability of a
# copied word. At 1, a single deviating pair would have an infinitely low score.
_MAX_ESTIMATE = 0.95

Floats = npt.NDArray[np.float64]
_WORD = re.compile(r"\d+|[^\W\d_]{3,}")
# Punctuation marks that languages share. Each variant is mapped to one common sign.
_MARKS = {
    **dict.fromkeys("?？؟", "?"),
    **dict.fromkeys("!！", "!"),
    **dict.fromkeys(":：", ":"),
    **dict.fromkeys("(（", "("),
    **dict.fromkeys('"“„«「『', '"'),
    ";": ";",
    "/": "/",
    "<": "<",
    "%": "%",
}
_MARK = re.compile(f"[{re.escape(''.join(_MARKS))}]")


@dataclass(frozen=True)
class WordSets:
    """The words and marks of each line of a text, one set per line and side."""

    sources: list[set[str]] = field(default_factory=list)
    targets: list[set[str]] = field(default_factory=list)


def words_and_marks(sentence: str) -> set[str]:
    """Return the parts of a sentence that a translation could copy.

    These are numbers, words of three letters or more, and punctuation marks that languages share.
    """
    words = set(_WORD.findall(sentence))
    for mark in _MARK.findall(sentence):
        words.add(_MARKS[mark])
    return words


def _word_kind(word: str) -> str:
    """Return the kind of a word: number, word or mark.

    The probability that a word is copied into the translation is estimated for each kind.
    """
    if word.isdecimal():
        return "number"
    if word.isalpha():
        return "word"
    return "mark"


@dataclass(frozen=True)
class _WordScores:
    """What one word adds to the score of a pair.

    Attributes:
        both: The score if both sides of the pair contain the word.
        source: The score if the source contains it and the target does not.
        target: The score if the target contains it and the source does not.
    """

    both: float
    source: float
    target: float


class PairScorer:
    """Scores the pairs of a text at any offset.

    The parameters (correlation of lengths, probability of copied words) are estimated from the
    pairs at one offset, `estimation_offset`.
    """

    def __init__(self, source: Floats, target: Floats, estimation_offset: int) -> None:
        """Estimate the correlation of lengths.

        Args:
            source: Normal scores of the source lengths, shape (lines,).
            target: Normal scores of the target lengths, shape (lines,).
            estimation_offset: The offset, in lines, that the text is assumed to have.
        """
        self.estimation_offset = estimation_offset
        self._source = source
        self._target = target
        self.length_correlation = _correlation(source, _at_offset(target, estimation_offset))
        self._words = WordSets()
        self._scores_of_word: dict[str, _WordScores] = {}

    def learn_words(self, words: WordSets) -> None:
        """Estimate how often words are copied, and compute the scores of each word from it."""
        lines = len(words.sources)
        source_counts = _line_counts(words.sources)
        target_counts = _line_counts(words.targets)
        shared_words = _informative_words(source_counts, target_counts, lines)
        self._words = WordSets(
            sources=[line_words & shared_words for line_words in words.sources],
            targets=[line_words & shared_words for line_words in words.targets],
        )
        # By kind: how often a word is in a source line, in a target line, and in both of a pair.
        source_kinds = Counter[str]()
        target_kinds = Counter[str]()
        copied_kinds = Counter[str]()
        for word in shared_words:
            source_kinds[_word_kind(word)] += source_counts[word]
            target_kinds[_word_kind(word)] += target_counts[word]
        for source_words, target_words in self._pairs_of_words(self.estimation_offset):
            for word in source_words & target_words:
                copied_kinds[_word_kind(word)] += 1
        for word in shared_words:
            kind = _word_kind(word)
            # Adding 2 to the denominator keeps the estimate low for a kind that occurs rarely.
            self._scores_of_word[word] = _word_scores(
                source_frequency=source_counts[word] / lines,
                target_frequency=target_counts[word] / lines,
                source_copied=copied_kinds[kind] / (source_kinds[kind] + 2),
                target_copied=copied_kinds[kind] / (target_kinds[kind] + 2),
            )

    def pair_scores(self, offset: int) -> Floats:
        """Score each source line with the target line that is `offset` lines later.

        Args:
            offset: The offset in lines; negative for earlier target lines.

        Returns:
            Log likelihood ratios, shape (lines,). A source line whose target line would be before
            the first or after the last line of the text scores 0.
        """
        target = _at_offset(self._target, offset)
        scores = _length_scores(self._source, target, self.length_correlation)
        has_words = len(self._scores_of_word) > 0
        if has_words:
            word_scores = np.minimum(self._sums_of_word_scores(offset), _MAX_WORD_SCORE)
            scores = scores + word_scores
        is_outside_text = np.isnan(target)
        return np.where(is_outside_text, 0.0, _with_outliers(scores))

    def chance_scores(self) -> Floats:
        """Score how much likelier each pair at offset 0 is by chance than as a translation.

        Both the lengths and all clues together must speak against a translation. Words alone are
        not enough: a text of another field can lack the copied words although it is translated.

        Returns:
            Log likelihood ratios in favor of chance, shape (lines,).
        """
        length_scores = _length_scores(self._source, self._target, self.length_correlation)
        translation_scores = np.maximum(_with_outliers(length_scores), self.pair_scores(0))
        return -translation_scores

    def _sums_of_word_scores(self, offset: int) -> Floats:
        """Sum up the word scores of each pair, shape (lines,)."""
        sums = np.zeros(len(self._source))
        first_line = max(0, -offset)
        pairs = self._pairs_of_words(offset)
        for line, (source_words, target_words) in enumerate(pairs, first_line):
            sums[line] = self._sum_of_word_scores(source_words, target_words)
        return sums

    def _sum_of_word_scores(self, source_words: set[str], target_words: set[str]) -> float:
        """Sum up the word scores of one pair."""
        total = 0.0
        for word in source_words:
            scores = self._scores_of_word[word]
            total += scores.both if word in target_words else scores.source
        for word in target_words - source_words:
            total += self._scores_of_word[word].target
        return total

    def _pairs_of_words(self, offset: int) -> Iterator[tuple[set[str], set[str]]]:
        """Pair the words of each source line with those of the target line `offset` later."""
        sources = self._words.sources[max(0, -offset) :]
        targets = self._words.targets[max(0, offset) :]
        return zip(sources, targets, strict=False)


def _line_counts(words: Iterable[set[str]]) -> Counter[str]:
    """Count the lines that contain each word."""
    counts = Counter[str]()
    for line_words in words:
        counts.update(line_words)
    return counts


def _informative_words(
    source_counts: Counter[str], target_counts: Counter[str], lines: int
) -> set[str]:
    """Select the words of both sides that distinguish a translation from a chance pair.

    Frequent words that are spelled alike, such as "in", show little: by chance, a word is in both
    lines of source_count * target_count / lines pairs. A word is left out if that is 2 or more.
    Numbers and marks are always kept.

    Args:
        source_counts: The number of source lines that contain each word.
        target_counts: The number of target lines that contain each word.
        lines: The number of lines.
    """
    informative_words = set()
    for word, source_count in source_counts.items():
        if word not in target_counts:
            continue
        is_rare = source_count * target_counts[word] < 2 * lines
        if is_rare or _word_kind(word) != "word":
            informative_words.add(word)
    return informative_words


def _word_scores(
    *,
    source_frequency: float,
    target_frequency: float,
    source_copied: float,
    target_copied: float,
) -> _WordScores:
    """Compute the scores of one word as log likelihood ratios.

    In a translation, a word of one line is in the other line with the probability of a copy. In a
    chance pair, it is there with its frequency. If the copy is not likelier than that, the word
    tells nothing and scores 0.

    Args:
        source_frequency: Share of the source lines that contain the word.
        target_frequency: Share of the target lines that contain the word.
        source_copied: Probability that a word of this kind in the source is in the target, too.
        target_copied: Probability that a word of this kind in the target is in the source, too.
    """
    in_target = min(_MAX_ESTIMATE, max(source_copied, target_frequency))
    in_source = min(_MAX_ESTIMATE, max(target_copied, source_frequency))
    if in_target <= target_frequency or in_source <= source_frequency:
        return _WordScores(both=0.0, source=0.0, target=0.0)
    # A shared word can be seen from either side: the score is the mean of both views.
    source_view = math.log(in_target / target_frequency)
    target_view = math.log(in_source / source_frequency)
    return _WordScores(
        both=(source_view + target_view) / 2,
        source=math.log((1 - in_target) / (1 - target_frequency)),
        target=math.log((1 - in_source) / (1 - source_frequency)),
    )


def normal_scores(lengths: Floats) -> Floats:
    """Map the rank of each length to a quantile of the standard normal distribution.

    Rank r of n lengths becomes the quantile of probability (r - 0.5) / n. Equal lengths share the
    mean of their ranks, which begin at 1. Shape in and out: (lines,).
    """
    from scipy.special import ndtri  # Loading scipy takes a moment, so it waits for a first use.

    _, value_indices, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    probabilities = (mean_ranks[value_indices] - 0.5) / len(lengths)
    scores: Floats = ndtri(probabilities)
    return scores


def _at_offset(values: Floats, offset: int) -> Floats:
    """Return for each line the value `offset` lines later; NaN beyond both ends of the text."""
    moved_values = np.full(len(values), np.nan)
    if offset >= 0:
        moved_values[: len(values) - offset] = values[offset:]
    else:
        moved_values[-offset:] = values[:offset]
    return moved_values


def _correlation(source: Floats, target: Floats) -> float:
    """Compute Pearson's correlation, limited to the range from 0 to `_MAX_ESTIMATE`.

    Lines whose target is NaN are left out. If all values of one side are equal, the result is 0.
    """
    is_known = ~np.isnan(target)
    known_source = source[is_known]
    known_target = target[is_known]
    if np.ptp(known_source) == 0 or np.ptp(known_target) == 0:
        return 0.0
    correlation = np.corrcoef(known_source, known_target)[0, 1]
    return float(np.clip(correlation, 0.0, _MAX_ESTIMATE))


def _length_scores(source: Floats, target: Floats, correlation: float) -> Floats:
    """Compute log(p(x, y) / (p(x) p(y))) for standard bivariate normal x and y.

    With the correlation r, this is -log(1 - r²) / 2 - (r² (x² + y²) - 2 r x y) / (2 (1 - r²)).
    """
    unexplained_variance = 1 - correlation**2
    squares = correlation**2 * (source**2 + target**2) - 2 * correlation * source * target
    scores: Floats = -0.5 * math.log(unexplained_variance) - squares / (2 * unexplained_variance)
    return scores


def _with_outliers(scores: Floats) -> Floats:
    """Mix the likelihood ratio of each pair with the ratio of an outlier, which is 1.

    No score can fall below log(`_OUTLIER_PROBABILITY`), which is about -3.
    """
    likelihood_ratios = np.exp(scores)
    mixed_scores: Floats = np.log(
        _OUTLIER_PROBABILITY + (1 - _OUTLIER_PROBABILITY) * likelihood_ratios
    )
    return mixed_scores
