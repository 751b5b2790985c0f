"""Word translations learned from parallel text: IBM Model 1 (Brown et al. 1993), both directions.

`learn` returns a `WordTranslations`, whose `score` says how much better the words of two sentences
explain each other than chance; Moore (2002) aligns sentences by the same model. Case is ignored.

Own code, since eflomal and fast_align need a C compiler at installation (and eflomal is under the
GPL), and NLTK's IBMModel1 loops over words in Python.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import system_errors, whole_file

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


@dataclass(frozen=True, eq=False)
class WordTranslations:
    """Translation probabilities between words, which are in lower case.

    `links`: two words that occur in one pair, as the number source * len(target_words) + target,
    ascending; `forward` and `backward`: t(target | source) and t(source | target) of each link;
    `null_forward` and `null_backward`: t(word | NULL) of each target and each source word;
    `source_counts` and `target_counts`: the occurrences of each word.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    source_counts: Integers
    target_counts: Integers
    links: Integers
    forward: Floats
    backward: Floats
    null_forward: Floats
    null_backward: Floats

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
        codes = sources[:, None] * len(self.target_words) + targets
        places = np.minimum(np.searchsorted(self.links, codes), len(self.links) - 1)
        known = self.links[places] == codes
        forward, backward = self.evidence
        ratios = (
            forward.ratios(sources, targets, np.where(known, forward.links[places], 0.0)),
            backward.ratios(targets, sources, np.where(known, backward.links[places], 0.0).T),
        )
        return float(sum(np.log(ratio).mean() for ratio in ratios) / 2)

    def save(self, path: Path) -> None:
        """Write the table as safetensors; the same table is the same bytes."""
        arrays = {
            name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        for name in ("source_words", "target_words"):
            arrays[name] = np.frombuffer("\n".join(getattr(self, name)).encode(), np.uint8)
        with whole_file(path) as unfinished, system_errors(path):
            save_file(arrays, unfinished)

    @classmethod
    def load(cls, path: Path) -> Self:
        """The table that `save` wrote."""
        arrays: dict[str, Any] = load_file(path)
        for name in ("source_words", "target_words"):
            arrays[name] = tuple(arrays[name].tobytes().decode().split("\n"))
        return cls(**arrays)

    @cached_property
    def numbers(self) -> list[dict[str, int]]:
        """The ids of source and of target words, for `word_ids`."""
        sides = self.source_words, self.target_words
        return [{word: number for number, word in enumerate(words)} for words in sides]

    @cached_property
    def evidence(self) -> tuple["Evidence", "Evidence"]:
        """Of target words beside source words, and of source words beside target words."""
        sources, targets = np.divmod(self.links, len(self.target_words))
        counts = self.source_counts, self.target_counts
        return (
            _evidence(*counts, sources, targets, self.forward, self.null_forward),
            _evidence(*counts[::-1], targets, sources, self.backward, self.null_backward),
        )


class Evidence(NamedTuple):
    """How much likelier than by chance a word is beside a given word of the other side.

    By link, beside NULL, and of any word beside a given one (the share of the prior).
    """

    links: Floats
    null: Floats
    prior: Floats

    def ratios(self, given: Integers, words: Integers, links: Floats) -> Floats:
        """p(word | given words) / p(word) of each word; `links` is of shape (given, words)."""
        total = links.sum(0) + self.prior[given].sum() + self.null[words]
        ratios: Floats = UNEXPLAINED + (1 - UNEXPLAINED) / (len(given) + 1) * total
        return ratios


def _evidence(
    given_counts: Integers,
    word_counts: Integers,
    given: Integers,
    words: Integers,
    probabilities: Floats,
    null: Floats,
) -> Evidence:
    chance = np.maximum(word_counts, 1) / word_counts.sum()
    prior = _PRIOR / (given_counts + _PRIOR)
    return Evidence(probabilities * (1 - prior[given]) / chance[words], null / chance, prior)


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
    forward, backward = _learn(source, target, iterations), _learn(target, source, iterations)
    return _table(source, target, forward, backward)


class _Text(NamedTuple):
    """One side of a text: its words, and the ids and the length of each sentence, end to end."""

    words: tuple[str, ...]
    ids: Integers
    lengths: Integers

    @property
    def counts(self) -> Integers:
        return np.bincount(self.ids, minlength=len(self.words))


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
        return _Text(tuple(words), new[ids], lengths[drawn])


class _Chunk(NamedTuple):
    """Links of some words: a word has one to each given word of its pair, and to NULL.

    `places` in the table of each two linked words; `links`: indices of `places`; `starts` and
    `sizes` of the groups of links of one word.
    """

    places: Integers
    links: Integers
    starts: Integers
    sizes: Integers


def _learn(given: _Text, text: _Text, iterations: int) -> tuple[Integers, Floats]:
    """t(word | given word) of all linked words, by the number given * len(text.words) + word.

    NULL is the given word after the last one.
    """
    chunks, codes = _chunks(given, text)
    probabilities = np.ones(len(codes))
    givens = codes // len(text.words)
    for _ in range(iterations):
        counts = np.zeros(len(codes))
        for chunk in chunks:
            shares = probabilities[chunk.places][chunk.links]
            shares /= np.repeat(np.add.reduceat(shares, chunk.starts), chunk.sizes)
            counts[chunk.places] += np.bincount(chunk.links, shares, len(chunk.places))
        probabilities = counts / np.bincount(givens, counts)[givens]
    return codes, probabilities


def _chunks(given: _Text, text: _Text) -> tuple[list[_Chunk], Integers]:
    """The links of all words in order, and the numbers of linked words."""
    sentence_sizes = given.lengths + 1
    ids = np.insert(given.ids, np.cumsum(given.lengths), len(given.words)).astype(np.int64)
    sizes = np.repeat(sentence_sizes, text.lengths)
    firsts = np.repeat(np.cumsum(sentence_sizes) - sentence_sizes, text.lengths)
    ends = np.cumsum(sizes, dtype=np.int64)
    chunks, start = [], 0
    while start < len(sizes):
        done = ends[start] - sizes[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + _CHUNK)))
        own = slice(start, stop)
        starts = ends[own] - sizes[own] - done
        places = np.arange(ends[stop - 1] - done) + np.repeat(firsts[own] - starts, sizes[own])
        codes = ids[places] * len(text.words) + np.repeat(text.ids[own], sizes[own])
        codes, links = np.unique(codes, return_inverse=True)
        chunks.append(_Chunk(codes, links.astype(np.int32), starts, sizes[own]))
        start = stop
    codes = np.unique(np.concatenate([chunk.places for chunk in chunks]))
    for number, chunk in enumerate(chunks):
        places = np.searchsorted(codes, chunk.places).astype(np.int32)
        chunks[number] = chunk._replace(places=places)
    return chunks, codes


