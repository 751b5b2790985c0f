"""Word translations learned from parallel text: IBM Model 1 (Brown et al. 1993), both directions.

`learn_word_translations` returns a `WordTranslations`, whose `score` says how much better the words
of two sentences explain each other than chance; Moore (2002) aligns sentences by the same model.
Letter case is ignored.

Model 1 assumes that each word of a sentence is the translation of one word of the other sentence,
or of NULL, the empty word, and that all of them are equally likely. A *link* is a word and a
conditioning word that occur in one sentence pair. Most of this module handles links as numbers in
numpy arrays, since a text of 100,000 sentence pairs has millions of them.

We learn with code of our own because eflomal and fast_align need a C compiler at installation (and
eflomal is under the GPL), and NLTK's IBMModel1 loops over words in Python.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from bleuprint.runtime.errors import UserError

# Rounds of expectation maximization.
ITERATIONS = 5
# Words that occur less often, and words that are not in the text, are all the word RARE.
MIN_COUNT = 2
RARE = 0
# Sentences with more tokens are not learned from: a pair costs the product of both lengths.
MAX_TOKENS = 100
# Of a longer sentence only the first tokens are scored.
_MAX_SCORED_TOKENS = 1000
# So many sentence pairs are enough to learn from. Callers sample a longer text by `is_sampled`.
MAX_PAIRS = 100_000
# If the sentence pairs have more links, fewer pairs are used. A link takes 4 bytes, and two words
# that are linked up to 24 bytes.
MAX_LINKS = 20_000_000
# So many links are processed at once, which limits the size of temporary arrays.
_LINKS_PER_CHUNK = 1 << 20
# Translations that are less probable in both directions are not kept.
_MIN_PROBABILITY = 1e-3
# A word's translations count as if it had also been seen so many times with words by chance. A rare
# word, whose translations are learned from a pair or two, is thereby weak evidence.
_PRIOR_COUNT = 20.0
# The smallest value of p(word | other side) / p(word): words of a good pair may lack a translation.
MIN_RATIO = 0.05

Tokens = Sequence[str]
Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.integer[Any]]


class WordRatios(NamedTuple):
    """The likelihood ratios p(word | conditioning word) / p(word) of one direction.

    Attributes:
        linked: The ratios of linked words, as a sparse matrix (source words, target words), each
            times 1 - `prior_share` of its conditioning word.
        null: The ratio of each word given NULL.
        prior_share: For each conditioning word, the weight of the prior, whose ratio is 1.
    """

    linked: csr_array
    null: Floats
    prior_share: Floats


def likelihood_ratios(ratio_sums: Floats, condition_length: int | Floats) -> Floats:
    """Return how much likelier words are given a sentence of the other language than by chance.

    By IBM Model 1, p(word | sentence) is the mean of p(word | other word) over the words of the
    sentence and NULL, the empty word. Divided by p(word), it is a mean of ratios. A small constant
    is mixed in, so that a word without a known translation does not make the sentence impossible.

    Args:
        ratio_sums: For each word the sum of p(word | other word) / p(word) over the words of the
            sentence and NULL.
        condition_length: The number of words of the sentence, without NULL.
    """
    weight = (1 - MIN_RATIO) / (condition_length + 1)
    return MIN_RATIO + weight * ratio_sums


@dataclass(frozen=True, eq=False)
class WordTranslations:
    """Word translations between two languages.

    Attributes:
        vocabularies: The ids of the source words and of the target words, in lower case.
        link_codes: The links in ascending order, each as the number
            source id * (target words) + target id.
        forward: The ratios of target words given source words.
        backward: The ratios of source words given target words.
    """

    vocabularies: tuple[dict[str, int], dict[str, int]]
    link_codes: Integers
    forward: WordRatios
    backward: WordRatios

    def score(self, source: Tokens, target: Tokens) -> float:
        """Return how well the words of two sentences translate each other.

        For each direction, the score is the mean over words of log(p(word | other side) / p(word)),
        with the probabilities of IBM Model 1; the result is the mean of both directions. It is
        around 2 for translations and around -1 for unrelated sentences, whatever their lengths. If
        a side is empty, it is the lowest possible score.

        Args:
            source: The tokens of the source sentence; only the first 1,000 are used.
            target: The tokens of the target sentence; only the first 1,000 are used.
        """
        if len(source) == 0 or len(target) == 0:
            return float(np.log(MIN_RATIO))
        source_vocabulary, target_vocabulary = self.vocabularies
        source_ids = encode_words(source_vocabulary, source[:_MAX_SCORED_TOKENS])
        target_ids = encode_words(target_vocabulary, target[:_MAX_SCORED_TOKENS])
        # Two words that may translate each other are a link, stored as the number
        # source id * (target words) + target id. Look up all pairs of words, as a matrix of shape
        # (source length, target length).
        codes = source_ids[:, None] * len(target_vocabulary) + target_ids
        positions = np.searchsorted(self.link_codes, codes)
        # Two words that are not linked get the position where their code would be, which may be
        # behind the end. Their code differs from the one at this position.
        positions = np.minimum(positions, len(self.link_codes) - 1)
        is_linked = self.link_codes[positions] == codes
        forward_ratios = np.where(is_linked, self.forward.linked.data[positions], 0.0)
        backward_ratios = np.where(is_linked, self.backward.linked.data[positions], 0.0)
        forward_sums = forward_ratios.sum(axis=0)  # For each target word.
        backward_sums = backward_ratios.sum(axis=1)  # For each source word.
        forward_score = _mean_log_ratio(self.forward, forward_sums, source_ids, target_ids)
        backward_score = _mean_log_ratio(self.backward, backward_sums, target_ids, source_ids)
        return (forward_score + backward_score) / 2


def _mean_log_ratio(
    word_ratios: WordRatios, linked_sums: Floats, conditioning_ids: Integers, word_ids: Integers
) -> float:
    """Return how well the words of a sentence are explained by a sentence of the other language.

    This is the mean over the words of log(p(word | other sentence) / p(word)), by IBM Model 1.

    Args:
        word_ratios: The ratios p(word | other word) / p(word) of this direction.
        linked_sums: For each word the sum of its ratios over those words of the other sentence with
            which it occurred in a training pair (links).
        conditioning_ids: The ids of the words of the other sentence.
        word_ids: The ids of the words to explain.
    """
    # Two more parts belong to the sum of ratios: the ratio given NULL, the empty word; and a prior,
    # as if each word of the other sentence had also been seen with words by chance (ratio 1). It
    # weighs more for rare words, so that these are weak evidence.
    prior_sum = word_ratios.prior_share[conditioning_ids].sum()
    ratio_sums = linked_sums + prior_sum + word_ratios.null[word_ids]
    return float(np.log(likelihood_ratios(ratio_sums, len(conditioning_ids))).mean())


def encode_words(vocabulary: dict[str, int], tokens: Tokens) -> Integers:
    """Return the ids of tokens in lower case; an unknown token has the id of rare words, 0."""
    return np.array([vocabulary.get(token.lower(), RARE) for token in tokens], np.int64)


def is_sampled(index: int, total: int, sample_size: int | None = None) -> bool:
    """Return whether an item, such as a sentence pair, belongs to an evenly spaced sample.

    Of 9 items, a sample of 3 contains those with the indices 2, 5 and 8.

    Args:
        index: The index of the item, from 0.
        total: The number of all items.
        sample_size: The number of items to sample; by default as many sentence pairs as are enough
            to learn word translations. If there are fewer items, the sample contains all of them.
    """
    sample_size = sample_size or MAX_PAIRS
    if total <= sample_size:
        return True
    # The size of the sample before this item, and with it. It grows if the item is in the sample.
    sampled_before = index * sample_size // total
    sampled_with_item = (index + 1) * sample_size // total
    return sampled_before != sampled_with_item


def learn_word_translations(pairs: Iterable[tuple[Tokens, Tokens]]) -> WordTranslations:
    """Learn from sentence pairs which words translate each other, by IBM Model 1.

    Pairs with an empty or very long sentence are skipped. If the combinations of a source and a
    target word of each pair (links) do not fit into memory, only a sample of the pairs is used.

    Args:
        pairs: The source tokens and the target tokens of each sentence pair.

    Raises:
        UserError: No pair has 1 to 100 tokens on each side.
    """
    # The id RARE is reserved: it will replace the ids of rare words. No token is the empty string.
    source_vocabulary = {"": RARE}
    target_vocabulary = {"": RARE}
    source_sentences = []
    target_sentences = []
    link_count = 0
    for source, target in pairs:
        if 0 < len(source) <= MAX_TOKENS and 0 < len(target) <= MAX_TOKENS:
            source_sentences.append(_add_words(source_vocabulary, source))
            target_sentences.append(_add_words(target_vocabulary, target))
            link_count += len(source) * len(target)
    pair_count = len(source_sentences)
    if pair_count == 0:
        raise UserError(f"no pair has 1 to {MAX_TOKENS} tokens on each side. Add text")
    # As many pairs as have MAX_LINKS links, if all pairs had an equal number of them.
    sample_size = max(1, pair_count * MAX_LINKS // link_count)
    source_sample = []
    target_sample = []
    for index in range(pair_count):
        if is_sampled(index, pair_count, sample_size):
            source_sample.append(source_sentences[index])
            target_sample.append(target_sentences[index])
    return _learn_both_tables(
        source=_Side.from_sentences(source_vocabulary, source_sample),
        target=_Side.from_sentences(target_vocabulary, target_sample),
    )


def _add_words(vocabulary: dict[str, int], tokens: Tokens) -> list[int]:
    """Return the ids of tokens, and add words that the vocabulary lacks."""
    return [vocabulary.setdefault(token.lower(), len(vocabulary)) for token in tokens]


class _Side(NamedTuple):
    """One side of the sentence pairs to learn from.

    Attributes:
        vocabulary: The id of each word; RARE is the empty word.
        word_ids: The words of all sentences, one after the other.
        lengths: The number of words of each sentence.
    """

    vocabulary: dict[str, int]
    word_ids: Integers
    lengths: Integers

    @classmethod
    def from_sentences(cls, vocabulary: dict[str, int], sentences: Sequence[Sequence[int]]) -> Self:
        """Prepare the sentences of one language for learning: replace rare words by one word, RARE.

        The other words are numbered anew, without gaps: if word 2 of 4 is rare, the new ids of the
        words 0, 1, 2 and 3 are 0, 1, RARE (which is 0) and 2.

        Args:
            vocabulary: The id of each word in the sentences, in ascending order.
            sentences: The word ids of each sentence.
        """
        old_ids = np.fromiter(chain.from_iterable(sentences), np.int64)
        is_frequent = np.bincount(old_ids, minlength=len(vocabulary)) >= MIN_COUNT
        is_frequent[RARE] = True  # RARE itself always keeps its id, 0.
        # A frequent word gets the number of frequent words before it.
        new_ids = np.where(is_frequent, np.cumsum(is_frequent) - 1, RARE)
        new_vocabulary: dict[str, int] = {}
        for word, is_kept in zip(vocabulary, is_frequent.tolist(), strict=True):
            if is_kept:
                new_vocabulary[word] = len(new_vocabulary)
        lengths = np.array([len(sentence) for sentence in sentences])
        return cls(new_vocabulary, new_ids[old_ids], lengths)

    def word_counts(self) -> Integers:
        """Return how often each word of the vocabulary occurs."""
        return np.bincount(self.word_ids, minlength=len(self.vocabulary))


def _learn_both_tables(source: _Side, target: _Side) -> WordTranslations:
    """Learn p(target word | source word) and p(source word | target word), and prepare scoring.

    Sentences will be scored by the ratios p(word | other word) / p(word). A ratio is stored for
    each link, that is, for two words that occur in one sentence pair. Links with small
    probabilities in both directions are dropped.

    Args:
        source: The source sentences.
        target: The target sentences.
    """
    source_size = len(source.vocabulary)
    target_size = len(target.vocabulary)
    forward = train_model_1(source, target)
    backward = train_model_1(target, source)
    # The forward code of a link is source id * target_size + target id; the backward code is
    # target id * source_size + source id. Bring the backward probabilities into forward order.
    source_ids, target_ids = np.divmod(forward.link_codes, target_size)
    backward_codes = target_ids * source_size + source_ids
    backward_order = np.searchsorted(backward.link_codes, backward_codes)
    backward_probabilities = backward.probabilities[backward_order]
    is_kept = np.maximum(forward.probabilities, backward_probabilities) >= _MIN_PROBABILITY
    source_ids = source_ids[is_kept]
    target_ids = target_ids[is_kept]
    shape = (source_size, target_size)
    # Divide the probabilities by p(word), and reduce them for rare conditioning words.
    forward_prior = _prior_shares(source)
    backward_prior = _prior_shares(target)
    source_chance = _chance_probabilities(source)
    target_chance = _chance_probabilities(target)
    forward_ratios = _link_ratios(
        probabilities=forward.probabilities[is_kept],
        prior_shares=forward_prior[source_ids],
        chance_probabilities=target_chance[target_ids],
    )
    backward_ratios = _link_ratios(
        probabilities=backward_probabilities[is_kept],
        prior_shares=backward_prior[target_ids],
        chance_probabilities=source_chance[source_ids],
    )
    return WordTranslations(
        vocabularies=(source.vocabulary, target.vocabulary),
        link_codes=forward.link_codes[is_kept],
        forward=WordRatios(
            linked=csr_array((forward_ratios, (source_ids, target_ids)), shape),
            null=forward.null_probabilities.astype(np.float32) / target_chance,
            prior_share=forward_prior,
        ),
        backward=WordRatios(
            linked=csr_array((backward_ratios, (source_ids, target_ids)), shape),
            null=backward.null_probabilities.astype(np.float32) / source_chance,
            prior_share=backward_prior,
        ),
    )


def _link_ratios(
    probabilities: Floats, prior_shares: Floats, chance_probabilities: Floats
) -> Floats:
    """Return how much likelier a word is given a word of the other language than by chance.

    All arrays have an element for each link, that is, for two words of one sentence pair.

    Args:
        probabilities: p(word | other word) of IBM Model 1.
        prior_shares: From 0 to 1, how little to trust the translations of the other word. It is
            higher for a rare word.
        chance_probabilities: p(word), its share in the text.
    """
    ratios: Floats = probabilities.astype(np.float32) * (1 - prior_shares) / chance_probabilities
    return ratios


def _prior_shares(conditioning: _Side) -> Floats:
    """Return how little to trust the translations of each word, from 0 to 1: higher for rare words.

    A word counts as if it had also been seen 20 times with words by chance (the prior). The result
    is the share of these 20 among all times: 0.5 for a word that was really seen 20 times.
    """
    shares: Floats = _PRIOR_COUNT / (conditioning.word_counts() + _PRIOR_COUNT)
    return shares


def _chance_probabilities(side: _Side) -> Floats:
    """Return p(word), the share of each word in the text."""
    counts = side.word_counts()
    # At least 1, since callers divide by it: without rare words in the text, RARE has the count 0.
    probabilities: Floats = np.maximum(counts, 1) / counts.sum()
    return probabilities


class Model1(NamedTuple):
    """The translation probabilities p(word | conditioning word) of one direction.

    Attributes:
        link_codes: The links in ascending order, each as the number
            conditioning id * (words) + word id.
        probabilities: The probability of each link.
        null_probabilities: The probability of each word given NULL.
    """

    link_codes: Integers
    probabilities: Floats
    null_probabilities: Floats


def train_model_1(conditioning: _Side, predicted: _Side) -> Model1:
    """Learn p(word | conditioning word) of IBM Model 1 by expectation maximization.

    In each round, each occurrence of a word is divided into shares, one for each word of the other
    sentence, in proportion to the current probabilities. The sums of these shares over the text
    give the new probabilities. At the start, all probabilities are equal.

    Args:
        conditioning: The sentences of one language. NULL, the empty word, is added to each; its id
            follows the last one.
        predicted: The sentences of the other language, whose words are explained.
    """
    link_codes, chunks = _collect_links(conditioning, predicted)
    word_count = len(predicted.vocabulary)
    conditioning_ids = link_codes // word_count
    probabilities = np.ones(len(link_codes))
    for _ in range(ITERATIONS):
        # Expectation: divide all word occurrences, and add up the shares of each link.
        expected_counts = np.zeros(len(link_codes))
        for chunk in chunks:
            shares = _shares_of_links(chunk, probabilities)
            expected_counts += np.bincount(chunk.link_indices, shares, len(link_codes))
        # Maximization: the probabilities of each conditioning word add up to 1 again.
        conditioning_counts = np.bincount(conditioning_ids, expected_counts)
        probabilities = expected_counts / conditioning_counts[conditioning_ids]
    # Link codes are sorted by the conditioning id. NULL has the highest id, so its links are last.
    null_id = len(conditioning.vocabulary)
    first_null_link = int(np.searchsorted(conditioning_ids, null_id))
    null_probabilities = np.zeros(word_count)
    null_words = link_codes[first_null_link:] % word_count
    null_probabilities[null_words] = probabilities[first_null_link:]
    return Model1(
        link_codes=link_codes[:first_null_link],
        probabilities=probabilities[:first_null_link],
        null_probabilities=null_probabilities,
    )


class _Chunk(NamedTuple):
    """The links of some consecutive word occurrences.

    Attributes:
        link_indices: For each link its index among the distinct links; the links of one word
            occurrence are consecutive.
        links_per_word: For each word occurrence the number of its links.
    """

    link_indices: Integers
    links_per_word: Integers


def _shares_of_links(chunk: _Chunk, probabilities: Floats) -> Floats:
    """Divide each word of a text into shares that add up to 1, one for each of its links.

    A link combines the word with a word of the other sentence. If the links of a word have the
    probabilities 0.1 and 0.3, the shares are 0.25 and 0.75.
    """
    shares: Floats = probabilities[chunk.link_indices]
    # The links of a word are consecutive: sum up the probabilities from each word's first link on.
    first_links = np.cumsum(chunk.links_per_word) - chunk.links_per_word
    share_sums = np.add.reduceat(shares, first_links)
    shares /= np.repeat(share_sums, chunk.links_per_word)
    return shares


def _collect_links(conditioning: _Side, predicted: _Side) -> tuple[Integers, list[_Chunk]]:
    """Combine each word of a text with each word of the other sentence of its pair, and with NULL.

    Such a combination is a link. Its code is the number
    conditioning id * (number of words) + word id. A text has many millions of links, so they are
    collected in arrays, for a chunk of the text at a time.

    Args:
        conditioning: The sentences of one language. NULL, the empty word, is added to each.
        predicted: The sentences of the other language.

    Returns:
        The codes of all different links, ascending; and the chunks, in which the links of each word
        of the text follow each other, as indices into these codes.
    """
    # NULL is added as a word at the end of each conditioning sentence. Its id follows all others.
    null_id = len(conditioning.vocabulary)
    sentence_ends = np.cumsum(conditioning.lengths)
    conditioning_ids = np.insert(conditioning.word_ids, sentence_ends, null_id)
    lengths_with_null = conditioning.lengths + 1
    sentence_starts = np.cumsum(lengths_with_null) - lengths_with_null
    # For each word occurrence, where its conditioning sentence starts and how long it is.
    condition_starts = np.repeat(sentence_starts, predicted.lengths)
    links_per_word = np.repeat(lengths_with_null, predicted.lengths)
    link_ends = np.cumsum(links_per_word, dtype=np.int64)

    chunk_codes = []
    chunks = []
    start = 0
    while start < len(links_per_word):
        # A chunk consists of consecutive words, with about _LINKS_PER_CHUNK links together.
        links_before = link_ends[start] - links_per_word[start]
        stop = int(np.searchsorted(link_ends, links_before + _LINKS_PER_CHUNK))
        stop = max(start + 1, stop)  # At least one word, however many links it has.
        sizes = links_per_word[start:stop]
        # The conditioning sentence of each word is a range of positions in `conditioning_ids`.
        condition_positions = _join_ranges(condition_starts[start:stop], sizes)
        codes = conditioning_ids[condition_positions] * len(predicted.vocabulary)
        codes += np.repeat(predicted.word_ids[start:stop], sizes)
        distinct_codes, link_indices = np.unique(codes, return_inverse=True)
        chunk_codes.append(distinct_codes)
        chunks.append(_Chunk(link_indices.astype(np.int32), sizes))
        start = stop
    link_codes = np.unique(np.concatenate(chunk_codes))
    renumbered = []
    for distinct_codes, chunk in zip(chunk_codes, chunks, strict=True):
        # Each chunk has numbered its own distinct links. Renumber them across all chunks.
        indices = np.searchsorted(link_codes, distinct_codes).astype(np.int32)
        renumbered.append(_Chunk(indices[chunk.link_indices], chunk.links_per_word))
    return link_codes, renumbered


def _join_ranges(starts: Integers, lengths: Integers) -> Integers:
    """Join ranges of numbers: the starts 5 and 9 with the lengths 3 and 2 give 5 6 7 9 10."""
    # Count through all ranges, here 0 1 2 3 4, and shift each one to its start, here by 5 5 5 6 6.
    shifts = starts - (np.cumsum(lengths) - lengths)
    joined: Integers = np.arange(lengths.sum()) + np.repeat(shifts, lengths)
    return joined
