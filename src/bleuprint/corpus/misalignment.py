"""Find lines of parallel text that are not translations of each other, from the text alone.

`PairClues` collects a text pair by pair, and `find_misfits` takes a whole text. pair_scores.py
scores how much likelier two lines are as a translation than by chance. The score is the natural
logarithm of a likelihood ratio.

Shifted ranges: where the target is one line late, the pairs at offset 1 score higher than the pairs
at offset 0, line after line. For each offset of `OFFSETS`, the search takes the range of lines with
the largest summed difference, as local sequence alignment does. In a text whose lines are all in
place, the sum of log likelihood ratios exceeds T anywhere with a probability of at most
lines * exp(-T) for each offset. The four offsets together give the threshold
T = log(4 * lines / `_FALSE_ALARM_PROBABILITY`). docs/corpora.md lists the measured error rates.

Unrelated ranges: where no offset fits, the target contains other text, or its lines moved further.
The search takes ranges in which the pairs at offset 0 score low, both by lengths and by all parts.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bleuprint.corpus.pair_scores import (
    Floats,
    PairScorer,
    WordSets,
    normal_scores,
    words_and_marks,
)
from bleuprint.text.parallel import Pair

# The offsets, in lines, at which the search looks for translations that are not at offset 0.
OFFSETS = (-2, -1, 1, 2)

# A text with fewer lines than this is too short for an estimate, so that nothing is reported.
_MIN_TEXT_LINES = 50
# Shorter ranges are not reported. An unrelated range needs more lines than a shifted one, because
# true texts contain passages of free translation.
_MIN_SHIFTED_LINES = 20
_MIN_UNRELATED_LINES = 50
# The search stops after so many ranges, and `describe_misfits` lists the first of them with their
# line numbers.
_MAX_RANGES = 20
_MAX_DESCRIBED_RANGES = 3

# An upper bound on the probability that any shifted range is reported in a text without one.
_FALSE_ALARM_PROBABILITY = 0.001
# The smallest summed score (natural logarithm) of an unrelated range. It is well above 0, since
# true texts contain passages of free or wrong translation.
_MIN_UNRELATED_SCORE = 20.0
# The largest score (natural logarithm) that one line adds to the sum of a range. With these caps, a
# range needs several lines that agree.
_MAX_SHIFTED_LINE_SCORE = 4.0
_MAX_UNRELATED_LINE_SCORE = 3.0
# The length of a translation varies around its expected value with a variance of 6.8 squared
# characters for each character of the source (Gale and Church 1993).
_LENGTH_VARIANCE_PER_CHARACTER = 6.8
# A whole text is unrelated if its correlation of lengths is below the first value, provided that
# translations with lengths like these would reach the second one. Parallel texts have correlations
# of 0.57 and more, unrelated texts of 0.1. Translated menu entries of one word would only reach
# 0.33, so that they are not judged.
_MIN_RELATED_CORRELATION = 0.3
_MIN_EXPECTED_CORRELATION = 0.4

# To limit memory: texts with more pairs than the first value are judged by their lengths alone, and
# texts with more pairs than the second value are judged in parts of that size.
_MAX_PAIRS_WITH_WORDS = 30_000
_MAX_PAIRS_PER_PART = 500_000

# Replaces the score of each line that already belongs to a range. It is so low that the range with
# the largest sum leaves the line out.
_EXCLUDED_LINE_SCORE = -1e6

_Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Misfit:
    """A range of lines whose source and target do not fit each other.

    Attributes:
        first: Number of the first line of the range, counted from 1.
        last: Number of the last line of the range, which belongs to it.
        offset: The translations are so many lines later in the target, or earlier if the offset is
            negative. None if no offset fits.
    """

    first: int
    last: int
    offset: int | None

    def __str__(self) -> str:
        """Return the range as a phrase of a message."""
        lines = f"{self.first:,} to {self.last:,}"
        if self.offset is None:
            return f"lines {lines} do not fit at all"
        distance = abs(self.offset)
        unit = "line" if distance == 1 else "lines"
        direction = "later" if self.offset > 0 else "earlier"
        return f"lines {lines} fit the target {distance} {unit} {direction}"


def describe_misfits(misfits: Sequence[Misfit]) -> str:
    """Describe ranges in one phrase.

    Args:
        misfits: Ranges, in the order of the phrase.

    Returns:
        The first ranges with their lines, and the number of the remaining ones.
    """
    phrases = [str(misfit) for misfit in misfits[:_MAX_DESCRIBED_RANGES]]
    remaining_count = len(misfits) - len(phrases)
    if remaining_count > 0:
        phrases.append(f"and {remaining_count} more")
    return ", ".join(phrases)


class PairClues:
    """Collects lengths and words of pairs while they are read, and finds the ranges that misfit.

    Memory: the words and marks of up to 30,000 pairs, and the lengths of up to 500,000 pairs.
    """

    def __init__(self, max_pairs_with_words: int = _MAX_PAIRS_WITH_WORDS) -> None:
        """Start without pairs.

        Args:
            max_pairs_with_words: A text with more pairs than this is judged by its lengths alone.
        """
        self._max_pairs_with_words = max_pairs_with_words
        # The part that is being read: the lengths of both sides in characters, and the words.
        self._source_lengths = array("I")
        self._target_lengths = array("I")
        self._words = WordSets()
        # The number of lines in earlier parts, and the ranges of these parts.
        self._judged_lines = 0
        self._misfits: list[Misfit] = []

    def collect(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Add each pair, and pass it on unchanged.

        Args:
            pairs: The next pairs of the text.

        Yields:
            The same pairs.
        """
        for pair in pairs:
            self.add(pair)
            yield pair

    def add(self, pair: Pair) -> None:
        """Add the next pair of the text."""
        if len(self._source_lengths) == _MAX_PAIRS_PER_PART:
            self._judge_part()
        pair_number = self._judged_lines + len(self._source_lengths)
        if pair_number < self._max_pairs_with_words and self._judged_lines == 0:
            self._words.sources.append(words_and_marks(pair.source))
            self._words.targets.append(words_and_marks(pair.target))
        self._source_lengths.append(len(pair.source))
        self._target_lengths.append(len(pair.target))

    def misfits(self) -> list[Misfit]:
        """Find the ranges of lines that do not fit, after the last pair was added.

        Returns:
            The ranges, in the order of their lines. A text with fewer than 50 lines has none.
        """
        self._judge_part()
        return self._misfits

    def _judge_part(self) -> None:
        """Find the ranges of the part that was read, and discard its lengths and words."""
        source_lengths = np.array(self._source_lengths, float)
        target_lengths = np.array(self._target_lengths, float)
        part_lines = len(source_lengths)
        # The words of long texts are not collected to the end.
        has_all_words = len(self._words.sources) == part_lines
        if part_lines >= _MIN_TEXT_LINES:
            words = self._words if has_all_words else None
            for misfit in _find_in_part(source_lengths, target_lengths, words):
                first = self._judged_lines + misfit.first
                last = self._judged_lines + misfit.last
                self._misfits.append(Misfit(first, last, misfit.offset))
        self._judged_lines += part_lines
        self._source_lengths = array("I")
        self._target_lengths = array("I")
        self._words = WordSets()


