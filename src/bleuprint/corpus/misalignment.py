"""Finds lines of parallel text that are not translations of each other, from the text alone.

Each pair of lines (line i of the source, line i + k of the target) has a score: the logarithm of
how much likelier it is as a translation than as two lines that met by chance. The score adds up:

- lengths: normal scores of the ranks of both lengths are bivariate normal with one correlation,
  which is estimated from the text;
- words that both sides spell alike (numbers; rare words, such as names) and punctuation marks: how
  often a word of one side is in the other, estimated for each of the three kinds.

A pair may always be an outlier, with probability `_OUTLIER`, so that a single line counts little.

In a range of lines that is one line late, the pairs at k = 1 score higher than those at k = 0, line
after line. For k of -2, -1, 1 and 2 the range with the largest summed difference is found (as a
local alignment of sequences is). If k = 0 is right, the sum of logarithms of likelihood ratios
exceeds T anywhere with a probability of at most lines * exp(-T) for each k, so that the threshold
is T = log(4 lines / `_FALSE_ALARMS`). docs/corpora.md has the rates that were measured.

Ranges in which no offset fits (other text, or lines that moved further) are found by the sum of the
negative scores at k = 0, if those of the lengths alone are negative, too.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bleuprint.text.parallel import Pair

# Lines by which a range may be early (negative) or late.
OFFSETS = (-2, -1, 1, 2)
# Texts of fewer lines, and shifted or unrelated ranges of fewer lines, are not judged.
_FEWEST_LINES, _SHIFTED_LINES, _UNRELATED_LINES = 50, 20, 50
# The bound on the probability of a shifted range in a text without one, and the least sum of the
# scores of an unrelated range. True texts have ranges of free or wrong translations.
_FALSE_ALARMS, _UNRELATED_SCORE = 0.001, 20.0
# The most that one line adds to the sum of a shifted, and of an unrelated range.
_MOST_SHIFTED, _MOST_UNRELATED = 4.0, 3.0
# The share of pairs that are no translations wherever they are; the highest correlation of lengths
# and the highest share of copied words that are taken to be known; the most that words add.
_OUTLIER, _HIGHEST, _MOST_WORDS = 0.05, 0.95, 3.0
# A text as a whole is unrelated if lengths that vary as much as its lengths do would have at least
# the first rank correlation as translations (Gale and Church 1993), and have less than the second.
# One-word entries of menus would have 0.33; parallel texts have 0.57 and more, unrelated ones 0.1.
_EXPECTED, _RELATED = 0.4, 0.3
# Squared standard deviation of the length of a translation, for each character (Gale and Church).
_VARIANCE = 6.8
# Beyond so many pairs only their lengths are kept and compared, and those of so many together.
_PAIRS_WITH_WORDS, _PAIRS_TOGETHER = 30_000, 500_000
# Ranges that are found at most, and those that a message names.
_MOST_RANGES, _NAMED = 20, 3
# What ends a range: a line that belongs to another one.
_TAKEN = -1e6

_Floats = npt.NDArray[np.float64]
_WORD = re.compile(r"\d+|[^\W\d_]{3,}")
# Punctuation that languages share, each as the sign that stands for its kind.
_MARKS = {
    **dict.fromkeys("?？؟", "?"),
    **dict.fromkeys("!！", "!"),
    **dict.fromkeys(":：", ":"),
    **dict.fromkeys("(（", "("),
    **dict.fromkeys('"“„«「『', '"'),
    **{mark: mark for mark in ";/<%"},
}
_MARK = re.compile(f"[{re.escape(''.join(_MARKS))}]")


@dataclass(frozen=True)
class Misfit:
    """Lines, from 1, of a text whose sides do not fit each other.

    `offset`: the target has the translations so many lines later (negative: earlier); None if they
    are not found there.
    """

    first: int
    last: int
    offset: int | None

    def __str__(self) -> str:
        lines = f"{self.first:,} to {self.last:,}"
        if self.offset is None:
            return f"lines {lines} do not fit at all"
        count = abs(self.offset)
        way = "later" if self.offset > 0 else "earlier"
        return f"lines {lines} fit the target {count} line{'s' * (count > 1)} {way}"


def described(misfits: Sequence[Misfit]) -> str:
    """The ranges in one phrase, the first `_NAMED` of them by their lines."""
    named = [str(misfit) for misfit in misfits[:_NAMED]]
    if more := len(misfits) - len(named):
        named.append(f"and {more} more")
    return ", ".join(named)


class PairClues:
    """What `misfits` needs to know of pairs, collected while they are read.

    Memory: the words and marks of the first 30,000 pairs, and the lengths of 500,000.
    """

    def __init__(self, most_with_words: int = _PAIRS_WITH_WORDS) -> None:
        """`most_with_words`: of a text with more pairs only the lengths are compared."""
        self._most_with_words = most_with_words
        self._lengths = array("I"), array("I")
        self._words: tuple[list[set[str]], list[set[str]]] = [], []
        # of the lines before these, which are no longer kept
        self._judged_lines = 0
        self._found: list[Misfit] = []

    def of(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The same pairs."""
        for pair in pairs:
            self.add(pair)
            yield pair

    def add(self, pair: Pair) -> None:
        if len(self._lengths[0]) == _PAIRS_TOGETHER:
            self._judge()
        with_words = self._judged_lines == 0 and len(self._lengths[0]) < self._most_with_words
        for side, sentence in enumerate(pair):
            self._lengths[side].append(len(sentence))
            if with_words:
                self._words[side].append(_words_and_marks(sentence))

    def misfits(self) -> list[Misfit]:
        """The ranges of lines that do not fit, in order; none for a text that is too short."""
        self._judge()
        return self._found

    def _judge(self) -> None:
        """Add the ranges of the lines that are kept, and keep them no longer."""
        source, target = (np.array(side, float) for side in self._lengths)
        words = self._words if len(self._words[0]) == len(source) else None
        for each in _misfits(source, target, words) if len(source) >= _FEWEST_LINES else []:
            first, last = (self._judged_lines + line for line in (each.first, each.last))
            self._found.append(Misfit(first, last, each.offset))
        self._judged_lines += len(source)
        for lengths in self._lengths:
            del lengths[:]
        self._words = [], []


