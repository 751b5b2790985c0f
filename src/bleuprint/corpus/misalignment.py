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
    """A range of lines of a parallel text that are not translations of each other.

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
        """Return a phrase for a message, such as `lines 301 to 340 fit the target 1 line later`."""
        lines = f"{self.first:,} to {self.last:,}"
        if self.offset is None:
            return f"lines {lines} do not fit at all"
        distance = abs(self.offset)
        unit = "line" if distance == 1 else "lines"
        direction = "later" if self.offset > 0 else "earlier"
        return f"lines {lines} fit the target {distance} {unit} {direction}"


def describe_misfits(misfits: Sequence[Misfit]) -> str:
    """List for a message which lines of a parallel text are not translations of each other.

    Args:
        misfits: The ranges of such lines, in the order in which they are listed.

    Returns:
        The first ranges with their line numbers, and how many more there are.
    """
    phrases = [str(misfit) for misfit in misfits[:_MAX_DESCRIBED_RANGES]]
    remaining_count = len(misfits) - len(phrases)
    if remaining_count > 0:
        phrases.append(f"and {remaining_count} more")
    return ", ".join(phrases)


class PairClues:
    """Finds lines of a parallel text that are not translations, while the text is read once.

    It collects the length of each sentence, and the words that a translation could copy. To limit
    memory, a long text is searched in parts of 500,000 pairs, and words are only collected for a
    text of up to 30,000 pairs.
    """

    def __init__(self, max_pairs_with_words: int = _MAX_PAIRS_WITH_WORDS) -> None:
        """Prepare for the first sentence pair of a text.

        Args:
            max_pairs_with_words: In a text with more pairs than this, only the lengths of sentences
                are compared, not their words.
        """
        self._max_pairs_with_words = max_pairs_with_words
        # The part that is being read: the lengths of both sides in characters, and the words.
        self._source_lengths = array("I")
        self._target_lengths = array("I")
        self._words = WordSets()
        # The number of lines in earlier parts, and what was found in them.
        self._searched_lines = 0
        self._misfits: list[Misfit] = []

    def collect(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Look at sentence pairs on their way from a reader to its caller.

        Args:
            pairs: The next pairs of the text.

        Yields:
            The same pairs, unchanged.
        """
        for pair in pairs:
            self.add(pair)
            yield pair

    def add(self, pair: Pair) -> None:
        """Collect the lengths and words of the next sentence pair of the text.

        To limit memory, a long text is searched in parts: when the current part is full, it is
        searched, and its lengths are discarded. Words are collected only up to a number of pairs;
        a text with more pairs is judged by its lengths alone.
        """
        if len(self._source_lengths) == _MAX_PAIRS_PER_PART:
            self._search_part()
        pair_index = self._searched_lines + len(self._source_lengths)
        is_first_part = self._searched_lines == 0
        if is_first_part and pair_index < self._max_pairs_with_words:
            self._words.sources.append(words_and_marks(pair.source))
            self._words.targets.append(words_and_marks(pair.target))
        self._source_lengths.append(len(pair.source))
        self._target_lengths.append(len(pair.target))

    def misfits(self) -> list[Misfit]:
        """Return the ranges of lines that are not translations, after the last pair was added.

        Returns:
            The ranges, in the order of their lines. A text with fewer than 50 lines has none.
        """
        self._search_part()
        return self._misfits

    def _search_part(self) -> None:
        """Search the sentence pairs collected so far for lines that are not translations.

        The ranges are added to `_misfits`. The collected lengths and words are discarded.
        """
        source_lengths = np.array(self._source_lengths, float)
        target_lengths = np.array(self._target_lengths, float)
        part_lines = len(source_lengths)
        # Of a long text, only the first pairs have words. Then it is judged by its lengths alone.
        has_all_words = len(self._words.sources) == part_lines
        if part_lines >= _MIN_TEXT_LINES:
            words = self._words if has_all_words else None
            for misfit in _find_in_part(source_lengths, target_lengths, words):
                # From line numbers within this part to line numbers of the text.
                first = self._searched_lines + misfit.first
                last = self._searched_lines + misfit.last
                self._misfits.append(Misfit(first, last, misfit.offset))
        self._searched_lines += part_lines
        self._source_lengths = array("I")
        self._target_lengths = array("I")
        self._words = WordSets()


