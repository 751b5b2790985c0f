"""The noise of synthetic sources has the rates of Edunov et al. 2018."""

from collections import Counter
from random import Random

import pytest

from bleuprint.config.synthetic import Noise
from bleuprint.serving.back_translate import FILLER, add_noise, add_noise_to_sentence
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

WORDS = [str(i) for i in range(20)]


def test_the_rates_are_those_of_the_paper():
    random = Random(1)
    results = [add_noise(WORDS, Noise(), random) for _ in range(3000)]
    total = len(WORDS) * len(results)
    dropped = total - sum(map(len, results))
    blanked = sum(result.count(FILLER) for result in results)
    # four standard deviations of a share of 60,000
    assert dropped / total == pytest.approx(0.1, abs=0.005)
    assert blanked / (total - dropped) == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize(("drop", "blank"), [(0.3, 0.2), (0.05, 0.6)])
def test_the_rates_are_those_of_the_settings(drop, blank):
    random = Random(3)
    noise = Noise(drop=drop, blank=blank, shuffle=0)
    results = [add_noise(WORDS, noise, random) for _ in range(3000)]
    total = len(WORDS) * len(results)
    kept = sum(map(len, results))
    blanked = sum(result.count(FILLER) for result in results)
    # more than four standard deviations of a share of 40,000
    assert 1 - kept / total == pytest.approx(drop, abs=0.01)
    assert blanked / kept == pytest.approx(blank, abs=0.01)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_words_move_by_at_most_so_many_positions(most):
    random, moves = Random(2), Counter()
    for _ in range(1000):
        result = add_noise(WORDS, Noise(drop=0, blank=0, shuffle=most), random)
        assert sorted(result) == sorted(WORDS)
        moves.update(int(word) - i for i, word in enumerate(result))
    assert set(moves) == set(range(-most, most + 1))
    # to the left as often as to the right, and far less often than near
    assert moves[most] == pytest.approx(moves[-most], rel=0.2)
    assert most == 0 or moves[most] < moves[most - 1]


def test_marks_are_words_and_stay_words_wherever_they_are():
    tokenizer = tokenizer_for("en", Tokenize())
    line = "The dog, which sleeps, is a good dog, and the cat is not."
    found = [add_noise_to_sentence(line, tokenizer, Noise(), Random(i)) for i in range(50)]
    words = {word for each in found for word in tokenizer.tokenize(each)}
    assert len(set(found)) > 45 and words == {FILLER, *tokenizer.tokenize(line)}
    assert add_noise_to_sentence("", tokenizer, Noise(), Random(1)) == ""


def test_text_without_spaces_gets_none():
    given = "我们去北京看朋友", tokenizer_for("zh", Tokenize("characters")), Noise(shuffle=2)
    found = [add_noise_to_sentence(*given, Random(i)) for i in range(20)]
    assert len(set(found)) > 15 and not any(" " in each for each in found)


def test_one_word_is_left():
    assert add_noise(["a", "b"], Noise(drop=0.999, blank=0), Random(1)) == ["a"]
    assert add_noise([], Noise(), Random(1)) == []