def _table(
    source: _Text,
    target: _Text,
    forward: tuple[Integers, Floats],
    backward: tuple[Integers, Floats],
) -> WordTranslations:
    """The table of both directions, whose links are the same but for those of NULL."""
    sizes = len(source.words), len(target.words)
    (codes, probabilities), nulls = _without_null(forward, *sizes)
    (others, reverse), reverse_nulls = _without_null(backward, *sizes[::-1])
    sources, targets = np.divmod(codes, sizes[1])
    reverse = reverse[np.searchsorted(others, targets * sizes[0] + sources)]
    kept = (probabilities >= _MIN_PROBABILITY) | (reverse >= _MIN_PROBABILITY)
    return WordTranslations(
        source.words,
        target.words,
        source.counts,
        target.counts,
        codes[kept],
        probabilities[kept].astype(np.float32),
        reverse[kept].astype(np.float32),
        nulls,
        reverse_nulls,
    )


def _without_null(
    learned: tuple[Integers, Floats], given: int, words: int
) -> tuple[tuple[Integers, Floats], Floats]:
    """The links without those to NULL, and t(word | NULL) of each word."""
    codes, probabilities = learned
    first = int(np.searchsorted(codes, given * words))
    null = np.zeros(words, np.float32)
    null[codes[first:] - given * words] = probabilities[first:]
    return (codes[:first], probabilities[:first]), null
