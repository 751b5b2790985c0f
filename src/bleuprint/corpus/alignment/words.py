"""The scores of beads by lengths and words: IBM Model 1 in both directions, as in Moore (2002)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import regex
from scipy.sparse import csr_array

from bleuprint.corpus.alignment.gale_church import PRIORS, LengthScorer
from bleuprint.corpus.alignment.lattice import KINDS, Band, Floats
from bleuprint.corpus.alignment.word_translation import (
    UNEXPLAINED,
    Evidence,
    Integers,
    WordTranslations,
)

# A character of a script without spaces between words is a word, and so is a mark or symbol.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w\p{{M}}])+|\S")
# Rows whose sentences are scored at once, as a rectangle around the band.
_ROWS = 48


def words(sentence: str) -> list[str]:
    """The words and marks of a sentence in any language; no tokenizer is needed."""
    found: list[str] = _WORD.findall(sentence)
    return found


class _Words(NamedTuple):
    """The words of sentences: `counts` is of shape (sentences, ids), `tokens` their sums."""

    ids: Integers
    counts: csr_array
    tokens: Floats

    @classmethod
    def of(cls, sentences: Sequence[Integers]) -> Self:
        tokens = np.array([len(sentence) for sentence in sentences])
        ids, places = np.unique(np.concatenate(sentences), return_inverse=True)
        starts = np.concatenate(([0], np.cumsum(tokens)))
        counts = csr_array((np.ones(len(places)), places, starts), (len(sentences), len(ids)))
        return cls(ids, counts, tokens.astype(float))


@dataclass(frozen=True)
class _Direction:
    """How much likelier words are beside given words of the other side than by chance."""

    links: csr_array  # (given words, words)
    evidence: Evidence

    @classmethod
    def of(cls, evidence: Evidence, given: Integers, words: Integers) -> Self:
        shape = len(evidence.prior), len(evidence.null)
        return cls(csr_array((evidence.links.astype(float), (given, words)), shape), evidence)

    def gains(self, given: _Words, found: _Words) -> tuple[Floats, Floats]:
        """The sum of log(p(word | given) / p(word)) over the words of each sentence of `found`.

        Twice (given, found): beside each given sentence, and beside it and the one before it (of
        the first, the last).
        """
        links = self.links[given.ids][:, found.ids].toarray()
        prior = given.counts @ self.evidence.prior[given.ids]
        one = given.counts @ links + prior[:, None]
        two = one + np.roll(one, 1, axis=0)
        tokens = given.tokens, given.tokens + np.roll(given.tokens, 1)
        null = self.evidence.null[found.ids]
        first, second = (
            (found.counts @ np.log(_ratios(explained + null, count)).T).T
            for explained, count in zip((one, two), tokens, strict=True)
        )
        return first, second


def _ratios(explained: Floats, tokens: Floats) -> Floats:
    """p(word | given) / p(word) by Model 1, where each given token and NULL is as likely."""
    return UNEXPLAINED + (1 - UNEXPLAINED) / (tokens[:, None] + 1) * explained


@dataclass(frozen=True)
class Translations:
    """The words of both languages, and both directions of their translations."""

    numbers: tuple[dict[str, int], dict[str, int]]
    forward: _Direction
    backward: _Direction

    @classmethod
    def of(cls, table: WordTranslations) -> Self:
        sources, targets = np.divmod(table.links, len(table.target_words))
        forward, backward = table.evidence
        source_numbers, target_numbers = table.numbers
        return cls(
            (source_numbers, target_numbers),
            _Direction.of(forward, sources, targets),
            _Direction.of(backward, targets, sources),
        )


@dataclass(frozen=True)
class WordScorer:
    """The scores of beads by their lengths and words; a `Scorer`.

    A bead with both sides: that by lengths plus the mean of both directions of
    log(p(words | other side) / p(words)). One with a single side: log(prior), since its words are
    as likely as by chance. This is Moore's likelihood, divided by that of all words by chance,
    which is the same for all paths. `source` and `target`: the ids of the words of each sentence.
    """

    lengths: LengthScorer
    source: Sequence[Integers]
    target: Sequence[Integers]
    translations: Translations

    def __call__(self, band: Band, first: int, last: int) -> Floats:
        scores = self.lengths(band, first, last)
        for kind, (di, dj) in enumerate(KINDS):
            if not (di and dj):
                scores[kind, scores[kind] > -np.inf] = np.log(PRIORS[kind])
        for start in range(first, last, _ROWS):
            stop = min(start + _ROWS, last)
            here = slice(*(band.starts[[start, stop]] - band.starts[first]))
            scores[:, here] += self._by_words(band, start, stop)
        return scores

    def _by_words(self, band: Band, first: int, last: int) -> Floats:
        """The part of words, (KINDS, cells); any number where a bead begins too early."""
        rows, columns = band.cells(first, last)
        scores = np.zeros((len(KINDS), len(rows)))
        # the sentences of all beads that end in these rows
        start, left = max(first - 2, 0), max(int(band.lo[first]) - 2, 0)
        source = self.source[start : last - 1]
        target = self.target[left : int(band.hi[last - 1]) - 1]
        if not (len(source) and len(target)):
            return scores
        given, found = _Words.of(source), _Words.of(target)
        forward = self.translations.forward.gains(given, found)
        backward = self.translations.backward.gains(found, given)
        i, j = rows - start - 1, columns - left - 1
        for kind, (di, dj) in enumerate(KINDS):
            if di and dj:
                for back in range(dj):
                    scores[kind] += forward[di - 1][i % len(source), (j - back) % len(target)] / 2
                for back in range(di):
                    scores[kind] += backward[dj - 1][j % len(target), (i - back) % len(source)] / 2
        return scores
