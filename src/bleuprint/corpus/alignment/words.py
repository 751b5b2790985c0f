"""The scores of beads by lengths and words: IBM Model 1 in both directions, as in Moore (2002)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex
from scipy.sparse import csr_array

from bleuprint.corpus.alignment.gale_church import PRIORS, LengthScorer
from bleuprint.corpus.alignment.lattice import BEAD_SIZES, Band, Floats
from bleuprint.corpus.alignment.word_translation import Evidence, Integers, WordTranslations, ratios

# A character of a script without spaces between words is a word, and so is a mark or symbol.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w\p{{M}}])+|\S")


def split_words(sentence: str) -> list[str]:
    """The words and marks of a sentence in any language; no tokenizer is needed."""
    found: list[str] = _WORD.findall(sentence)
    return found


def _gains(
    evidence: Evidence, links: Floats, given: Sequence[Integers], found: Sequence[Integers]
) -> list[Floats]:
    """The sum of log(p(word | given) / p(word)) over the words of each sentence of `found`.

    Twice (given, found): beside each given sentence, and beside it and the one before it (of the
    first, the last). `links`: the evidence of the words of `found` beside those of `given`.
    """
    (ids, counts), (words, found_counts) = map(_counted, (given, found))
    tokens, null = np.array([*map(len, given)], float), evidence.null[words]
    explained = counts @ links + (counts @ evidence.prior[ids])[:, None]
    gains = []
    for _ in range(2):
        likelier = ratios(explained + null, tokens[:, None])
        gains.append((found_counts @ np.log(likelier).T).T)
        explained, tokens = explained + np.roll(explained, 1, axis=0), tokens + np.roll(tokens, 1)
    return gains


def _counted(sentences: Sequence[Integers]) -> tuple[Integers, csr_array]:
    """The distinct words of sentences, and how often each is in each sentence."""
    ids, places = np.unique(np.concatenate(sentences), return_inverse=True)
    starts = np.cumsum([0, *map(len, sentences)])
    return ids, csr_array((np.ones(len(places)), places, starts), (len(sentences), len(ids)))


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
    translations: WordTranslations

    def __call__(self, band: Band, first: int, last: int) -> Floats:
        scores = self.lengths(band, first, last)
        for kind, (di, dj) in enumerate(BEAD_SIZES):
            if not (di and dj):
                scores[kind, scores[kind] > -np.inf] = np.log(PRIORS[kind])
        return scores + self._by_words(band, first, last)

    def _by_words(self, band: Band, first: int, last: int) -> Floats:
        """The part of words, (BEAD_SIZES, cells); any number where a bead begins too early."""
        rows, columns = band.cells(first, last)
        scores = np.zeros((len(BEAD_SIZES), len(rows)))
        # the sentences of all beads that end in these rows
        start, left = max(first - 2, 0), max(int(band.lo[first]) - 2, 0)
        source = self.source[start : last - 1]
        target = self.target[left : int(band.hi[last - 1]) - 1]
        if not (len(source) and len(target)):
            return scores
        words = np.ix_(*(np.unique(np.concatenate(side)) for side in (source, target)))
        table = self.translations
        beside, reverse = (
            evidence.links[words].toarray() for evidence in (table.forward, table.backward)
        )
        forward = _gains(table.forward, beside, source, target)
        backward = _gains(table.backward, reverse.T, target, source)
        i, j = rows - start - 1, columns - left - 1
        for kind, (di, dj) in enumerate(BEAD_SIZES):
            if di and dj:
                for back in range(dj):
                    scores[kind] += forward[di - 1][i % len(source), (j - back) % len(target)] / 2
                for back in range(di):
                    scores[kind] += backward[dj - 1][j % len(target), (i - back) % len(source)] / 2
        return scores