def find_misfits(sources: Sequence[str], targets: Sequence[str]) -> list[Misfit]:
    """Find the lines of a parallel text that are not translations of each other.

    Args:
        sources: The source sentences.
        targets: The target sentences, as many as source sentences.

    Returns:
        Ranges of such lines, in the order of the text.
    """
    clues = PairClues()
    for source, target in zip(sources, targets, strict=True):
        clues.add(Pair(source, target))
    return clues.misfits()


def _is_correlation_expected(source_lengths: Floats, target_lengths: Floats) -> bool:
    """Return whether the lengths of this text's lines would correlate if they were translations.

    A long sentence usually has a long translation, so low correlation reveals unrelated lines. But
    if all lines are about equally long, like menu entries, their differences are chance, and even
    translations hardly correlate.

    The model: log target length = log source length + noise. By Gale and Church (1993), the length
    of a translation of n characters has the variance 6.8 n. The variance of its logarithm is then
    6.8 n / n² = 6.8 / n. With the variance V of the log lengths and the mean variance N of the
    noise, the log lengths of translations have the correlation sqrt(V / (V + N)).

    Args:
        source_lengths: Lengths in characters, (lines,).
        target_lengths: Lengths in characters, (lines,).
    """
    # Add a character, because the logarithm of an empty line's length 0 does not exist.
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
    """Return how much better a range of lines must fit at another offset to be reported as shifted.

    The fit is a sum of log-likelihood ratios. In a text without shifted lines, a range with a sum
    above T occurs by chance, at one offset, with a probability of at most lines * exp(-T). The
    result is the T for which the probability at all offsets together is 1 in 1,000 texts.

    Args:
        line_count: The number of lines of the text.
    """
    return math.log(len(OFFSETS) * line_count / _FALSE_ALARM_PROBABILITY)


def _find_in_part(
    source_lengths: Floats, target_lengths: Floats, words: WordSets | None
) -> list[Misfit]:
    """Find the lines of a text, or of a part of it, that are not translations of each other.

    If neither the lengths nor the words of the two sides fit at the best offset, the whole text is
    unrelated: one range contains all lines. Otherwise, ranges of lines are searched that do not
    fit.

    Args:
        source_lengths: Lengths in characters, (lines,).
        target_lengths: Lengths in characters, (lines,).
        words: The words of all lines; None to judge by the lengths alone.

    Returns:
        Ranges of such lines, in order. Lines are counted from 1 within the given lines.
    """
    line_count = len(source_lengths)
    # The scorer of the offset at which the most lines fit, since a whole text may be shifted.
    best_scorer, best_total = _best_scorer(source_lengths, target_lengths, words)
    is_uncorrelated = best_scorer.length_correlation < _MIN_RELATED_CORRELATION
    is_unlikely = best_total < _shift_threshold(line_count)
    should_correlate = _is_correlation_expected(source_lengths, target_lengths)
    if is_uncorrelated and is_unlikely and should_correlate:
        return [Misfit(first=1, last=line_count, offset=None)]
    return _find_ranges(best_scorer)


