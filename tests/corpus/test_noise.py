"""The noise of made sources has the rates of Edunov et al. 2018."""

from collections import Counter
from random import Random

import pytest

from bleuprint.config.made_texts import Noise
from bleuprint.corpus.noise import FILLER, NoisySentences, noisy
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

WORDS = [str(i) for i in range(20)]


def test_the_rates_are_those_of_the_paper():
    random = Random(1)
    results = [noisy(WORDS, Noise(), random) for _ in range(3000)]
    total = len(WORDS) * len(results)
    dropped = total - sum(map(len, results))
    blanked = sum(result.count(FILLER) for result in results)
    # four standard deviations of a share of 60,000
    assert dropped / total == pytest.approx(0.1, abs=0.005)
    assert blanked / (total - dropped) == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_words_move_by_at_most_so_many_positions(most):
    random, moves = Random(2), Counter()
    for _ in range(1000):
        result = noisy(WORDS, Noise(drop=0, blank=0, shuffle=most), random)
        assert sorted(result) == sorted(WORDS)
        moves.update(int(word) - i for i, word in enumerate(result))
    assert set(moves) == set(range(-most, most + 1))
    # to the left as often as to the right, and far less often than near
    assert moves[most] == pytest.approx(moves[-most], rel=0.2)
    assert most == 0 or moves[most] < moves[most - 1]


def test_a_line_has_its_own_noise():
    tokenizer = tokenizer_for("en", Tokenize())
    noise = NoisySentences(Noise(), tokenizer, "1 text")
    line = "The dog, which sleeps, is a good dog, and the cat is not."
    again = [NoisySentences(Noise(), tokenizer, "1 text")(line, i) for i in reversed(range(50))]
    found = [noise(line, i) for i in range(50)]
    assert found == again[::-1] and len(set(found)) > 45
    assert NoisySentences(Noise(), tokenizer, "2 text")(line, 0) != found[0]
    # marks are words, too; they stay words wherever they are
    words = {word for each in found for word in tokenizer.tokenize(each)}
    assert words == {FILLER, *tokenizer.tokenize(line)}
    assert noise("", 3) == ""


def test_text_without_spaces_gets_none():
    noise = NoisySentences(Noise(shuffle=2), tokenizer_for("zh", Tokenize("characters")), "1")
    found = [noise("我们去北京看朋友", line) for line in range(20)]
    assert len(set(found)) > 15 and not any(" " in each for each in found)


def test_one_word_is_left():
    assert noisy(["a", "b"], Noise(drop=0.999, blank=0), Random(1)) == ["a"]
    assert noisy([], Noise(), Random(1)) == []
