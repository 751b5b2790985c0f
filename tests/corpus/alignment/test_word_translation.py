"""Word translations are learned by IBM Model 1 as by NLTK, and score pairs of sentences."""

import random
from collections import Counter
from itertools import chain, pairwise

import pytest

from bleuprint.corpus.alignment import word_translation
from bleuprint.corpus.alignment.word_translation import (
    ITERATIONS,
    RARE,
    is_sampled,
    learn_word_translations,
)
from bleuprint.runtime.errors import UserError
from corpora import sources_of, targets_of

# No word occurs twice in a sentence: NLTK divides the counts of such a word by their number.
SENTENCE_PAIRS = [
    ("the house is small", "das haus ist klein"),
    ("the house is big", "das haus ist groß"),
    ("a book", "ein buch"),
    ("the book is small", "das buch ist klein"),
    ("a big book is here", "hier ist ein groß kleines buch"),
    ("here is the house", "hier ist das haus"),
]
ENGLISH_GERMAN_PAIRS = [(english.split(), german.split()) for english, german in SENTENCE_PAIRS]
GERMAN_ENGLISH_PAIRS = [(german, english) for english, german in ENGLISH_GERMAN_PAIRS]


def word_probabilities(words, sentences):
    """Return the share of each word in a text."""
    counts = Counter()
    for sentence in sentences:
        counts.update(sentence)
    return {word: counts[word] / counts.total() for word in words}


@pytest.fixture(params=[1 << 20, 7], ids=["all links at once", "chunks of 7 links"])
def translations(request, monkeypatch):
    """Translations learned from ENGLISH_GERMAN_PAIRS as by NLTK: without prior, with rare words."""
    monkeypatch.setattr(word_translation, "MIN_COUNT", 1)
    monkeypatch.setattr(word_translation, "_LINKS_PER_CHUNK", request.param)
    monkeypatch.setattr(word_translation, "_PRIOR_COUNT", 1e-12)
    return learn_word_translations(ENGLISH_GERMAN_PAIRS)


def assert_equals_nltk(ratios, linked, conditions, words, pairs):
    """Check the likelihood ratios of one direction against NLTK's translation table.

    A ratio is p(word | condition) / p(word), and NLTK has p(word | condition).

    Args:
        ratios: The ratios, whose `null` are those of words without a condition.
        linked: The ratios of linked words, (conditions, words).
        conditions: The conditioning words, in the order of their ids; the first one stands for
            rare words.
        words: The words, likewise.
        pairs: The sentence pairs: a sentence of conditioning words, and one of words.
    """
    from nltk.translate import AlignedSent, IBMModel1

    aligned_sentences = [AlignedSent(target, source) for source, target in pairs]
    probabilities_of_nltk = IBMModel1(aligned_sentences, ITERATIONS).translation_table
    chance = word_probabilities(words, targets_of(pairs))
    links = linked.tocoo()
    for condition_id, word_id, ratio in zip(*links.coords, links.data, strict=True):
        word = words[word_id]
        expected = probabilities_of_nltk[word][conditions[condition_id]]
        assert ratio * chance[word] == pytest.approx(expected, abs=1e-6)
    for word, ratio in zip(words[1:], ratios.null[1:], strict=True):
        expected = probabilities_of_nltk[word][None]
        assert ratio * chance[word] == pytest.approx(expected, abs=1e-6)


def test_probabilities_of_target_words_equal_those_of_nltk(translations):
    """Both programs learn IBM Model 1: the probability of a target word given a source word.

    The model stores the ratio p(word | condition) / p(word); `assert_equals_nltk` multiplies it by
    p(word) and compares the product with NLTK's translation table.
    """
    source_vocabulary, target_vocabulary = translations.vocabularies

    assert_equals_nltk(
        ratios=translations.forward,
        linked=translations.forward.linked,
        conditions=list(source_vocabulary),
        words=list(target_vocabulary),
        pairs=ENGLISH_GERMAN_PAIRS,
    )


def test_probabilities_of_source_words_equal_those_of_nltk(translations):
    """Both programs learn IBM Model 1: the probability of a source word given a target word.

    The model stores the ratio p(word | condition) / p(word); `assert_equals_nltk` multiplies it by
    p(word) and compares the product with NLTK's translation table.
    """
    source_vocabulary, target_vocabulary = translations.vocabularies

    # The matrix has a row per source word. Here the condition is the target word, so that the
    # matrix is transposed.
    assert_equals_nltk(
        ratios=translations.backward,
        linked=translations.backward.linked.T,
        conditions=list(target_vocabulary),
        words=list(source_vocabulary),
        pairs=GERMAN_ENGLISH_PAIRS,
    )


def test_the_vocabularies_contain_all_words_and_an_entry_for_rare_words(translations):
    """The fixture `translations` is learned from the sentence pairs ENGLISH_GERMAN_PAIRS."""
    english_words = set()
    german_words = set()
    for english, german in ENGLISH_GERMAN_PAIRS:
        english_words.update(english)
        german_words.update(german)

    source_vocabulary, target_vocabulary = translations.vocabularies

    entry_for_rare_words = 1
    assert len(source_vocabulary) == len(english_words) + entry_for_rare_words
    assert len(target_vocabulary) == len(german_words) + entry_for_rare_words


def generated_pairs(count=400):
    """Return pairs of 3 to 12 words; v7 translates w7, and so on for 60 words.

    The words of the target are shuffled.
    """
    generator = random.Random(1)
    pairs = []
    for _ in range(count):
        length = generator.randint(3, 12)
        # Squares make small numbers more frequent, as words in natural text are.
        numbers = [int(60 * generator.random() ** 2) for _ in range(length)]
        source = [f"w{number}" for number in numbers]
        target = [f"v{number}" for number in generator.sample(numbers, length)]
        pairs.append((source, target))
    return pairs


