"""Words are unknown if the text that a system was trained on has them nowhere."""

import unicodedata
from collections import Counter
from types import SimpleNamespace

import pytest

from bleuprint.dataset.binarized import SetSize
from bleuprint.dataset.source_tags import SourceTags
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import Vocabulary
from bleuprint.serving import known_words
from bleuprint.serving.known_words import KnownWords, find_words


def by_characters(text):
    """The words of a text in a script with spaces, character by character."""
    return set("".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text).split())


def test_they_are_those_of_the_training_text(toy, translator):
    text = (toy / "data/tokens/toy/train.de").read_text(encoding="utf-8")
    expected, known = by_characters(text), KnownWords(translator.corpus)
    assert len(known) == len(expected) > 50
    assert known.unknown_words(sorted(expected)) == []
    # parts of words, words in another case, and joined
    one, other = sorted(expected)[:2]
    assert known.unknown_words([one, f"{one}{other}", one.upper(), "", "Ω"])[0] == f"{one}{other}"
    reversed_ = {word[::-1] for word in expected}
    assert {*known.unknown_words(reversed_)} == reversed_ - expected


def corpus_of(root, text, **counts):
    """A corpus with this training text and a vocabulary of these words."""
    segmentation = Segmentation("en", Vocabulary.from_counts(Counter(counts)), None)
    (root / "data/tokens/own").mkdir(parents=True)
    (root / "data/tokens/own/train.en").write_text(text)
    return SimpleNamespace(
        folder=root / "data/binary/own",
        source="en",
        segmentation=lambda _: segmentation,
        sets={"train": SetSize(2, 9, 9, 1)},
        source_words=SourceTags({"<2de>": "de"}, lambda: segmentation).words,
    )


def test_a_word_that_text_or_vocabulary_lack_is_unknown(tmp_path, monkeypatch):
    text = "<2de> the rare dog\n<2de> the dog the\n"
    corpus = corpus_of(tmp_path, text, the=3, dog=2, cow=1)
    known = KnownWords(corpus)
    assert len(known) == 3  # and no tag
    given = ["dog", "rare", "the", "cow", "cat", "unk"]
    assert known.unknown_words(given) == ["rare", "cow", "cat", "unk"]
    assert str(known) == "2 pairs of own, with 3 different source words"
    # a large text is not read
    monkeypatch.setattr(known_words, "_MAX_TOKENS", 8)
    known = KnownWords(corpus)
    assert known.unknown_words(given) == ["rare", "cat", "unk"]
    assert str(known) == "2 pairs of own"


def test_a_part_of_a_known_token_is_known(tmp_path):
    """Though the vocabulary lacks it: of words, that of 10:30 has no 10."""
    corpus = corpus_of(tmp_path, "<2de> at 10:30\n", **{"10:30": 3, "at": 2})
    # of the second, 30 is known, too
    assert KnownWords(corpus).unknown_words(["at", "10:30", "11:30"]) == ["11"]


def test_words_of_any_tokenizer():
    plain = ["“Don't", "stop!”", "3.5", "naïve", "e\u0301té", "…", "-"]
    assert find_words(plain) == ["Don", "t", "stop", "3", "5", "naïve", "e\u0301té"]
    assert find_words(["犬が、ไป", "🙂€x"]) == [*"犬がไป", "🙂", "€", "x"]


@pytest.mark.parametrize(
    ("unknown", "count", "kind", "said"),
    [
        (
            {"xo": 2, "b" * 50: 3},
            10,
            "note",
            f"5 of 10 words were not in the training text: {'b' * 40}…, xo (",
        ),
        ({f"w{i}": 1 for i in range(30_000)}, 90_000, "note", "w9 and 29,990 others ("),
        ({f"w{i}": 1 for i in range(11)}, 22, "note", "w8, w9 and 1 other ("),
        ({f"w{i}": 1 for i in range(10)}, 20, "note", "w8, w9 ("),
        ({"b" * 40: 1, "c" * 41: 1}, 4, "note", f": {'b' * 40}, {'c' * 40}… ("),
        ({"xo": 2}, 3, "warning", "): the translations are guesses; is it de? For other text: "),
    ],
)
def test_a_text_of_any_length_is_one_short_line(translator, unknown, count, kind, said):
    line, of_kind = translator.known_words.note(Counter(unknown), count)
    assert of_kind == kind and said in line and len(line) < 400
    pairs = translator.corpus.sets["train"].pairs
    assert (
        f"({pairs:,} pairs of toy, with {len(translator.known_words):,} different source words)"
        in line
    )
