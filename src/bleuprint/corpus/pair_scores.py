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
    """Return the words and marks of a sentence that its translation could contain unchanged.

    These are numbers, words of three letters or more (names are often copied), and punctuation
    marks that languages share. A variant of a mark, such as a Chinese question mark, becomes "?".
    """
    words = set(_WORD.findall(sentence))
    for mark in _MARK.findall(sentence):
        words.add(_MARKS[mark])
    return words


def _word_kind(word: str) -> str:
    """Return whether a token is a "number", a "word" or a punctuation "mark".

    Translations copy numbers more often than words, so the kinds are counted separately.
    """
    if word.isdecimal():
        return "number"
    if word.isalpha():
        return "word"
    return "mark"


@dataclass(frozen=True)
class _WordScores:
    """What one word adds to the score of a sentence pair.

    Attributes:
        both: The score if both sides of the pair contain the word.
        source: The score if only the source contains it.
        target: The score if only the target contains it.
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
        """Estimate from a text how the lengths of source and target sentences correlate.

        Args:
            source: The lengths of the source sentences, mapped to a standard normal distribution by
                their ranks, (lines,).
            target: The same for the target sentences.
            estimation_offset: The offset to learn from: source line i and target line i + offset
                are assumed to be translations.
        """
        self.estimation_offset = estimation_offset
        self._source = source
        self._target = target
        self.length_correlation = _correlation(source, _at_offset(target, estimation_offset))
        self._words = WordSets()
        self._scores_of_word: dict[str, _WordScores] = {}

    def learn_words(self, words: WordSets) -> None:
        """Learn from a text how strongly each word shows that two lines are translations.

        Numbers, words such as names, and punctuation marks are often copied into a translation. The
        probability of a copy is estimated for each of these three kinds. A word's score follows
        from this probability, and from how often the word occurs anyway.

        Args:
            words: The numbers, words and marks of each line of the text.
        """
        lines = len(words.sources)
        source_counts = _line_counts(words.sources)
        target_counts = _line_counts(words.targets)
        shared_words = _informative_words(source_counts, target_counts, lines)
        self._words = WordSets(
            sources=[line_words & shared_words for line_words in words.sources],
            targets=[line_words & shared_words for line_words in words.targets],
        )
        source_kinds = _count_kinds(shared_words, source_counts)
        target_kinds = _count_kinds(shared_words, target_counts)
        copied_kinds = self._count_copied_kinds()
        for word in shared_words:
            kind = _word_kind(word)
            # The share of this kind's words that are copied, on each side. Adding 2 to the
            # denominator keeps the estimate low for a kind that occurs rarely.
            self._scores_of_word[word] = _word_scores(
                source_frequency=source_counts[word] / lines,
                target_frequency=target_counts[word] / lines,
                source_copied=copied_kinds[kind] / (source_kinds[kind] + 2),
                target_copied=copied_kinds[kind] / (target_kinds[kind] + 2),
            )

    def _count_copied_kinds(self) -> Counter[str]:
        """Count how many words are copied into translations, for each kind: number, word or mark.

        Source line i and target line i + `estimation_offset` are assumed to be translations.
        """
        copied_kinds = Counter[str]()
        for source_words, target_words in self._pairs_of_words(self.estimation_offset):
            for word in source_words & target_words:
                copied_kinds[_word_kind(word)] += 1
        return copied_kinds

    def pair_scores(self, offset: int) -> Floats:
        """Score how much likelier the lines of a text are as translations than by chance.

        Source line i is compared with target line i + offset, by their lengths and their words.

        Args:
            offset: How many lines later the target line is; negative if it is earlier.

        Returns:
            Log-likelihood ratios, (lines,). A source line whose target line would be before the
            first or after the last line of the text scores 0.
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
        """Score how much likelier each sentence pair of the text is by chance than as translations.

        A score is high only if the lengths speak against a translation, and so do lengths and words
        together. Missing words alone prove little: a free translation may copy none of them.

        Returns:
            Log-likelihood ratios, (lines,): positive if chance is likelier.
        """
        length_scores = _length_scores(self._source, self._target, self.length_correlation)
        translation_scores = np.maximum(_with_outliers(length_scores), self.pair_scores(0))
        return -translation_scores

    def _sums_of_word_scores(self, offset: int) -> Floats:
        """Sum up for each line how strongly its words show that it is a translation.

        Args:
            offset: Source line i is paired with target line i + offset.

        Returns:
            The sums, (lines,); 0 for a source line whose target line would be outside of the text.
        """
        sums = np.zeros(len(self._source))
        # With the offset -2, source lines 0 and 1 would belong to the target lines -2 and -1.
        first_line = max(0, -offset)
        pairs = self._pairs_of_words(offset)
        for line, (source_words, target_words) in enumerate(pairs, first_line):
            sums[line] = self._sum_of_word_scores(source_words, target_words)
        return sums

    def _sum_of_word_scores(self, source_words: set[str], target_words: set[str]) -> float:
        """Sum up the scores of the words of one sentence pair.

        A word that both sides contain speaks for a translation; a word of one side, against it.
        """
        total = 0.0
        for word in source_words:
            scores = self._scores_of_word[word]
            total += scores.both if word in target_words else scores.source
        for word in target_words - source_words:
            total += self._scores_of_word[word].target
        return total

    def _pairs_of_words(self, offset: int) -> Iterator[tuple[set[str], set[str]]]:
        """Pair the words of source line i with the words of target line i + offset.

        Lines that would be paired with a line before the first or after the last one are skipped.
        """
        first_source = max(0, -offset)
        first_target = max(0, offset)
        sources = self._words.sources[first_source:]
        targets = self._words.targets[first_target:]
        # One list is longer; `zip` ends with the shorter one.
        return zip(sources, targets, strict=False)


