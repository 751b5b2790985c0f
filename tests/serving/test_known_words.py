"""A word to translate is unknown if the training text of the system does not contain it."""

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


def words_by_characters(text):
    """Return the words of a text in a script with spaces, found character by character."""
    spaced_text = ""
    for character in text:
        is_in_word = unicodedata.category(character)[0] in "LMN"  # letter, mark or number
        spaced_text += character if is_in_word else " "
    return set(spaced_text.split())


@pytest.fixture
def training_words(toy):
    """Return the words of the toy project's training text."""
    return words_by_characters((toy / "data/tokens/toy/train.de").read_text(encoding="utf-8"))


def test_all_words_of_the_training_text_are_known(translator, training_words):
    """The reference, `training_words`, is found character by character instead of by a regex."""
    known = KnownWords(translator.corpus)

    assert len(training_words) > 50
    assert len(known) == len(training_words)
    assert known.unknown_words(sorted(training_words)) == []


def test_two_known_words_joined_are_an_unknown_word(translator, training_words):
    known = KnownWords(translator.corpus)
    first_word, second_word = sorted(training_words)[:2]
    joined = first_word + second_word

    unknown = known.unknown_words([first_word, joined, first_word.upper(), "", "Ω"])

    assert unknown[0] == joined  # The first word is known, so it is not listed.


def test_known_words_spelled_backwards_are_unknown(translator, training_words):
    known = KnownWords(translator.corpus)
    reversed_words = {word[::-1] for word in training_words}

    assert set(known.unknown_words(reversed_words)) == reversed_words - training_words


def stand_in_corpus(folder, training_text, word_counts):
    """Return the parts of a corpus from which known words are read.

    Its source sentences begin with a tag for the target language, `<2de>`.

    Args:
        folder: The project.
        training_text: The tokenized source side of the training text, of two lines.
        word_counts: The words of the vocabulary, and how often each occurs.
    """
    vocabulary = Vocabulary.from_counts(Counter(word_counts))
    segmentation = Segmentation("en", vocabulary, None)
    (folder / "data/tokens/own").mkdir(parents=True)
    (folder / "data/tokens/own/train.en").write_text(training_text)
    return SimpleNamespace(
        folder=folder / "data/binary/own",
        source="en",
        segmentation=lambda _: segmentation,
        sets={"train": SetSize(pairs=2, source_tokens=9, target_tokens=9, unknown=1)},
        words_without_tag=SourceTags({"<2de>": "de"}, lambda: segmentation).words_without_tag,
    )


def test_a_word_that_the_training_text_or_the_vocabulary_lacks_is_unknown(tmp_path):
    """`rare` is in the text alone, `cow` in the vocabulary alone, `cat` and `unk` in neither.

    The model has learned only words that are in both.
    """
    text = "<2de> the rare dog\n<2de> the dog the\n"
    known = KnownWords(stand_in_corpus(tmp_path, text, {"the": 3, "dog": 2, "cow": 1}))

    unknown = known.unknown_words(["dog", "rare", "the", "cow", "cat", "unk"])

    assert unknown == ["rare", "cow", "cat", "unk"]


def test_known_words_are_counted_without_the_language_tag(tmp_path):
    text = "<2de> the rare dog\n<2de> the dog the\n"
    known = KnownWords(stand_in_corpus(tmp_path, text, {"the": 3, "dog": 2, "cow": 1}))

    assert len(known) == 3  # the, rare and dog, without <2de>
    assert str(known) == "2 pairs of own, with 3 different source words"


def test_the_words_of_a_very_large_training_text_are_not_read(tmp_path, monkeypatch):
    """Reading them would take too long for a command: then the vocabulary alone decides.

    `cow` is in the vocabulary and counts as known, although the text lacks it.
    """
    text = "<2de> the rare dog\n<2de> the dog the\n"
    corpus = stand_in_corpus(tmp_path, text, {"the": 3, "dog": 2, "cow": 1})
    monkeypatch.setattr(known_words, "_MAX_TOKENS", corpus.sets["train"].source_tokens - 1)

    known = KnownWords(corpus)

    assert known.unknown_words(["dog", "rare", "the", "cow", "cat", "unk"]) == [
        "rare",
        "cat",
        "unk",
    ]
    assert str(known) == "2 pairs of own"


def test_a_part_of_a_known_token_is_known(tmp_path):
    """A tokenizer may join several words in one token, and the vocabulary contains the token."""
    corpus = stand_in_corpus(tmp_path, "<2de> at 10:30\n", {"10:30": 3, "at": 2})

    unknown = KnownWords(corpus).unknown_words(["at", "10:30", "11:30"])

    assert unknown == ["11"]  # 30 is known from 10:30.


def test_punctuation_separates_words():
    """Also inside a token, such as the apostrophe in Don't; an accent (U+0301) does not."""
    tokens = ["“Don't", "stop!”", "3.5", "naïve", "e\u0301té", "…", "-"]

    assert find_words(tokens) == ["Don", "t", "stop", "3", "5", "naïve", "e\u0301té"]


def test_each_character_of_scripts_without_spaces_and_each_symbol_is_a_word():
    """Japanese and Thai are written without spaces, so their words are unknown to this function."""
    assert find_words(["犬が、ไป", "🙂€x"]) == ["犬", "が", "ไ", "ป", "🙂", "€", "x"]


def words_once(count):
    """Return so many words, w0, w1, ..., each of which occurs once."""
    word_counts = {}
    for number in range(count):
        word_counts[f"w{number}"] = 1
    return word_counts


@pytest.mark.parametrize(
    ("unknown_counts", "word_count", "expected_kind", "expected_part"),
    [
        pytest.param(
            {"xo": 2, "b" * 50: 3},
            10,
            "note",
            f"5 of 10 words were not in the training text: {'b' * 40}…, xo (",
            id="a long word is cut",
        ),
        pytest.param(
            words_once(30_000), 90_000, "note", "w9 and 29,990 others (", id="ten are named"
        ),
        pytest.param(words_once(11), 22, "note", "w8, w9 and 1 other (", id="one is not named"),
        pytest.param(words_once(10), 20, "note", "w8, w9 (", id="all are named"),
        pytest.param(
            {"b" * 40: 1, "c" * 41: 1},
            4,
            "note",
            f": {'b' * 40}, {'c' * 40}… (",
            id="40 characters are shown",
        ),
        pytest.param(
            {"xo": 2},
            3,
            "warning",
            "). The translations are guesses. Is it de? For other text: ",
            id="more than half is a warning",
        ),
    ],
)
def test_unknown_words_are_reported_in_one_short_line(
    translator, unknown_counts, word_count, expected_kind, expected_part
):
    """The message names at most ten of the words, each with at most 40 characters.

    Each case gives the number of times that each unknown word occurs, and the number of all words
    in the text to translate.
    """
    message, kind = translator.known_words.note(Counter(unknown_counts), word_count)

    assert kind == expected_kind
    assert expected_part in message
    assert len(message) < 400
    pairs = translator.corpus.sets["train"].pairs
    words = len(translator.known_words)
    assert f"({pairs:,} pairs of toy, with {words:,} different source words)" in message
