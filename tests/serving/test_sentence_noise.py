"""Noise in synthetic source sentences: words are dropped, replaced by a filler, and moved."""

from collections import Counter
from random import Random

import pytest

from bleuprint.config.noise import Noise
from bleuprint.serving.translation_noise import FILLER, add_noise, add_noise_to_sentence
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

WORDS = [str(number) for number in range(20)]


def measured_rates(noise, seed):
    """Add noise to the 20 words of WORDS 3,000 times, and measure how often it changed a word.

    Returns:
        The share of all words that were dropped, and the share of the other words that were
        replaced by the filler.
    """
    random = Random(seed)
    all_words = 0
    kept_words = 0
    fillers = 0
    for _ in range(3000):
        noisy_words = add_noise(WORDS, noise, random)
        all_words += len(WORDS)
        kept_words += len(noisy_words)
        fillers += noisy_words.count(FILLER)
    return 1 - kept_words / all_words, fillers / kept_words


def test_the_default_rates_are_those_of_edunov_et_al():
    """Edunov et al. (2018) drop 10% of the words, and replace 10% of the others by a filler."""
    drop_rate, blank_rate = measured_rates(Noise(), seed=1)

    # The tolerance is four standard deviations of a share of 60,000 words.
    assert drop_rate == pytest.approx(0.1, abs=0.005)
    assert blank_rate == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize(("drop", "blank"), [(0.3, 0.2), (0.05, 0.6)])
def test_words_are_dropped_and_replaced_at_the_rates_of_the_settings(drop, blank):
    drop_rate, blank_rate = measured_rates(Noise(drop=drop, blank=blank, shuffle=0), seed=3)

    # The tolerance is more than four standard deviations of a share of 40,000 words.
    assert drop_rate == pytest.approx(drop, abs=0.01)
    assert blank_rate == pytest.approx(blank, abs=0.01)


def count_moves(max_distance):
    """Shuffle the words of WORDS 1,000 times, and count by how many positions each word moved."""
    random = Random(2)
    noise = Noise(drop=0, blank=0, shuffle=max_distance)
    moves = Counter()
    for _ in range(1000):
        shuffled_words = add_noise(WORDS, noise, random)
        assert sorted(shuffled_words) == sorted(WORDS)
        for position, word in enumerate(shuffled_words):
            moves[int(word) - position] += 1
    return moves


@pytest.mark.parametrize("max_distance", [0, 1, 3])
def test_words_move_by_all_distances_up_to_the_maximum(max_distance):
    moves = count_moves(max_distance)

    assert set(moves) == set(range(-max_distance, max_distance + 1))


@pytest.mark.parametrize("max_distance", [0, 1, 3])
def test_words_move_to_the_left_as_often_as_to_the_right(max_distance):
    """A negative distance is a move to the left; compared are the largest distances."""
    moves = count_moves(max_distance)

    assert moves[max_distance] == pytest.approx(moves[-max_distance], rel=0.2)


@pytest.mark.parametrize("max_distance", [1, 3])
def test_words_move_by_the_maximum_distance_less_often_than_by_a_shorter_one(max_distance):
    moves = count_moves(max_distance)

    assert moves[max_distance] < moves[max_distance - 1]


def test_noise_moves_punctuation_like_words_and_creates_no_other_words():
    """If a moved comma were attached to a word, tokenizing again would give another word."""
    tokenizer = tokenizer_for("en", Tokenize())
    sentence = "The dog, which sleeps, is a good dog, and the cat is not."

    noisy_sentences = []
    noisy_words = set()
    for seed in range(50):
        noisy_sentence = add_noise_to_sentence(sentence, tokenizer, Noise(), Random(seed))
        noisy_sentences.append(noisy_sentence)
        noisy_words.update(tokenizer.tokenize(noisy_sentence))

    assert len(set(noisy_sentences)) > 45  # Nearly each of the 50 seeds gives another sentence.
    assert noisy_words == {FILLER, *tokenizer.tokenize(sentence)}


def test_an_empty_sentence_stays_empty():
    tokenizer = tokenizer_for("en", Tokenize())

    assert add_noise_to_sentence("", tokenizer, Noise(), Random(1)) == ""


def test_noise_adds_no_spaces_to_text_without_spaces():
    """Chinese is split into characters here, which are joined again after the noise."""
    tokenizer = tokenizer_for("zh", Tokenize("characters"))

    noisy_sentences = set()
    for seed in range(20):
        noisy_sentences.add(
            add_noise_to_sentence("我们去北京看朋友", tokenizer, Noise(shuffle=2), Random(seed))
        )

    assert len(noisy_sentences) > 15  # Nearly each of the 20 seeds gives another sentence.
    for sentence in noisy_sentences:
        assert " " not in sentence


def test_the_first_word_is_kept_if_all_words_would_be_dropped():
    """An empty source would remove the sentence pair from the training text."""
    assert add_noise(["a", "b"], Noise(drop=0.999, blank=0), Random(1)) == ["a"]


def test_noise_adds_no_words_to_an_empty_sentence():
    assert add_noise([], Noise(), Random(1)) == []
