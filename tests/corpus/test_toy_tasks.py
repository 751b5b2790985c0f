"""The toy corpora: the copy task of The Annotated Transformer, and a sentence to translate."""

import hashlib
from collections import Counter

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.toy_tasks import COPY_SPLITS, copy_task, toy_sentences
from bleuprint.text.parallel import TextFolder
from corpora import sources_of, targets_of
from root import ROOT


@pytest.mark.parametrize(("split", "size"), [("train", 32_000), ("valid", 200), ("test", 50)])
def test_a_line_of_the_copy_task_has_ten_symbols_of_which_the_first_is_1(split, size):
    """In the copy task of the Annotated Transformer, source and target are the same symbols."""
    lines = copy_task(split)

    assert len(lines) == size
    for line in lines:
        symbols = line.split()
        assert line.startswith("1 ")
        assert len(symbols) == 10


def test_the_symbols_of_the_copy_task_after_the_first_one_are_equally_frequent():
    """Each of 32,000 lines has nine symbols after the first one, drawn from 1 to 10."""
    counts = Counter()
    for line in copy_task("train"):
        counts.update(line.split()[1:])

    assert set(counts) == {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}
    draws = 32_000 * 9
    # The standard deviation of a share is (0.1 * 0.9 / draws) ** 0.5 = 0.0006; five are 0.003.
    for count in counts.values():
        assert abs(count / draws - 0.1) < 0.003


def test_no_line_of_the_copy_task_is_in_two_splits():
    """A test line in the training text would make the task too easy."""
    train_lines = set(copy_task("train"))
    valid_lines = set(copy_task("valid"))
    test_lines = set(copy_task("test"))

    assert len(test_lines) == 50
    assert train_lines.isdisjoint(valid_lines | test_lines)
    assert valid_lines.isdisjoint(test_lines)


def test_the_copy_task_has_the_same_bytes_as_in_published_results():
    """The committed results of this task were computed from text with this SHA-256."""
    lines = []
    for split in COPY_SPLITS:
        lines += copy_task(split)

    sha256 = hashlib.sha256("\n".join(lines).encode()).hexdigest()

    assert sha256.startswith("7f30f52db53d17fe")


def toy_pairs(text):
    """Return the German and English sentences of a toy corpus: `sentence` or `sentences`."""
    return list(zip(toy_sentences(text, "de"), toy_sentences(text, "en"), strict=True))


def test_the_54_toy_sentences_differ_in_both_languages():
    """`toy_pairs("sentences")` is a generated task of short German-English sentences."""
    pairs = toy_pairs("sentences")

    assert len(pairs) == 54
    assert len(set(sources_of(pairs))) == 54
    assert len(set(targets_of(pairs))) == 54


def test_each_word_of_the_toy_sentences_has_one_translation():
    """The nth German word of each sentence is translated by its nth English word.

    Eleven different pairs with eleven words on each side mean that no word has two translations.
    """
    word_pairs = set()
    for german, english in toy_pairs("sentences"):
        word_pairs.update(zip(german.split(), english.split(), strict=True))

    assert len(word_pairs) == 11
    assert len(set(sources_of(word_pairs))) == 11
    assert len(set(targets_of(word_pairs))) == 11


def test_the_single_toy_sentence_without_its_padding_is_one_of_the_54():
    """In the notebook from which the sentence comes, the word P is padding."""
    pairs = toy_pairs("sentence")

    assert len(pairs) == 1
    german, english = pairs[0]
    sentence_without_padding = german.removesuffix(" P")
    assert (sentence_without_padding, english) in toy_pairs("sentences")


def download_recipe(tmp_path, recipe):
    """Download the only corpus of a recipe, without access to the network, and return its text."""
    corpora = load_settings(ROOT / "recipes" / f"{recipe}.yaml").corpora
    name, corpus = next(iter(corpora.items()))
    raw = TextFolder(tmp_path / "raw", corpus.source, corpus.target)
    source = Downloads(str(tmp_path), tmp_path, None)
    download_corpus(name, corpus.files, raw, tmp_path / "filter_stats.json", source)
    return raw


def test_the_recipe_copy_downloads_the_copy_task(tmp_path):
    """In the copy task, source and target are the same line."""
    raw = download_recipe(tmp_path, "copy")

    for set_name in raw.set_names():
        split = set_name.partition(".")[0]  # The set test.NAME is the split test.
        lines = copy_task(split)
        assert list(raw.pairs(set_name)) == list(zip(lines, lines, strict=True))


def test_the_recipe_toy_sentence_downloads_one_sentence_for_each_set(tmp_path):
    raw = download_recipe(tmp_path, "toy-sentence")

    for set_name in raw.set_names():
        assert list(raw.pairs(set_name)) == [("ich mochte ein bier P", "i want a beer")]
