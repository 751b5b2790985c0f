"""IBM Model 1 against NLTK's, and what holds for scores."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from bleuprint.corpus.alignment import word_translation
from bleuprint.corpus.alignment.word_translation import (
    ITERATIONS,
    RARE,
    is_sampled,
    learn_word_translations,
)
from bleuprint.runtime.errors import UserError

# No target word twice in a sentence: NLTK divides such a word's counts by their number.
TEXT = [
    ("the house is small", "das haus ist klein"),
    ("the house is big", "das haus ist groß"),
    ("a book", "ein buch"),
    ("the book is small", "das buch ist klein"),
    ("a small house is the house", "ein kleines haus ist das haus hier"),
    ("a big book is here", "hier ist ein groß kleines buch"),
    ("here is the house", "hier ist das haus"),
]
TOKENS = [(source.split(), target.split()) for source, target in TEXT]
UNREPEATED = [pair for pair in TOKENS if all(len(set(side)) == len(side) for side in pair)]


@pytest.mark.parametrize("chunk", [1 << 20, 7])
def test_probabilities_are_those_of_nltk(monkeypatch, chunk):
    from nltk.translate import AlignedSent, IBMModel1

    monkeypatch.setattr(word_translation, "MIN_COUNT", 1)
    monkeypatch.setattr(word_translation, "_CHUNK", chunk)
    monkeypatch.setattr(word_translation, "_PRIOR", 1e-12)
    table = learn_word_translations(UNREPEATED)
    for forward in (True, False):
        pairs = UNREPEATED if forward else [pair[::-1] for pair in UNREPEATED]
        aligned = [AlignedSent(target, source) for source, target in pairs]
        model = IBMModel1(aligned, ITERATIONS)
        given, words = ([*numbers] for numbers in table.vocabularies[:: 1 if forward else -1])
        counts = Counter(token for _, target in pairs for token in target)
        evidence = table.forward if forward else table.backward
        links = (evidence.linked if forward else evidence.linked.T).tocoo()
        for i, j, value in zip(*links.coords, links.data, strict=True):
            probability = value * counts[words[j]] / counts.total()
            expected = model.translation_table[words[j]][given[i]]
            assert probability == pytest.approx(expected, abs=1e-6)
        for word, value in zip(words[1:], evidence.null[1:], strict=True):
            expected = model.translation_table[word][None]
            assert value * counts[word] / counts.total() == pytest.approx(expected, abs=1e-6)
        assert len(given) == len({token for source, _ in pairs for token in source}) + 1


def sentences(pairs=400, words=60, seed=1):
    """Sentences of 3 to 12 words w7, and their translations v7, shuffled."""
    draw = random.Random(seed)
    for _ in range(pairs):
        ids = [int(words * draw.random() ** 2) for _ in range(draw.randint(3, 12))]
        yield [f"w{n}" for n in ids], [f"v{n}" for n in draw.sample(ids, len(ids))]


def test_translations_score_higher_than_others_whatever_their_lengths():
    text = list(sentences())
    table = learn_word_translations(text)
    for size in range(3, 13):
        pairs = [pair for pair in text if len(pair[0]) == size]
        good = [table.score(*pair) for pair in pairs]
        bad = [
            table.score(a[0], b[1])
            for a, b in pairwise(pairs)
            if not set(b[1]) & {f"v{word[1:]}" for word in a[0]}
        ]
        assert min(good) > 1 > 0 > max(bad, default=-1)


def test_the_sides_can_be_exchanged():
    table = learn_word_translations(sentences())
    exchanged = learn_word_translations(pair[::-1] for pair in sentences())
    for source, target in sentences(20):
        assert exchanged.score(target, source) == pytest.approx(table.score(source, target))


def test_case_does_not_matter_and_rare_words_are_one():
    table = learn_word_translations([*sentences(), (["Once"], ["Einmal"])])
    assert table.score(["W1", "w2"], ["v1", "V2"]) == table.score(["w1", "w2"], ["v1", "v2"])
    assert table.score(["once"], ["v1"]) == table.score(["\u2028\r\0"], ["v1"])
    assert table.vocabularies[0][""] == RARE and "once" not in table.vocabularies[0]


def test_an_empty_side_scores_lowest():
    table = learn_word_translations(sentences())
    lowest = table.score([], ["v1"])
    assert lowest == table.score(["w1"], []) == table.score([], [])
    assert all(table.score(["w1"] * 50, [f"v{n}"] * 50) >= lowest for n in range(60))


def test_items_are_drawn_evenly():
    for total, most in ((10, 3), (1000, 7), (5, 5), (3, 9), (100_001, 100_000)):
        drawn = [number for number in range(total) if is_sampled(number, total, most)]
        assert len(drawn) == min(total, most)
        gaps = {b - a for a, b in pairwise(drawn)}
        assert max(gaps, default=0) - min(gaps, default=0) <= 1


def test_a_long_text_is_drawn_from(monkeypatch):
    text = list(sentences())
    links = [len(source) * len(target) for source, target in text]
    monkeypatch.setattr(word_translation, "MAX_LINKS", sum(links) // 4)
    table = learn_word_translations(text)
    drawn = (20 / table.forward.prior_share - 20).sum()  # the counts of source words
    assert 0.2 < drawn / sum(len(source) for source, _ in text) < 0.3
    assert table.score(["w1", "w2"], ["v2", "v1"]) > 1


def test_a_text_without_a_pair_to_learn_from_is_refused():
    pairs = [([], ["a"]), (["a"], ["b"] * 101), (["a"] * 101, ["b"])]
    with pytest.raises(UserError, match=r"^no pair of 1 to 100 tokens a side to learn"):
        learn_word_translations(pairs)
    assert learn_word_translations([*pairs, (["a"], ["b"])]).score(["a"], ["b"]) < 1
