"""Word translations learned from parallel text: IBM Model 1 (Brown et al. 1993), both directions.

`learn` returns a `WordTranslations`, whose `score` says how much better the words of two sentences
explain each other than chance; Moore (2002) aligns sentences by the same model. Case is ignored.

Own code, since eflomal and fast_align need a C compiler at installation (and eflomal is under the
GPL), and NLTK's IBMModel1 loops over words in Python.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from bleuprint.runtime.errors import UserError

ITERATIONS = 5
# Words that occur less often, and words that are not in the text, are all the word RARE.
MIN_COUNT = 2
RARE = 0
# Longer sentences say little for their cost, which is the product of both lengths.
MAX_TOKENS = 100
# A longer sentence is scored by its first tokens.
_MAX_SCORED = 1000
# Enough to learn from; callers draw them evenly over a longer text (`is_drawn`).
MAX_PAIRS = 100_000
# A link is two tokens of one pair of sentences. Above, pairs are drawn again: 4 bytes a link, and
# up to 24 for each two words that are linked.
MAX_LINKS = 20_000_000
# Links at once, which bounds temporary arrays.
_CHUNK = 1 << 20
# Less probable translations are not kept.
_MIN_PROBABILITY = 1e-3
# A word's translations count as if it had been seen this many times more beside chance words, so
# that a rare word, whose translations are learned from a pair or two, is weak evidence.
_PRIOR = 20.0
# The least of p(word | other side) / p(word): a word may lack a translation in a good pair.
UNEXPLAINED = 0.05

Tokens = Sequence[str]
Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.integer[Any]]


class Evidence(NamedTuple):
    """How much likelier than by chance a word is beside a given word of the other side.

    `links`, (source words, target words): of words that occur in one pair; `null`: of each word,
    beside NULL; `prior`: of any word, beside each given one (the share of the prior).
    """

    links: csr_array
    null: Floats
    prior: Floats


def ratios(explained: Floats, given: int | Floats) -> Floats:
    """p(word | given words) / p(word) by Model 1, where each given word and NULL is as likely.

    `explained`: the sums of the evidence of all given words and NULL; `given`: their number.
    """
    return UNEXPLAINED + (1 - UNEXPLAINED) / (given + 1) * explained


@dataclass(frozen=True, eq=False)
class WordTranslations:
    """What is known of the words of two languages, which are in lower case.

    `numbers`: the ids of source and of target words; `codes`: the links, as the number
    source * target words + target, ascending; `forward`: the evidence of target words beside source
    words, `backward`: of source words beside target words.
    """

    numbers: tuple[dict[str, int], dict[str, int]]
    codes: Integers
    forward: Evidence
    backward: Evidence

    def score(self, source: Tokens, target: Tokens) -> float:
        """The mean over the words of both sides of log(p(word | other side) / p(word)).

        In nats a word, the mean of both directions; its product with a number of words is a
        log-likelihood ratio. Around -1 for sentences that are not translations, 2 for those that
        are, whatever their lengths; log 0.05 if a side is empty.
        """
        if not (source and target):
            return float(np.log(UNEXPLAINED))
        sides = source[:_MAX_SCORED], target[:_MAX_SCORED]
        sources, targets = map(word_ids, self.numbers, sides)
        codes = sources[:, None] * len(self.numbers[1]) + targets
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        known = self.codes[places] == codes
        means = []
        for evidence, given, words in (
            (self.forward, sources, targets),
            (self.backward, targets, sources),
        ):
            links = np.where(known, evidence.links.data[places], 0.0)
            beside = (links if given is sources else links.T).sum(0)
            explained = beside + evidence.prior[given].sum() + evidence.null[words]
            means.append(np.log(ratios(explained, len(given))).mean())
        return float(sum(means) / 2)


def word_ids(numbers: dict[str, int], tokens: Tokens) -> Integers:
    """The ids of tokens of one side of a table, RARE for words that it lacks."""
    return np.array([numbers.get(token.lower(), RARE) for token in tokens], np.int64)


def is_drawn(number: int, total: int, most: int = MAX_PAIRS) -> bool:
    """Whether item `number`, from 0, of `total` is one of `most` drawn evenly; all if fewer."""
    return total <= most or number * most // total != (number + 1) * most // total


def learn(pairs: Iterable[tuple[Tokens, Tokens]], iterations: int = ITERATIONS) -> WordTranslations:
    """Learn by expectation maximization, from the uniform table; the pairs are kept as ids.

    Raises UserError if no pair has 1 to 100 tokens on each side.
    """
    sides = _Side(), _Side()
    for pair in pairs:
        if all(0 < len(tokens) <= MAX_TOKENS for tokens in pair):
            for side, tokens in zip(sides, pair, strict=True):
                side.add(tokens)
    if not sides[0].lengths:
        raise UserError(f"no pair of 1 to {MAX_TOKENS} tokens a side to learn translations from")
    links = int(np.dot(*(np.array(side.lengths, np.int64) for side in sides)))
    count = len(sides[0].lengths)
    most = max(1, count * MAX_LINKS // links)
    drawn = np.array([is_drawn(number, count, most) for number in range(count)])
    source, target = (side.text(drawn) for side in sides)
    del sides
    return _table(source, target, iterations)


class _Text(NamedTuple):
    """One side of a text: the ids of its words, and those and the length of each sentence."""

    numbers: dict[str, int]
    ids: Integers
    lengths: Integers

    @property
    def counts(self) -> Integers:
        return np.bincount(self.ids, minlength=len(self.numbers))


class _Side:
    """Collects one side of a text."""

    def __init__(self) -> None:
        self.lengths = array("i")
        self._ids = array("i")
        # "" is no token, and RARE
        self._numbers = {"": RARE}

    def add(self, tokens: Tokens) -> None:
        numbers = self._numbers
        self._ids.extend([numbers.setdefault(token.lower(), len(numbers)) for token in tokens])
        self.lengths.append(len(tokens))

    def text(self, drawn: npt.NDArray[np.bool_]) -> _Text:
        """The text of the sentences drawn, in which rare words are RARE."""
        lengths = np.array(self.lengths)
        ids = np.array(self._ids)[np.repeat(drawn, lengths)]
        often = np.bincount(ids, minlength=len(self._numbers)) >= MIN_COUNT
        often[RARE] = True
        new = np.where(often, np.cumsum(often) - 1, RARE).astype(np.int32)
        words = (word for word, keep in zip(self._numbers, often.tolist(), strict=True) if keep)
        numbers = {word: number for number, word in enumerate(words)}
        return _Text(numbers, new[ids], lengths[drawn])


def _table(source: _Text, target: _Text, iterations: int) -> WordTranslations:
    """The translations of both directions, whose links are the same but for those of NULL."""
    sizes = len(source.numbers), len(target.numbers)
    codes, forward = model_1(source, target, iterations)
    others, backward = model_1(target, source, iterations)
    # those of NULL, the last given word, come last
    links = int(np.searchsorted(codes, sizes[0] * sizes[1]))
    nulls = codes[links:] - sizes[0] * sizes[1], others[links:] - sizes[0] * sizes[1]
    null_forward, null_backward = np.zeros(sizes[1]), np.zeros(sizes[0])
    null_forward[nulls[0]], null_backward[nulls[1]] = forward[links:], backward[links:]
    sources, targets = np.divmod(codes[:links], sizes[1])
    backward = backward[np.searchsorted(others[:links], targets * sizes[0] + sources)]
    kept = (forward[:links] >= _MIN_PROBABILITY) | (backward >= _MIN_PROBABILITY)
    sources, targets = sources[kept], targets[kept]

    def evidence(
        given: _Text, words: _Text, linked: tuple[Integers, Integers], values: Floats, null: Floats
    ) -> Evidence:
        chance = np.maximum(words.counts, 1) / words.counts.sum()
        prior = _PRIOR / (given.counts + _PRIOR)
        likelier = values.astype(np.float32) * (1 - prior[linked[0]]) / chance[linked[1]]
        matrix = csr_array((likelier, (sources, targets)), sizes)
        return Evidence(matrix, null.astype(np.float32) / chance, prior)

    return WordTranslations(
        (source.numbers, target.numbers),
        codes[:links][kept],
        evidence(source, target, (sources, targets), forward[:links][kept], null_forward),
        evidence(target, source, (targets, sources), backward[kept], null_backward),
    )


def model_1(given: _Text, text: _Text, iterations: int) -> tuple[Integers, Floats]:
    """t(word | given word) of all linked words, by the number given * words of text + word.

    NULL is the given word after the last one.
    """
    chunks, codes = _chunks(given, text)
    probabilities = np.ones(len(codes))
    givens = codes // len(text.numbers)
    for _ in range(iterations):
        counts = np.zeros(len(codes))
        for links, sizes in chunks:
            shares = probabilities[links]
            shares /= np.repeat(np.add.reduceat(shares, np.cumsum(sizes) - sizes), sizes)
            counts += np.bincount(links, shares, len(codes))
        probabilities = counts / np.bincount(givens, counts)[givens]
    return codes, probabilities


def _chunks(given: _Text, text: _Text) -> tuple[list[tuple[Integers, Integers]], Integers]:
    """The links of all words in order, and the numbers of linked words, ascending.

    A word has a link to each given word of its pair, and to NULL. A chunk: the place of each link's
    number, and how many links each word has.
    """
    lengths = given.lengths + 1
    ids = np.insert(given.ids, np.cumsum(given.lengths), len(given.numbers)).astype(np.int64)
    sizes = np.repeat(lengths, text.lengths)
    firsts = np.repeat(np.cumsum(lengths) - lengths, text.lengths)
    ends = np.cumsum(sizes, dtype=np.int64)
    chunks, start = [], 0
    while start < len(sizes):
        done = ends[start] - sizes[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + _CHUNK)))
        own = sizes[start:stop]
        begins = firsts[start:stop] - (np.cumsum(own) - own)
        given_ids = ids[np.arange(own.sum()) + np.repeat(begins, own)]
        numbers = given_ids * len(text.numbers) + np.repeat(text.ids[start:stop], own)
        numbers, links = np.unique(numbers, return_inverse=True)
        chunks.append((numbers, links.astype(np.int32), own))
        start = stop
    codes = np.unique(np.concatenate([numbers for numbers, _, _ in chunks]))
    return [
        (np.searchsorted(codes, numbers).astype(np.int32)[links], own)
        for numbers, links, own in chunks
    ], codes
