"""Word translations learned from parallel text: IBM Model 1 (Brown et al. 1993), both directions.

`learn_word_translations` returns a `WordTranslations`, whose `score` says how much better the words
of two sentences explain each other than chance; Moore (2002) aligns sentences by the same model.
Case is ignored.

Own code, since eflomal and fast_align need a C compiler at installation (and eflomal is under the
GPL), and NLTK's IBMModel1 loops over words in Python.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, NamedTuple, Self

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
        sums = 0.0
        for evidence, given, words, side in (
            (self.forward, sources, targets, 0),
            (self.backward, targets, sources, 1),
        ):
            beside = np.where(known, evidence.links.data[places], 0.0).sum(side)
            explained = beside + evidence.prior[given].sum() + evidence.null[words]
            sums += float(np.log(ratios(explained, len(given))).mean())
        return sums / 2


def word_ids(numbers: dict[str, int], tokens: Tokens) -> Integers:
    """The ids of tokens of one side of a table, RARE for words that it lacks."""
    return np.array([numbers.get(token.lower(), RARE) for token in tokens], np.int64)


def is_sampled(number: int, total: int, most: int | None = None) -> bool:
    """Whether item `number`, from 0, of `total` is one of `most` (MAX_PAIRS) drawn evenly."""
    most = most or MAX_PAIRS
    return total <= most or number * most // total != (number + 1) * most // total


def learn_word_translations(pairs: Iterable[tuple[Tokens, Tokens]]) -> WordTranslations:
    """Learn by expectation maximization, from the uniform table; the pairs are kept as ids.

    Raises UserError if no pair has 1 to 100 tokens on each side.
    """
    numbers: list[dict[str, int]] = [{"": RARE}, {"": RARE}]
    sides: list[list[list[int]]] = [[], []]
    for pair in pairs:
        if all(0 < len(tokens) <= MAX_TOKENS for tokens in pair):
            for known, side, tokens in zip(numbers, sides, pair, strict=True):
                side.append([known.setdefault(token.lower(), len(known)) for token in tokens])
    if not (count := len(sides[0])):
        raise UserError(f"no pair of 1 to {MAX_TOKENS} tokens a side to learn translations from")
    links = sum(len(source) * len(target) for source, target in zip(*sides, strict=True))
    most = max(1, count * MAX_LINKS // links)
    drawn = [is_sampled(number, count, most) for number in range(count)]
    source, target = (
        _Text.of(known, [*compress(side, drawn)])
        for known, side in zip(numbers, sides, strict=True)
    )
    return _table(source, target)


class _Text(NamedTuple):
    """One side of a text: the ids of its words, and those and the length of each sentence."""

    numbers: dict[str, int]
    ids: Integers
    lengths: Integers

    @classmethod
    def of(cls, numbers: dict[str, int], sentences: Sequence[Sequence[int]]) -> Self:
        """Sentences of words by number, of which rare ones become RARE."""
        ids = np.fromiter(chain.from_iterable(sentences), np.int64)
        often = np.bincount(ids, minlength=len(numbers)) >= MIN_COUNT
        often[RARE] = True
        new = np.where(often, np.cumsum(often) - 1, RARE)
        words = compress(numbers, often.tolist())
        lengths = np.array([*map(len, sentences)])
        return cls({word: number for number, word in enumerate(words)}, new[ids], lengths)


def _table(source: _Text, target: _Text) -> WordTranslations:
    """The translations of both directions, whose links are the same but for those of NULL."""
    shape = len(source.numbers), len(target.numbers)
    codes, forward, null = model_1(source, target)
    others, backward, back_null = model_1(target, source)
    sources, targets = np.divmod(codes, shape[1])
    backward = backward[np.searchsorted(others, targets * shape[0] + sources)]
    kept = (forward >= _MIN_PROBABILITY) | (backward >= _MIN_PROBABILITY)
    places = sources[kept], targets[kept]

    def evidence(sides: Sequence[_Text], values: Floats, null: Floats, step: int) -> Evidence:
        given, words = (np.bincount(side.ids, minlength=len(side.numbers)) for side in sides)
        (given_place, word_place), chance = places[::step], np.maximum(words, 1) / words.sum()
        prior = _PRIOR / (given + _PRIOR)
        likelier = values[kept].astype(np.float32) * (1 - prior[given_place]) / chance[word_place]
        links = csr_array((likelier, places), shape)
        return Evidence(links, null.astype(np.float32) / chance, prior)

    return WordTranslations(
        (source.numbers, target.numbers),
        codes[kept],
        evidence((source, target), forward, null, 1),
        evidence((target, source), backward, back_null, -1),
    )


def model_1(given: _Text, text: _Text) -> tuple[Integers, Floats, Floats]:
    """t(word | given word) of all linked words, and of each word beside NULL.

    A link's code is the number given * words of text + word; codes ascend, those of NULL, which is
    the given word after the last one, come last.
    """
    chunks, codes = _chunks(given, text)
    probabilities, words = np.ones(len(codes)), len(text.numbers)
    givens = codes // words
    for _ in range(ITERATIONS):
        counts = np.zeros(len(codes))
        for links, sizes in chunks:
            shares = probabilities[links]
            shares /= np.repeat(np.add.reduceat(shares, np.cumsum(sizes) - sizes), sizes)
            counts += np.bincount(links, shares, len(codes))
        probabilities = counts / np.bincount(givens, counts)[givens]
    end, null = int(np.searchsorted(givens, len(given.numbers))), np.zeros(words)
    null[codes[end:] % words] = probabilities[end:]
    return codes[:end], probabilities[:end], null


def _chunks(given: _Text, text: _Text) -> tuple[list[tuple[Integers, Integers]], Integers]:
    """The links of all words in order, and the numbers of linked words, ascending.

    A word has a link to each given word of its pair, and to NULL. A chunk: the place of each link's
    number, and how many links each word has.
    """
    lengths = given.lengths + 1
    ids = np.insert(given.ids, np.cumsum(given.lengths), len(given.numbers))
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