def find_misfits(sources: Sequence[str], targets: Sequence[str]) -> list[Misfit]:
    """The ranges of lines of two sides of one text that do not fit each other, in order."""
    clues = PairClues()
    for source, target in zip(sources, targets, strict=True):
        clues.add(Pair(source, target))
    return clues.misfits()


def _words_and_marks(sentence: str) -> set[str]:
    """The words that could be copied (numbers, words of three letters), and the marks."""
    found = set(_WORD.findall(sentence))
    found.update(_MARKS[mark] for mark in _MARK.findall(sentence))
    return found


def _kind(word: str) -> str:
    """Whether a word is a number, a mark or another word, whose shares of copies differ."""
    if word.isdecimal():
        return "number"
    return "word" if word.isalpha() else "mark"


@dataclass(frozen=True)
class _WordScores:
    """What a word adds to the score of a pair: if both sides have it, the source, the target."""

    both: float
    source: float
    target: float


class _Fit:
    """Scores of pairs at any offset, by what the pairs at one `offset` have in common."""

    def __init__(self, source: _Floats, target: _Floats, offset: int) -> None:
        """`source` and `target`: the normal scores of their lengths."""
        self.offset = offset
        self._source, self._target = source, target
        self.correlation = _correlation(self._source, _shifted(self._target, offset))
        self._words: tuple[Sequence[set[str]], Sequence[set[str]]] = [], []
        self._values: dict[str, _WordScores] = {}

    def learn_words(self, sources: Sequence[set[str]], targets: Sequence[set[str]]) -> None:
        """Learn from the words and marks of both sides which are copied, and how often."""
        lines = len(sources)
        source_counts = Counter(word for words in sources for word in words)
        target_counts = Counter(word for words in targets for word in words)
        # frequent words that look alike, as "in" does, say little: a pair has some by chance
        known = {
            word
            for word, count in source_counts.items()
            if word in target_counts
            and (_kind(word) != "word" or count * target_counts[word] < 2 * lines)
        }
        self._words = [words & known for words in sources], [words & known for words in targets]
        copied = Counter[str]()
        for source, target in self._pairs_of_words(self.offset):
            copied.update(_kind(word) for word in source & target)
        in_source, in_target = Counter[str](), Counter[str]()
        for word in known:
            in_source[_kind(word)] += source_counts[word]
            in_target[_kind(word)] += target_counts[word]
        for word in known:
            kind = _kind(word)
            self._values[word] = _word_scores(
                source_chance=source_counts[word] / lines,
                target_chance=target_counts[word] / lines,
                source_copied=copied[kind] / (in_source[kind] + 2),
                target_copied=copied[kind] / (in_target[kind] + 2),
            )

    def scores(self, offset: int) -> _Floats:
        """The score of each source line with the target line `offset` later; 0 without one."""
        target = _shifted(self._target, offset)
        scores = _length_scores(self._source, target, self.correlation)
        if self._values:
            scores = scores + np.minimum(self._word_scores(offset), _MOST_WORDS)
        return np.where(np.isnan(target), 0.0, _with_outliers(scores))

    def lacks(self) -> _Floats:
        """How much likelier each pair is to have met by chance, by its lengths and by all clues.

        Words alone do not tell: those of another field, beside each other, may all be translated.
        """
        by_lengths = _length_scores(self._source, self._target, self.correlation)
        return -np.maximum(_with_outliers(by_lengths), self.scores(0))

    def _word_scores(self, offset: int) -> _Floats:
        scores = np.zeros(len(self._source))
        values = self._values
        first = max(0, -offset)
        for line, (source, target) in enumerate(self._pairs_of_words(offset), first):
            score = 0.0
            for word in source:
                score += values[word].both if word in target else values[word].source
            for word in target - source:
                score += values[word].target
            scores[line] = score
        return scores

    def _pairs_of_words(self, offset: int) -> Iterator[tuple[set[str], set[str]]]:
        sources, targets = self._words
        return zip(sources[max(0, -offset) :], targets[max(0, offset) :], strict=False)