def _best_scorer(
    source_lengths: Floats, target_lengths: Floats, words: WordSets | None
) -> tuple[PairScorer, float]:
    """Choose the offset at which the lines of a text fit best, and learn from the pairs there.

    A scorer learns from pairs of lines how the lengths and words of translations correspond. The
    pairs are source line i and target line i + offset. The offset is 0 in a good text, but 1 if all
    target lines are one line late.

    Args:
        source_lengths: Lengths in characters, (lines,).
        target_lengths: Lengths in characters, (lines,).
        words: The words of all lines; None to judge by the lengths alone.

    Returns:
        The scorer, and the sum of its scores over all pairs at the offset from which it learned.
    """
    source = normal_scores(source_lengths)
    target = normal_scores(target_lengths)
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
    return best_scorer, best_total


def _find_ranges(scorer: PairScorer) -> list[Misfit]:
    """Find the ranges of lines that do not fit, shifted or unrelated, in the order of the text.

    The translation of a shifted line is one or two lines earlier or later. An unrelated line has no
    translation nearby.
    """
    shifted = _find_shifted_ranges(scorer)
    unrelated = _find_unrelated_ranges(scorer, shifted)
    return sorted(shifted + unrelated, key=lambda misfit: misfit.first)


def _find_shifted_ranges(scorer: PairScorer) -> list[Misfit]:
    """Find ranges of lines whose translations are one or two lines earlier or later.

    An offset pairs source line i with target line i + offset. A line's gain at an offset is its
    score there minus its score at offset 0: positive if the shifted target line fits better. Each
    round finds the range of lines with the largest sum of gains at any offset, and excludes these
    lines from the next rounds.

    Args:
        scorer: Returns for an offset the score of each line: how much likelier it and its partner
            are as translations than by chance (log-likelihood ratio).

    Returns:
        The ranges, the clearest first.
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
        # A gain may only mean that lines fit less badly at this offset. A range is shifted only if
        # its pairs look like translations there, that is, if the sum of their scores is positive.
        scores_at_offset = shifted_scores[best_offset]
        has_translations = scores_at_offset[best.start : best.stop].sum() > 0
        if has_translations and best.line_count >= _MIN_SHIFTED_LINES:
            misfits.append(best.to_misfit(best_offset))
    return misfits


def _find_unrelated_ranges(scorer: PairScorer, shifted: Sequence[Misfit]) -> list[Misfit]:
    """Find ranges of lines without a translation in the nearby target lines.

    Each round finds the range of lines with the largest sum of chance scores, and excludes these
    lines from the next rounds.

    Args:
        scorer: Returns for each line its chance score: how much likelier it and the target line
            with the same number are by chance than as translations (log-likelihood ratio).
        shifted: Ranges whose translations are one or two lines earlier or later. Their lines are
            excluded from the start.

    Returns:
        The ranges, the clearest first. Their number and the number of shifted ranges are limited
        together.
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
            misfits.append(best.to_misfit(offset=None))
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
        """Return this range as it is reported: with lines counted from 1.

        Args:
            offset: How many lines later in the target the translations are; None if nowhere.
        """
        return Misfit(first=self.start + 1, last=self.stop, offset=offset)


def _without_excluded(scores: Floats, is_excluded: _Booleans) -> Floats:
    """Replace the scores of excluded lines by one so low that no best range contains them."""
    return np.where(is_excluded, _EXCLUDED_LINE_SCORE, scores)


def _best_range(scores: Floats) -> _Range:
    """Find the range of lines with the largest sum of scores, in linear time.

    The scores -1 2 3 -4 have the best range 2 3. The sum of a range is the difference of two
    cumulative sums: at its end, and before its start. So for each end, the best start is where the
    cumulative sum was lowest before it (Kadane's algorithm, in numpy).

    Args:
        scores: The score of each line, (lines,); some are negative.
    """
    cumulative_sums = np.append(0.0, np.cumsum(scores))
    lowest_sums = np.minimum.accumulate(cumulative_sums)
    largest_totals = cumulative_sums - lowest_sums  # For each end, the largest sum of a range.
    stop = int(largest_totals.argmax())
    start = int(cumulative_sums[: stop + 1].argmin())
    return _Range(total=float(largest_totals[stop]), start=start, stop=stop)