def _line_counts(words: Iterable[set[str]]) -> Counter[str]:
    """Count for each word the lines that contain it.

    Args:
        words: The words of each line.
    """
    counts = Counter[str]()
    for line_words in words:
        counts.update(line_words)
    return counts


def _count_kinds(words: Iterable[str], line_counts: Counter[str]) -> Counter[str]:
    """Add up the line counts of words by kind: number, word or mark.

    If 3 lines contain "7" and 2 lines contain "12", the count of numbers is 5.

    Args:
        words: The words to add up.
        line_counts: The number of lines that contain each word.
    """
    counts_by_kind = Counter[str]()
    for word in words:
        counts_by_kind[_word_kind(word)] += line_counts[word]
    return counts_by_kind


def _informative_words(
    source_counts: Counter[str], target_counts: Counter[str], lines: int
) -> set[str]:
    """Select the words by which translations can be told from random pairs of lines.

    They occur in both languages and are rare, such as names. A frequent word, such as "in", is in
    both lines of many pairs by chance: in source_count * target_count / lines of them. If these are
    2 pairs or more, the word is ignored. Numbers and punctuation marks of both languages are
    always kept.

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
    """Compute how strongly a word shows that two lines are translations (log-likelihood ratios).

    In a translation, a word of one line is in the other line with the probability of a copy. In an
    unrelated line, it occurs with its frequency in the text. The score of a word is the logarithm
    of the ratio of these probabilities. A word that is not copied more often than it occurs anyway
    tells nothing, and scores 0.

    Args:
        source_frequency: Share of the source lines that contain the word.
        target_frequency: Share of the target lines that contain the word.
        source_copied: Probability that a word of this kind in the source is in the target, too.
        target_copied: Probability that a word of this kind in the target is in the source, too.

    Returns:
        The scores of a word that is in both lines (positive), in the source alone, and in the
        target alone (both negative).
    """
    # The probability that the other line of a translation contains the word: at least as high as in
    # any line, and below 1, since a missing word would otherwise prove too much.
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
    """Map lengths to a standard normal distribution by their ranks, as in a normal quantile plot.

    Rank r of n lengths becomes the quantile of probability (r - 0.5) / n. Equal lengths share the
    mean of their ranks, which begin at 1.

    Args:
        lengths: The lengths of sentences, (lines,).

    Returns:
        The quantiles, (lines,).
    """
    from scipy.special import ndtri  # Imported here, since loading SciPy takes a moment.

    _, value_indices, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    # The lengths 5 8 8 have the ranks 1, 2 and 3. The mean ranks of 5 and 8 are 1 and 2.5.
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    probabilities = (mean_ranks[value_indices] - 0.5) / len(lengths)
    scores: Floats = ndtri(probabilities)
    return scores


def _at_offset(values: Floats, offset: int) -> Floats:
    """Move values so that line i has the value of line i + offset.

    For the offset 1, the values 7 8 9 become 8 9 NaN.

    Args:
        values: A value for each line, (lines,).
        offset: How many lines later the value is; negative if it is earlier.

    Returns:
        The moved values, (lines,). NaN where line i + offset is outside of the text.
    """
    moved_values = np.full(len(values), np.nan)
    if offset >= 0:
        moved_values[: len(values) - offset] = values[offset:]
    else:
        moved_values[-offset:] = values[:offset]
    return moved_values


def _correlation(source: Floats, target: Floats) -> float:
    """Compute Pearson's correlation of values of source and target lines.

    It is limited to the range from 0 to 0.95, since scores computed from a correlation of 1 would
    be infinite. If all values of one side are equal, it is 0.

    Args:
        source: A value for each source line, (lines,).
        target: A value for the target line that belongs to each source line, (lines,). Lines with
            NaN, which have no target line, are skipped.
    """
    is_known = ~np.isnan(target)
    known_source = source[is_known]
    known_target = target[is_known]
    if np.ptp(known_source) == 0 or np.ptp(known_target) == 0:
        return 0.0
    correlation = np.corrcoef(known_source, known_target)[0, 1]
    return float(np.clip(correlation, 0.0, _MAX_ESTIMATE))


def _length_scores(source: Floats, target: Floats, correlation: float) -> Floats:
    """Score how much likelier two lengths are in translations than by chance.

    The lengths x and y are modeled as standard normal, with the correlation r in translations, and
    independent by chance. The score is log(p(x, y) / (p(x) p(y))), which is
    -log(1 - r²) / 2 - (r² (x² + y²) - 2 r x y) / (2 (1 - r²)).

    Args:
        source: The standardized lengths of source lines, (lines,).
        target: The standardized lengths of target lines, (lines,).
        correlation: r, below 1.
    """
    unexplained_variance = 1 - correlation**2
    squares = correlation**2 * (source**2 + target**2) - 2 * correlation * source * target
    scores: Floats = -0.5 * math.log(unexplained_variance) - squares / (2 * unexplained_variance)
    return scores


def _with_outliers(scores: Floats) -> Floats:
    """Limit how strongly a single line can speak against a translation.

    Even in a good text, one line in twenty may be an outlier, such as a free translation. For an
    outlier, the likelihood ratio is 1. So the ratio of each line is mixed with 1, weighted by 0.05,
    and no score falls below log(0.05), which is -3.

    Args:
        scores: Log-likelihood ratios, (lines,).
    """
    likelihood_ratios = np.exp(scores)
    mixed_scores: Floats = np.log(
        _OUTLIER_PROBABILITY + (1 - _OUTLIER_PROBABILITY) * likelihood_ratios
    )
    return mixed_scores