@pytest.mark.parametrize("length", range(3, 13))
def test_translations_score_above_1_and_unrelated_sentences_below_0(length):
    """A score tells translations from unrelated sentences of the same length.

    In the generated pairs, v0 translates w0, and so on. A source is also scored with the target of
    the next pair, unless both targets share a word.
    """
    pairs = generated_pairs(count=400)
    translations = learn_word_translations(pairs)
    pairs_of_length = [pair for pair in pairs if len(pair[0]) == length]

    scores = [translations.score(source, target) for source, target in pairs_of_length]

    unrelated_scores = []
    for (source, target), (_, next_target) in pairwise(pairs_of_length):
        if set(target).isdisjoint(next_target):
            unrelated_scores.append(translations.score(source, next_target))

    assert min(scores) > 1
    # Of long sentences, all may share a word, so that no score is left.
    assert max(unrelated_scores, default=-1) < 0


def test_a_pair_has_the_same_score_if_both_sides_are_swapped():
    """In the generated pairs, v0 translates w0, v1 translates w1, and so on."""
    pairs = generated_pairs(count=400)
    swapped_pairs = list(zip(targets_of(pairs), sources_of(pairs), strict=True))

    translations = learn_word_translations(pairs)
    swapped_translations = learn_word_translations(swapped_pairs)

    for source, target in generated_pairs(count=20):
        score = translations.score(source, target)
        assert swapped_translations.score(target, source) == pytest.approx(score)


def test_letter_case_does_not_change_the_score():
    """In the generated pairs, v0 translates w0, v1 translates w1, and so on."""
    translations = learn_word_translations(generated_pairs(count=400))

    score = translations.score(["w1", "w2"], ["v1", "v2"])
    score_with_capitals = translations.score(["W1", "w2"], ["v1", "V2"])

    assert score_with_capitals == score


def test_a_word_that_occurs_once_scores_like_an_unknown_word():
    """A translation that is learned from one pair is too uncertain to be used."""
    rare_pair = (["Once"], ["Einmal"])
    unknown_word = "\u2028\r\0"
    translations = learn_word_translations([*generated_pairs(count=400), rare_pair])

    score = translations.score(["once"], ["v1"])

    assert score == translations.score([unknown_word], ["v1"])
    source_vocabulary, _ = translations.vocabularies
    assert "once" not in source_vocabulary
    # The empty string is the entry of all rare and unknown words.
    assert source_vocabulary[""] == RARE


def test_a_pair_with_an_empty_side_has_the_lowest_score():
    """A check that drops pairs with low scores must drop these.

    In the generated pairs, v0 translates w0, and so on, up to v59 and w59.
    """
    translations = learn_word_translations(generated_pairs(count=400))

    lowest_score = translations.score([], ["v1"])

    assert translations.score(["w1"], []) == lowest_score
    assert translations.score([], []) == lowest_score
    # Sentences that repeat one word, of which 59 are unrelated.
    for number in range(60):
        assert translations.score(["w1"] * 50, [f"v{number}"] * 50) >= lowest_score


@pytest.mark.parametrize(
    ("total", "sample_size"), [(10, 3), (1000, 7), (5, 5), (3, 9), (100_001, 100_000)]
)
def test_a_sample_is_spread_evenly_over_all_items(total, sample_size):
    """`is_sampled` tells whether the item with this index is in the sample.

    The distances between sampled items must differ by at most 1, as in every third line of a text.
    """
    indices = [index for index in range(total) if is_sampled(index, total, sample_size)]

    assert len(indices) == min(total, sample_size)
    gaps = {following - index for index, following in pairwise(indices)}
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


def test_a_text_with_too_many_links_is_sampled(monkeypatch):
    """Each source word of a pair is linked with each target word; links fill the memory.

    Here only a quarter of the links is allowed, so that about a quarter of the text must be learned
    from. In the generated pairs, v0 translates w0, and so on.
    """
    pairs = generated_pairs(count=400)
    link_count = sum(len(source) * len(target) for source, target in pairs)
    monkeypatch.setattr(word_translation, "MAX_LINKS", link_count // 4)

    translations = learn_word_translations(pairs)

    # prior_share = 20 / (count + 20) for each source word. Solved for its count in the sample:
    word_counts = 20 / translations.forward.prior_share - 20
    words_in_text = len(list(chain.from_iterable(sources_of(pairs))))
    assert 0.2 < word_counts.sum() / words_in_text < 0.3
    # A quarter of the text still teaches frequent words.
    assert translations.score(["w1", "w2"], ["v2", "v1"]) > 1


EMPTY_SOURCE = ([], ["a"])
LONG_TARGET = (["a"], ["b"] * 101)
LONG_SOURCE = (["a"] * 101, ["b"])


def test_a_text_without_a_pair_of_1_to_100_tokens_is_refused():
    with pytest.raises(UserError, match=r"^no pair has 1 to 100 tokens on each side"):
        learn_word_translations([EMPTY_SOURCE, LONG_TARGET, LONG_SOURCE])


def test_pairs_with_empty_and_long_sides_are_left_out():
    translations = learn_word_translations([EMPTY_SOURCE, LONG_TARGET, LONG_SOURCE, (["a"], ["b"])])

    # The words of the last pair occur once, so that they are rare words.
    assert translations.score(["a"], ["b"]) < 1