def find_misfits(sources: Sequence[str], targets: Sequence[str]) -> list[Misfit]:
    """Find the ranges of lines of a parallel text that do not fit each other.

    Args:
        sources: The lines of the source.
        targets: The lines of the target, as many as in the source.

    Returns:
        The ranges, in the order of their lines.
    """
    clues = PairClues()
    for source, target in zip(sources, targets, strict=True):
        clues.add(Pair(source, target))
    return clues.misfits()


def _is_correlation_expected(source_lengths: Floats, target_lengths: Floats) -> bool:
    """Decide whether the lengths of translations would correlate noticeably in such a text.

    Short lines of similar lengths hardly correlate even if they are translations: their lengths
    vary less than the length of a translation does by chance.

    The model: log target length = log source length + noise. By Gale and Church (1993), the length
    of a translation of n characters has the variance 6.8 n. The variance of its logarithm is then
    6.8 n / n² = 6.8 / n. With the variance V of the log lengths and the mean variance N of the
    noise, the log lengths of translations have the correlation sqrt(V / (V + N)).

    Args:
        source_lengths: Lengths in characters, shape (lines,).
        target_lengths: Lengths in characters, shape (lines,).
    """
    # One more character, so that empty lines have a logarithm.
    source_lengths = source_lengths + 1
    target_lengths = target_lengths + 1
    source_variance = np.var(np.log(source_lengths))
    target_variance = np.var(np.log(target_lengths))
    length_variance = (source_variance + target_variance) / 2
    shorter_lengths = np.minimum(source_lengths, target_lengths)
    noise_variance = _LENGTH_VARIANCE_PER_CHARACTER * np.mean(1 / shorter_lengths)
    expected_correlation = math.sqrt(length_variance / (length_variance + noise_variance))
    return expected_correlation >= _MIN_EXPECTED_CORRELATION


def _shift_threshold(line_count: int) -> float:
    """Return the smallest sum of gains in a shifted range, as the module docstring derives it.

    With this threshold, a range is reported by mistake in at most one of a thousand texts.
    """
    return math.log(len(OFFSETS) * line_count / _FALSE_ALARM_PROBABILITY)


def _find_in_part(
    source_lengths: Floats, target_lengths: Floats, words: WordSets | None
) -> list[Misfit]:
    """Find the ranges that do not fit in one part of a text.

    Args:
        source_lengths: Lengths in characters, shape (lines,).
        target_lengths: Lengths in characters, shape (lines,).
        words: The words of all lines; None to judge by the lengths alone.

    Returns:
        The ranges in the order of their lines, which are counted from 1 in this part.
    """
    line_count = len(source_lengths)
    source = normal_scores(source_lengths)
    target = normal_scores(target_lengths)
    # If all lines of a text are shifted, the parameters can only be estimated at that offset. So
    # there is a scorer for each offset, and the one that explains the pairs at its offset best is
    # used.
    scorers = []
    total_scores = []
    for offset in (0, *OFFSETS):
        scorer = PairScorer(source, target, estimation_offset=offset)
        if words is not None:
            scorer.learn_words(words)
        scorers.append(scorer)
        total_scores.append(float(scorer.pair_scores(offset).sum()))
    best_total = max(total_scores)
    best_scorer = scorers[total_scores.index(best_total)]

    is_uncorrelated = best_scorer.length_correlation < _MIN_RELATED_CORRELATION
    is_unexplained = best_total < _shift_threshold(line_count)
    should_correlate = _is_correlation_expected(source_lengths, target_lengths)
    if is_uncorrelated and is_unexplained and should_correlate:
        return [Misfit(first=1, last=line_count, offset=None)]
    return _find_ranges(best_scorer)


