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
    """The probability of a target word, given a source word, by IBM Model 1 in both programs."""
    source_vocabulary, target_vocabulary = translations.vocabularies

    assert_equals_nltk(
        ratios=translations.forward,
        linked=translations.forward.linked,
        conditions=list(source_vocabulary),
        words=list(target_vocabulary),
        pairs=ENGLISH_GERMAN_PAIRS,
    )


def test_probabilities_of_source_words_equal_those_of_nltk(translations):
    """The probability of a source word, given a target word, by IBM Model 1 in both programs."""
    source_vocabulary, target_vocabulary = translations.vocabularies

    # The matrix of linked words has a row for each source word. The probabilities have a target
    # word as their condition, so the matrix is transposed.
    assert_equals_nltk(
        ratios=translations.backward,
        linked=translations.backward.linked.T,
        conditions=list(target_vocabulary),
        words=list(source_vocabulary),
        pairs=GERMAN_ENGLISH_PAIRS,
    )


def test_the_vocabularies_contain_all_words_and_an_entry_for_rare_words(translations):
    english_words = set()
    german_words = set()
    for english, german in ENGLISH_GERMAN_PAIRS:
        english_words.update(english)
        german_words.update(german)

    source_vocabulary, target_vocabulary = translations.vocabularies

    assert len(source_vocabulary) == len(english_words) + 1
    assert len(target_vocabulary) == len(german_words) + 1


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
    """Each sentence is compared with its own translation, and with the next sentence's."""
    pairs = generated_pairs()
    translations = learn_word_translations(pairs)
    pairs_of_length = [pair for pair in pairs if len(pair[0]) == length]

    scores = [translations.score(source, target) for source, target in pairs_of_length]
    unrelated_scores = []
    for (source, target), (_, next_target) in pairwise(pairs_of_length):
        if set(target).isdisjoint(next_target):
            unrelated_scores.append(translations.score(source, next_target))

    assert min(scores) > 1
    assert max(unrelated_scores, default=-1) < 0


def test_a_pair_has_the_same_score_if_both_sides_are_swapped():
    pairs = generated_pairs()
    swapped_pairs = list(zip(targets_of(pairs), sources_of(pairs), strict=True))

    translations = learn_word_translations(pairs)
    swapped_translations = learn_word_translations(swapped_pairs)

    for source, target in generated_pairs(20):
        score = translations.score(source, target)
        assert swapped_translations.score(target, source) == pytest.approx(score)


def test_letter_case_does_not_change_the_score():
    """The text has the words w0, w1 and so on, whose translations are v0, v1 and so on."""
    translations = learn_word_translations(generated_pairs())

    score = translations.score(["w1", "w2"], ["v1", "v2"])

    assert translations.score(["W1", "w2"], ["v1", "V2"]) == score


def test_a_word_that_occurs_once_scores_like_an_unknown_word():
    """Translations that are learned from one pair are too uncertain."""
    rare_pair = (["Once"], ["Einmal"])
    translations = learn_word_translations([*generated_pairs(), rare_pair])

    assert translations.score(["once"], ["v1"]) == translations.score(["\u2028\r\0"], ["v1"])
    source_vocabulary, _ = translations.vocabularies
    assert source_vocabulary[""] == RARE
    assert "once" not in source_vocabulary


def test_a_pair_with_an_empty_side_has_the_lowest_score():
    translations = learn_word_translations(generated_pairs())

    lowest_score = translations.score([], ["v1"])

    assert translations.score(["w1"], []) == lowest_score
    assert translations.score([], []) == lowest_score
    for number in range(60):
        assert translations.score(["w1"] * 50, [f"v{number}"] * 50) >= lowest_score


@pytest.mark.parametrize(
    ("total", "sample_size"), [(10, 3), (1000, 7), (5, 5), (3, 9), (100_001, 100_000)]
)
def test_a_sample_is_spread_evenly_over_all_items(total, sample_size):
    indices = [index for index in range(total) if is_sampled(index, total, sample_size)]

    assert len(indices) == min(total, sample_size)
    gaps = {following - index for index, following in pairwise(indices)}
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


def test_a_text_with_too_many_links_is_sampled(monkeypatch):
    """Each source word of a pair is linked with each target word, which takes memory."""
    pairs = generated_pairs()
    link_count = sum(len(source) * len(target) for source, target in pairs)
    monkeypatch.setattr(word_translation, "MAX_LINKS", link_count // 4)

    translations = learn_word_translations(pairs)

    # The share of the prior, 20 / (count + 20), tells how often a source word was counted.
    word_counts = 20 / translations.forward.prior_share - 20
    words_in_text = len(list(chain.from_iterable(sources_of(pairs))))
    assert 0.2 < word_counts.sum() / words_in_text < 0.3
    # A quarter of the text still teaches frequent words.
    assert translations.score(["w1", "w2"], ["v2", "v1"]) > 1


EMPTY_SOURCE = ([], ["a"])
LONG_TARGET = (["a"], ["b"] * 101)
LONG_SOURCE = (["a"] * 101, ["b"])


def test_a_text_without_a_pair_of_1_to_100_tokens_is_refused():
    with pytest.raises(UserError, match=r"^no pair of 1 to 100 tokens a side to learn"):
        learn_word_translations([EMPTY_SOURCE, LONG_TARGET, LONG_SOURCE])


def test_pairs_with_empty_and_long_sides_are_left_out():
    translations = learn_word_translations([EMPTY_SOURCE, LONG_TARGET, LONG_SOURCE, (["a"], ["b"])])

    # The words of the last pair occur once, so that they are rare words.
    assert translations.score(["a"], ["b"]) < 1
