"""Finds lines of parallel text that are not translations of each other, from the text alone.

A pair combines line i of the source with line i + offset of the target. Its score is the logarithm
of a likelihood ratio: how much likelier the pair is as a translation than as two lines that met by
chance. The score is the sum of two parts:

- Lengths: the ranks of the lengths are mapped to quantiles of the normal distribution. The
  quantiles of both sides are modelled as bivariate normal; the text itself gives the correlation.
- Words: numbers, rare words such as names, and punctuation marks are often copied into the
  translation. For each of these three kinds, the text itself gives the probability of a copy.

Every pair may be an outlier, with the probability `_OUTLIER_PROBABILITY`. This limits how much a
single line counts.

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
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bleuprint.text.parallel import Pair

# The offsets, in lines, at which the search looks for translations that are not at offset 0.
OFFSETS = (-2, -1, 1, 2)

# A text with fewer lines than this is too short for an estimate, so that nothing is reported.
_MIN_TEXT_LINES = 50
# Shorter ranges are not reported. An unrelated range needs more lines than a shifted one, because
# true texts contain passages of free translation.
_MIN_SHIFTED_LINES = 20
_MIN_UNRELATED_LINES = 50
# The search stops after so many ranges, and `described` lists the first of them by their lines.
_MAX_RANGES = 20
_MAX_DESCRIBED_RANGES = 3

# An upper bound on the probability that any shifted range is reported in a text without one.
_FALSE_ALARM_PROBABILITY = 0.001
# The smallest summed score (natural logarithm) of an unrelated range. It was set by hand: passages
# of free or wrong translation in true texts stay below it.
_MIN_UNRELATED_SCORE = 20.0
# The largest score (natural logarithm) that one line adds to the sum of a range. With these caps, a
# range needs several lines that agree.
_MAX_SHIFTED_LINE_SCORE = 4.0
_MAX_UNRELATED_LINE_SCORE = 3.0
# The largest score that the words of one pair add: copied words of one pair are not independent.
_MAX_WORD_SCORE = 3.0
# The probability that a pair is not a translation although the pairs around it are.
_OUTLIER_PROBABILITY = 0.05
# An upper limit for the estimated correlation of lengths and for the estimated probability of a
# copied word. At 1, a single deviating pair would have an infinitely low score.
_MAX_ESTIMATE = 0.95

# The length of a translation varies around its expected value with a variance of 6.8 squared
# characters for each character of the source (Gale and Church 1993).
_LENGTH_VARIANCE_PER_CHARACTER = 6.8
# A whole text is unrelated if its correlation of lengths is below the first value, provided that
# translations with lengths like these would reach the second one. Measured correlations: 0.57 and
# more in parallel texts, 0.1 in unrelated texts. Translated menu entries of one word are expected
# to reach 0.33 only, so that they are not judged.
_MIN_RELATED_CORRELATION = 0.3
_MIN_EXPECTED_CORRELATION = 0.4

# To limit memory: texts with more pairs than the first value are judged by their lengths alone, and
# texts with more pairs than the second value are judged in parts of that size.
_MAX_PAIRS_WITH_WORDS = 30_000
_MAX_PAIRS_PER_PART = 500_000

# Replaces the score of each line that already belongs to a range. It is so low that the range with
# the largest sum leaves the line out.
_EXCLUDED_LINE_SCORE = -1e6

_Floats = npt.NDArray[np.float64]
_Booleans = npt.NDArray[np.bool_]
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
        lines = f"{self.first:,} to {self.last:,}"
        if self.offset is None:
            return f"lines {lines} do not fit at all"
        distance = abs(self.offset)
        unit = "line" if distance == 1 else "lines"
        direction = "later" if self.offset > 0 else "earlier"
        return f"lines {lines} fit the target {distance} {unit} {direction}"


def described(misfits: Sequence[Misfit]) -> str:
    """Describe ranges in one phrase.

    Args:
        misfits: Ranges, in the order in which they are described.

    Returns:
        The first ranges with their lines, and the number of the remaining ones.
    """
    phrases = [str(misfit) for misfit in misfits[:_MAX_DESCRIBED_RANGES]]
    remaining_count = len(misfits) - len(phrases)
    if remaining_count > 0:
        phrases.append(f"and {remaining_count} more")
    return ", ".join(phrases)


@dataclass(frozen=True)
class _WordSets:
    """The words and marks of each line of a text, one set per line and side."""

    sources: list[set[str]] = field(default_factory=list)
    targets: list[set[str]] = field(default_factory=list)


class PairClues:
    """Collects lengths and words of pairs while they are read, and finds the ranges that misfit.

    Memory: the words and marks of up to 30,000 pairs, and the lengths of up to 500,000 pairs.
    """

    def __init__(self, most_with_words: int = _MAX_PAIRS_WITH_WORDS) -> None:
        """Start without pairs.

        Args:
            most_with_words: A text with more pairs than this is judged by its lengths alone.
        """
        self._max_pairs_with_words = most_with_words
        # The lengths of both sides in characters, and the words of the part that is being read.
        self._source_lengths = array("I")
        self._target_lengths = array("I")
        self._words = _WordSets()
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
            self._words.sources.append(_words_and_marks(pair.source))
            self._words.targets.append(_words_and_marks(pair.target))
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
        self._words = _WordSets()


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


def _words_and_marks(sentence: str) -> set[str]:
    """The parts that a translation could copy: numbers, words of three letters or more, marks."""
    words = set(_WORD.findall(sentence))
    words.update(_MARKS[mark] for mark in _MARK.findall(sentence))
    return words


def _kind(word: str) -> str:
    """The kind of a word; the probability of a copy is estimated for each kind."""
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


class _PairScorer:
    """Scores the pairs of a text at any offset.

    The parameters (correlation of lengths, probability of copied words) are estimated from the
    pairs at one offset, `estimation_offset`.
    """

    def __init__(self, source: _Floats, target: _Floats, estimation_offset: int) -> None:
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
        self._words = _WordSets()
        self._scores_of_word: dict[str, _WordScores] = {}

    def learn_words(self, words: _WordSets) -> None:
        """Estimate how often words are copied, and compute the scores of each word from it."""
        lines = len(words.sources)
        source_counts = _line_counts(words.sources)
        target_counts = _line_counts(words.targets)
        shared_words = _telling_words(source_counts, target_counts, lines)
        self._words = _WordSets(
            sources=[line_words & shared_words for line_words in words.sources],
            targets=[line_words & shared_words for line_words in words.targets],
        )
        # By kind: how often a word is in a source line, in a target line, and in both of a pair.
        source_kinds = Counter[str]()
        target_kinds = Counter[str]()
        copied_kinds = Counter[str]()
        for word in shared_words:
            source_kinds[_kind(word)] += source_counts[word]
            target_kinds[_kind(word)] += target_counts[word]
        for source_words, target_words in self._pairs_of_words(self.estimation_offset):
            for word in source_words & target_words:
                copied_kinds[_kind(word)] += 1
        for word in shared_words:
            kind = _kind(word)
            # The 2 in the denominator keeps the estimate low for a kind that occurs rarely.
            self._scores_of_word[word] = _word_scores(
                source_frequency=source_counts[word] / lines,
                target_frequency=target_counts[word] / lines,
                source_copied=copied_kinds[kind] / (source_kinds[kind] + 2),
                target_copied=copied_kinds[kind] / (target_kinds[kind] + 2),
            )

    def pair_scores(self, offset: int) -> _Floats:
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

    def chance_scores(self) -> _Floats:
        """Score how much likelier each pair at offset 0 is by chance than as a translation.

        Both the lengths and all clues together must speak against a translation. Words alone are
        not enough: a text of another field can lack the copied words although it is translated.

        Returns:
            Log likelihood ratios in favor of chance, shape (lines,).
        """
        length_scores = _length_scores(self._source, self._target, self.length_correlation)
        translation_scores = np.maximum(_with_outliers(length_scores), self.pair_scores(0))
        return -translation_scores

    def _sums_of_word_scores(self, offset: int) -> _Floats:
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


def _telling_words(
    source_counts: Counter[str], target_counts: Counter[str], lines: int
) -> set[str]:
    """Select the words of both sides that tell a translation from a chance pair.

    Frequent words that are spelled alike, such as "in", tell little: by chance, a word is in both
    lines of source_count * target_count / lines pairs. A word is left out if that is 2 or more.
    Numbers and marks are always kept.
    """
    telling_words = set()
    for word, source_count in source_counts.items():
        if word not in target_counts:
            continue
        is_rare = source_count * target_counts[word] < 2 * lines
        if is_rare or _kind(word) != "word":
            telling_words.add(word)
    return telling_words


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


def _normal_scores(lengths: _Floats) -> _Floats:
    """Map the rank of each length to a quantile of the standard normal distribution.

    Rank r of n lengths becomes the quantile of probability (r - 0.5) / n. Equal lengths share the
    mean of their ranks, which begin at 1. Shape in and out: (lines,).
    """
    from scipy.special import ndtri  # Loading scipy takes a moment, so it waits for a first use.

    _, value_indices, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    probabilities = (mean_ranks[value_indices] - 0.5) / len(lengths)
    scores: _Floats = ndtri(probabilities)
    return scores


def _at_offset(values: _Floats, offset: int) -> _Floats:
    """Return for each line the value `offset` lines later; NaN beyond both ends of the text."""
    moved_values = np.full(len(values), np.nan)
    if offset >= 0:
        moved_values[: len(values) - offset] = values[offset:]
    else:
        moved_values[-offset:] = values[:offset]
    return moved_values


def _correlation(source: _Floats, target: _Floats) -> float:
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


def _length_scores(source: _Floats, target: _Floats, correlation: float) -> _Floats:
    """Compute log(p(x, y) / (p(x) p(y))) for standard bivariate normal x and y.

    With the correlation r, this is -log(1 - r²) / 2 - (r² (x² + y²) - 2 r x y) / (2 (1 - r²)).
    """
    unexplained_variance = 1 - correlation**2
    squares = correlation**2 * (source**2 + target**2) - 2 * correlation * source * target
    scores: _Floats = -0.5 * math.log(unexplained_variance) - squares / (2 * unexplained_variance)
    return scores


def _with_outliers(scores: _Floats) -> _Floats:
    """Mix the likelihood ratio of each pair with the ratio of an outlier, which is 1.

    No score can fall below log(`_OUTLIER_PROBABILITY`), which is about -3.
    """
    likelihood_ratios = np.exp(scores)
    mixed_scores: _Floats = np.log(
        _OUTLIER_PROBABILITY + (1 - _OUTLIER_PROBABILITY) * likelihood_ratios
    )
    return mixed_scores


def _is_correlation_expected(source_lengths: _Floats, target_lengths: _Floats) -> bool:
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


def _shift_threshold(lines: int) -> float:
    """The smallest sum of score differences in a shifted range; the module docstring derives it."""
    return math.log(len(OFFSETS) * lines / _FALSE_ALARM_PROBABILITY)


def _find_in_part(
    source_lengths: _Floats, target_lengths: _Floats, words: _WordSets | None
) -> list[Misfit]:
    """Find the ranges that do not fit in one part of a text.

    Args:
        source_lengths: Lengths in characters, shape (lines,).
        target_lengths: Lengths in characters, shape (lines,).
        words: The words of all lines; None to judge by the lengths alone.

    Returns:
        The ranges in the order of their lines, which are counted from 1 in this part.
    """
    lines = len(source_lengths)
    source = _normal_scores(source_lengths)
    target = _normal_scores(target_lengths)
    # If all lines of a text are shifted, the parameters can only be estimated at that offset. So
    # each offset has a scorer, and the scorer that explains its own offset best is used.
    scorers = [_PairScorer(source, target, offset) for offset in (0, *OFFSETS)]
    total_scores = []
    for scorer in scorers:
        if words is not None:
            scorer.learn_words(words)
        scores = scorer.pair_scores(scorer.estimation_offset)
        total_scores.append(float(scores.sum()))
    best_total = max(total_scores)
    best_scorer = scorers[total_scores.index(best_total)]

    is_uncorrelated = best_scorer.length_correlation < _MIN_RELATED_CORRELATION
    is_unexplained = best_total < _shift_threshold(lines)
    should_correlate = _is_correlation_expected(source_lengths, target_lengths)
    if is_uncorrelated and is_unexplained and should_correlate:
        return [Misfit(1, lines, None)]
    return _find_ranges(best_scorer)


def _find_ranges(scorer: _PairScorer) -> list[Misfit]:
    """Find the shifted ranges, then the unrelated ranges outside of them, in order."""
    shifted = _find_shifted_ranges(scorer)
    unrelated = _find_unrelated_ranges(scorer, shifted)
    return sorted(shifted + unrelated, key=lambda misfit: misfit.first)


def _find_shifted_ranges(scorer: _PairScorer) -> list[Misfit]:
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
    lines = len(unshifted_scores)
    threshold = _shift_threshold(lines)
    is_excluded = np.zeros(lines, bool)
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
        if fits_at_offset and best.lines >= _MIN_SHIFTED_LINES:
            misfits.append(best.misfit(best_offset))
    return misfits


def _find_unrelated_ranges(scorer: _PairScorer, shifted: Sequence[Misfit]) -> list[Misfit]:
    """Find the ranges that fit at no offset, outside of the shifted ranges, the clearest first.

    Each round takes the range with the largest sum of chance scores, and excludes its lines from
    the next rounds. Shifted and unrelated ranges together are at most `_MAX_RANGES`.
    """
    chance_scores = np.minimum(scorer.chance_scores(), _MAX_UNRELATED_LINE_SCORE)
    is_excluded = np.zeros(len(chance_scores), bool)
    for misfit in shifted:
        is_excluded[misfit.first - 1 : misfit.last] = True
    misfits: list[Misfit] = []
    while len(shifted) + len(misfits) < _MAX_RANGES:
        best = _best_range(_without_excluded(chance_scores, is_excluded))
        if best.total < _MIN_UNRELATED_SCORE:
            break
        is_excluded[best.start : best.stop] = True
        if best.lines >= _MIN_UNRELATED_LINES:
            misfits.append(best.misfit(None))
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
    def lines(self) -> int:
        """The number of lines."""
        return self.stop - self.start

    def misfit(self, offset: int | None) -> Misfit:
        """The same range with lines counted from 1."""
        return Misfit(first=self.start + 1, last=self.stop, offset=offset)


def _without_excluded(scores: _Floats, is_excluded: _Booleans) -> _Floats:
    """Replace the scores of excluded lines by `_EXCLUDED_LINE_SCORE`."""
    return np.where(is_excluded, _EXCLUDED_LINE_SCORE, scores)


def _best_range(scores: _Floats) -> _Range:
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
