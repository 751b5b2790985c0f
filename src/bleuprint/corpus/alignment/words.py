"""The scores of beads by their words: IBM Model 1 in both directions, as in Moore (2002)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import regex
from scipy.sparse import csr_array

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import KINDS, Band, Floats, Ints
from bleuprint.corpus.word_translation import WordTranslations

# A character of a script without spaces between words is a word, as is a mark or a symbol.
_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|"
    r"(?:(?![\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])[\w\p{M}])+|\S"
)
# Rows whose pairs of sentences are scored at once, as a rectangle around the band.
_ROWS = 48


def words(sentence: str) -> list[str]:
    """The words and marks of a sentence of any language, without its tokenizer."""
    found: list[str] = _WORD.findall(sentence)
    return found


class Counts(NamedTuple):
    """The words of sentences: `matrix`, (sentences, words of `ids`), and tokens a sentence."""

    ids: Ints
    matrix: csr_array
    tokens: Floats

    @classmethod
    def of(cls, sentences: Sequence[Ints]) -> Self:
        tokens = np.array([len(sentence) for sentence in sentences])
        ids, places = np.unique(np.concatenate(sentences), return_inverse=True)
        ends = np.concatenate(([0], np.cumsum(tokens)))
        matrix = csr_array((np.ones(len(places)), places, ends), (len(sentences), len(ids)))
        return cls(ids, matrix, tokens.astype(float))


@dataclass(frozen=True)
class Direction:
    """How much likelier a word is beside given words of the other side than by chance.

    `links`: (given words, words); `prior`: of any word beside a given one; `null`: beside none.
    """

    links: csr_array
    prior: Floats
    null: Floats
    floor: float

    def gains(self, given: Counts, found: Counts) -> tuple[Floats, Floats]:
        """The sums of log(p(word | given sentence) / p(word)) over the words of each sentence.

        (given sentences, found sentences); the second for each given sentence joined with the one
        before it, the first of which has none.
        """
        links = self.links[given.ids][:, found.ids].toarray()
        explained = given.matrix @ links + (given.matrix @ self.prior[given.ids])[:, None]
        joined = explained + np.roll(explained, 1, axis=0)
        tokens = given.tokens, given.tokens + np.roll(given.tokens, 1)
        one, two = (
            (found.matrix @ self._log(total, self.null[found.ids], count).T).T
            for total, count in zip((explained, joined), tokens, strict=True)
        )
        return one, two

    def _log(self, explained: Floats, null: Floats, tokens: Floats) -> Floats:
        ratio = (explained + null) / (tokens[:, None] + 1)
        return np.log(self.floor + (1 - self.floor) * ratio)


@dataclass(frozen=True)
class WordScorer:
    """Scores by lengths, and for beads with both sides also by words; a `Scorer`.

    The score by words is the mean of both directions' log(p(words | other side) / p(words)), which
    is Moore's likelihood divided by that of all words alone, the same for every path.
    """

    lengths: LengthScorer
    source: Sequence[Ints]
    target: Sequence[Ints]
    forward: Direction
    backward: Direction

    def __call__(self, band: Band, first: int, last: int) -> Floats:
        scores = self.lengths(band, first, last)
        for start in range(first, last, _ROWS):
            stop = min(start + _ROWS, last)
            place = slice(*(band.starts[[start, stop]] - band.starts[first]))
            scores[:, place] += self._by_words(band, start, stop)
        return scores

    def _by_words(self, band: Band, first: int, last: int) -> Floats:
        """(KINDS, cells) of a range of rows."""
        rows, columns = band.cells(first, last)
        scores = np.zeros((len(KINDS), len(rows)))
        # the sentences of the beads that end in these rows
        i0, j0 = max(first - 2, 0), max(int(band.lo[first]) - 2, 0)
        source, target = self.source[i0 : last - 1], self.target[j0 : int(band.hi[last - 1]) - 1]
        if not (len(source) and len(target)):
            return scores
        sides = Counts.of(source), Counts.of(target)
        one, two = self.forward.gains(*sides)
        back_one, back_two = (gains.T for gains in self.backward.gains(*sides[::-1]))
        i, j = rows - i0 - 1, columns - j0 - 1
        for kind, (di, dj) in enumerate(KINDS):
            if di and dj:
                # of cells where a bead begins too early the score is -inf, whatever is added
                here = [(i - a) % len(source) for a in range(di)], [(j - a) % len(target) for a in range(dj)]
                forward = sum(((one, two)[di - 1])[i % len(source), column] for column in here[1])
                backward = sum(((back_one, back_two)[dj - 1])[row, j % len(target)] for row in here[0])
                scores[kind] = (forward + backward) / 2
        return scores