def _word_scores(
    *, source_chance: float, target_chance: float, source_copied: float, target_copied: float
) -> _WordScores:
    """The scores of a word, by the share of lines that have it and the share of its copies.

    A word is in the other side of a pair with the probability of its kind, or of its chance if that
    is higher; then it says nothing.
    """
    in_target = min(_HIGHEST, max(source_copied, target_chance))
    in_source = min(_HIGHEST, max(target_copied, source_chance))
    if in_target <= target_chance or in_source <= source_chance:
        return _WordScores(0.0, 0.0, 0.0)
    both = (math.log(in_target / target_chance) + math.log(in_source / source_chance)) / 2
    return _WordScores(
        both=both,
        source=math.log((1 - in_target) / (1 - target_chance)),
        target=math.log((1 - in_source) / (1 - source_chance)),
    )


def _normal_scores(lengths: _Floats) -> _Floats:
    """Quantiles of the normal distribution, by the ranks of the lengths."""
    from scipy.special import ndtri  # scipy takes a moment to load

    _, places, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    # equal lengths share the mean of their ranks, which begin at 1
    ranks = np.cumsum(counts) - (counts - 1) / 2
    scores: _Floats = ndtri((ranks[places] - 0.5) / len(lengths))
    return scores


def _shifted(values: _Floats, offset: int) -> _Floats:
    """The value `offset` lines later, for each line; NaN beyond the ends."""
    shifted = np.full(len(values), np.nan)
    if offset >= 0:
        shifted[: len(values) - offset] = values[offset:]
    else:
        shifted[-offset:] = values[:offset]
    return shifted


def _correlation(source: _Floats, target: _Floats) -> float:
    """The correlation of two sides, from 0 to `_HIGHEST`; NaN does not count."""
    known = ~np.isnan(target)
    source, target = source[known], target[known]
    if np.ptp(source) == 0 or np.ptp(target) == 0:
        return 0.0
    return float(np.clip(np.corrcoef(source, target)[0, 1], 0.0, _HIGHEST))