def _find_ranges(scorer: PairScorer) -> list[Misfit]:
    """Find the shifted ranges, then the unrelated ranges outside of them, in order."""
    shifted = _find_shifted_ranges(scorer)
    unrelated = _find_unrelated_ranges(scorer, shifted)
    return sorted(shifted + unrelated, key=lambda misfit: misfit.first)


def _find_shifted_ranges(scorer: PairScorer) -> list[Misfit]:
    """Find the ranges that fit better at another offset than at offset 0, the clearest first.

    Each round takes the range with the largest sum of gains over all offsets, and excludes its
    lines from the next rounds. A line's gain is its score at the offset minus its score at 0.
    """
    unshifted_scores = scorer.pair_scores(0)
    shifted_scores = {}
    gains = {}
    for offset in OFFSETS:
        shifted_scores[offset] = scorer.pair_scores(offset)
        gain = shifted_scores[offset] - unshifted_scores
        gains[offset] = np.minimum(gain, _MAX_SHIFTED_LINE_SCORE)
    line_count = len(unshifted_scores)
    threshold = _shift_threshold(line_count)
    is_excluded = np.zeros(line_count, bool)
    misfits: list[Misfit] = []
    while len(misfits) < _MAX_RANGES:
        candidates = {}
        for offset in OFFSETS:
            candidates[offset] = _best_range(_without_excluded(gains[offset], is_excluded))
        best_offset = max(OFFSETS, key=lambda offset: candidates[offset].total)
        best = candidates[best_offset]
        if best.total < threshold:
            break
        is_excluded[best.start : best.stop] = True
        # Where nothing fits, some lines fit less badly at another offset by chance. A range counts
        # as shifted only if its pairs look like translations there.
        fits_at_offset = shifted_scores[best_offset][best.start : best.stop].sum() > 0
        if fits_at_offset and best.line_count >= _MIN_SHIFTED_LINES:
            misfits.append(best.to_misfit(best_offset))
    return misfits


def _find_unrelated_ranges(scorer: PairScorer, shifted: Sequence[Misfit]) -> list[Misfit]:
    """Find the ranges that fit at no offset, outside of the shifted ranges, the clearest first.

    Each round takes the range with the largest sum of chance scores, and excludes its lines from
    the next rounds. Shifted and unrelated ranges together are at most `_MAX_RANGES`.
    """
    chance_scores = np.minimum(scorer.chance_scores(), _MAX_UNRELATED_LINE_SCORE)
    is_excluded = np.zeros(len(chance_scores), bool)
    for misfit in shifted:
        # Misfits count lines from 1, and contain their last line.
        is_excluded[misfit.first - 1 : misfit.last] = True
    misfits: list[Misfit] = []
    while len(shifted) + len(misfits) < _MAX_RANGES:
        best = _best_range(_without_excluded(chance_scores, is_excluded))
        if best.total < _MIN_UNRELATED_SCORE:
            break
        is_excluded[best.start : best.stop] = True
        if best.line_count >= _MIN_UNRELATED_LINES:
            misfits.append(best.to_misfit(None))
    return misfits


@dataclass(frozen=True)
class _Range:
    """A range of lines, counted from 0, and the sum of its scores.

    Attributes:
        total: The sum of the scores of the lines.
        start: The first line.
        stop: The line after the last one.
    """

    total: float
    start: int
    stop: int

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return self.stop - self.start

    def to_misfit(self, offset: int | None) -> Misfit:
        """Return the same range with lines counted from 1; `offset` says where the lines fit."""
        return Misfit(first=self.start + 1, last=self.stop, offset=offset)


def _without_excluded(scores: Floats, is_excluded: _Booleans) -> Floats:
    """Replace the scores of excluded lines by `_EXCLUDED_LINE_SCORE`."""
    return np.where(is_excluded, _EXCLUDED_LINE_SCORE, scores)


def _best_range(scores: Floats) -> _Range:
    """Find the range of lines with the largest sum of scores, in linear time.

    The sum of a range is the difference of two cumulative sums: at its end and before its start.
    For each end, the best start is where the cumulative sum was lowest so far.
    """
    cumulative_sums = np.append(0.0, np.cumsum(scores))
    lowest_sums = np.minimum.accumulate(cumulative_sums)
    largest_totals = cumulative_sums - lowest_sums
    stop = int(largest_totals.argmax())
    start = int(cumulative_sums[: stop + 1].argmin())
    return _Range(float(largest_totals[stop]), start, stop)