def _length_scores(source: _Floats, target: _Floats, correlation: float) -> _Floats:
    """log(p(x, y) / (p(x) p(y))) of the standard bivariate normal distribution."""
    rest = 1 - correlation**2
    squares = correlation**2 * (source**2 + target**2) - 2 * correlation * source * target
    scores: _Floats = -0.5 * math.log(rest) - squares / (2 * rest)
    return scores


def _with_outliers(scores: _Floats) -> _Floats:
    """The scores of pairs that may be no translations, even where their neighbors are."""
    mixed: _Floats = np.log(_OUTLIER + (1 - _OUTLIER) * np.exp(scores))
    return mixed


def _ought_to_correlate(source: _Floats, target: _Floats) -> bool:
    """Whether the lengths of translations would correlate, if lengths vary as much as here."""
    source, target = source + 1, target + 1
    variance = (np.var(np.log(source)) + np.var(np.log(target))) / 2
    noise = _VARIANCE * np.mean(1 / np.minimum(source, target))
    return bool(math.sqrt(variance / (variance + noise)) >= _EXPECTED)


def _threshold(lines: int) -> float:
    """The least sum of the differences of scores in a shifted range."""
    return math.log(len(OFFSETS) * lines / _FALSE_ALARMS)


def _misfits(
    source: _Floats, target: _Floats, words: tuple[list[set[str]], list[set[str]]] | None
) -> list[Misfit]:
    """The ranges of lines whose lengths, and words if they are given, do not fit, in order."""
    scores = _normal_scores(source), _normal_scores(target)
    fits = [_Fit(*scores, offset) for offset in (0, *OFFSETS)]
    if words is not None:
        for fit in fits:
            fit.learn_words(*words)
    # a text that is shifted as a whole says how its sides fit at its own offset alone
    totals = [float(fit.scores(fit.offset).sum()) for fit in fits]
    best = fits[int(np.argmax(totals))]
    is_unlike = max(totals) < _threshold(len(source)) and best.correlation < _RELATED
    if is_unlike and _ought_to_correlate(source, target):
        return [Misfit(1, len(source), None)]
    return _ranges(best)


@dataclass(frozen=True)
class _Range:
    """A range of lines, from 0, up to before `stop`, and the sum of their values."""

    total: float
    start: int
    stop: int


def _ranges(fit: _Fit) -> list[Misfit]:
    """The ranges that fit better at another offset than at 0, then those that do not fit."""
    unshifted = fit.scores(0)
    scores = {offset: fit.scores(offset) for offset in OFFSETS}
    gains = {
        offset: np.minimum(shifted - unshifted, _MOST_SHIFTED) for offset, shifted in scores.items()
    }
    lacks = np.minimum(fit.lacks(), _MOST_UNRELATED)
    threshold = _threshold(len(unshifted))
    found: list[Misfit] = []
    while len(found) < _MOST_RANGES:
        ranges = {offset: _best_range(gain) for offset, gain in gains.items()}
        offset = max(ranges, key=lambda each: ranges[each].total)
        best = ranges[offset]
        if best.total < threshold:
            break
        lines = slice(best.start, best.stop)
        for gain in gains.values():
            gain[lines] = _TAKEN
        # of lines that fit nowhere, some fit better at an offset by chance: see `lacks`
        fits_at_offset = scores[offset][lines].sum() > 0
        if fits_at_offset and best.stop - best.start >= _SHIFTED_LINES:
            found.append(Misfit(best.start + 1, best.stop, offset))
            lacks[lines] = _TAKEN
    while len(found) < _MOST_RANGES:
        best = _best_range(lacks)
        if best.total < _UNRELATED_SCORE:
            break
        lacks[best.start : best.stop] = _TAKEN
        if best.stop - best.start >= _UNRELATED_LINES:
            found.append(Misfit(best.start + 1, best.stop, None))
    return sorted(found, key=lambda misfit: misfit.first)


def _best_range(values: _Floats) -> _Range:
    """The range whose values have the largest sum, in linear time."""
    sums = np.append(0.0, np.cumsum(values))
    rises = sums - np.minimum.accumulate(sums)
    stop = int(rises.argmax())
    start = int(sums[: stop + 1].argmin())
    return _Range(float(rises[stop]), start, stop)
