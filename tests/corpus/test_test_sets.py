"""The stage test_stats describes test sets by lengths and by word counts of the training text."""

from dataclasses import replace

import pytest

import result_trees as trees
from bleuprint.config import paths
from bleuprint.config.paths import corpus_folder
from bleuprint.corpus.set_findings import Overlap, SetFindings
from bleuprint.corpus.test_sets import (
    SetDescription,
    describe_test_sets,
    names_of_test_sets,
    read_set_description,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.text.parallel import TextFolder
from corpora import file_names, phrasebook_sentences


@pytest.fixture
def settings(tmp_path):
    """The settings of a project in tmp_path: an English-German corpus with the test set news.

    The test set has three sentences, and the tokenized training text five.
    """
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("news",)})
    split = corpus_folder("c-en-de", "split", tmp_path)
    trees.write_lines(split / "test.news.en", ["One two.", "", "Three!"])
    trees.write_lines(split / "test.news.de", ["Eins zwei.", "Eins eins", "Drei!"])
    tokens = corpus_folder("c-en-de", "tokens", tmp_path)
    trees.write_lines(tokens / "test.news.en", ["One two .", "", "Three !"])
    trees.write_lines(tokens / "test.news.de", ["Eins zwei .", "Eins eins", "Drei !"])
    trees.write_lines(tokens / "train.en", ["x", "x", "x", "x", "Eins"])
    trees.write_lines(tokens / "train.de", ["Eins eins .", "eins eins", "", "zweite .", "vier ."])
    return settings


def test_a_description_contains_lengths_tokens_and_their_counts_in_the_training_text(
    settings, tmp_path
):
    """The report uses them to score sentences by length, and words by their training frequency."""
    tokens = corpus_folder("c-en-de", "tokens", tmp_path)
    trees.write_lines(tokens / "test.news.en", ["One two .", "", "Three !"])
    trees.write_lines(tokens / "test.news.de", ["Eins zwei .", "Eins eins", "Drei !"])
    # Only the target side is counted: Eins in the source does not count.
    trees.write_lines(tokens / "train.en", ["x", "x", "x", "x", "Eins"])
    trees.write_lines(tokens / "train.de", ["Eins eins .", "eins eins", "", "zweite .", "vier ."])

    describe_test_sets("c-en-de", settings.corpus("c-en-de"), tmp_path)

    descriptions = corpus_folder("c-en-de", "test_stats", tmp_path)
    assert read_set_description(descriptions, "news") == SetDescription(
        source_tokens=[3, 0, 2],
        reference_tokens=["Eins zwei .", "Eins eins", "Drei !"],
        training_counts={"Eins": 1, "zwei": 0, ".": 3, "eins": 3, "Drei": 0, "!": 0},
        documents=None,
    )


def test_each_test_set_gets_a_description_with_the_counts_of_its_own_words(settings, tmp_path):
    """The target side of the training text contains "eins" three times, and "vier" once.

    The test set `news` is there before; it does not contain "vier".
    """
    for stage in ("split", "tokens"):
        for language in ("en", "de"):
            path = corpus_folder("c-en-de", stage, tmp_path) / f"test.more.{language}"
            trees.write_lines(path, ["eins vier"])

    describe_test_sets("c-en-de", settings.corpus("c-en-de"), tmp_path)

    descriptions = corpus_folder("c-en-de", "test_stats", tmp_path)
    assert file_names(descriptions) == ["more.json", "news.json"]
    assert read_json(descriptions / "more.json")["training_counts"] == {"eins": 3, "vier": 1}
    assert "vier" not in read_json(descriptions / "news.json")["training_counts"]


def test_a_description_has_no_word_counts_if_tokens_are_characters(settings, tmp_path):
    """Counts of characters in the training text say nothing about rare words."""
    corpus = settings.corpus("c-en-de")
    corpus = replace(corpus, tokenize=replace(corpus.tokenize, name="characters"))

    describe_test_sets("c-en-de", corpus, tmp_path)

    descriptions = corpus_folder("c-en-de", "test_stats", tmp_path)
    assert read_set_description(descriptions, "news").training_counts is None


def test_test_sets_have_the_order_of_the_settings_and_a_drawn_one_is_last(tmp_path):
    """The settings list zeta and alpha; the stage split has drawn a further test set."""
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("zeta", "alpha")})
    trees.write_texts(tmp_path, settings)
    texts = TextFolder(tmp_path / "data" / "split" / "c-en-de", "en", "de")
    for path in texts.files("test.drawn"):
        trees.write_lines(path, ["one"])

    assert names_of_test_sets(settings.corpus("c-en-de"), texts) == ["zeta", "alpha", "drawn"]


def test_a_test_set_of_the_settings_that_is_missing_is_an_error(tmp_path):
    """The settings list the test sets zeta and alpha; the English file of alpha is deleted."""
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("zeta", "alpha")})
    trees.write_texts(tmp_path, settings)
    texts = TextFolder(tmp_path / "data" / "split" / "c-en-de", "en", "de")
    english_path, _ = texts.files("test.alpha")
    english_path.unlink()

    with pytest.raises(UserError, match=r"split/c-en-de/test\.alpha\.en: no such file"):
        names_of_test_sets(settings.corpus("c-en-de"), texts)


def test_a_missing_training_text_is_an_error_that_leaves_no_output(settings, tmp_path):
    """The counts of words need the target side of the training text, train.de."""
    (corpus_folder("c-en-de", "tokens", tmp_path) / "train.de").unlink()

    with pytest.raises(UserError, match=r"tokens/c-en-de/train\.de: no such file"):
        describe_test_sets("c-en-de", settings.corpus("c-en-de"), tmp_path)

    assert not corpus_folder("c-en-de", "test_stats", tmp_path).exists()


def test_sides_with_different_numbers_of_lines_are_an_error_that_leaves_no_output(
    settings, tmp_path
):
    """The target side of the test set has three lines, the source side only two."""
    english_path = corpus_folder("c-en-de", "tokens", tmp_path) / "test.news.en"
    trees.write_lines(english_path, ["One two .", "Three !"])

    with pytest.raises(UserError, match="has 2 lines and"):
        describe_test_sets("c-en-de", settings.corpus("c-en-de"), tmp_path)

    assert not corpus_folder("c-en-de", "test_stats", tmp_path).exists()


@pytest.fixture
def findings(settings, tmp_path):
    """The findings on a test set of 300 sentences whose targets are one line early.

    The validation set contains 30 of the test set's sources.
    """
    english = phrasebook_sentences("en", 300)
    german = phrasebook_sentences("de", 300)
    early_german = [*german[1:], german[0]]
    split = corpus_folder("c-en-de", "split", tmp_path)
    tokens = corpus_folder("c-en-de", "tokens", tmp_path)
    downloaded = paths.download_folder("c-en-de", tmp_path)
    for folder in (split, tokens, downloaded):
        trees.write_lines(folder / "test.news.en", english)
        trees.write_lines(folder / "test.news.de", early_german)
        trees.write_lines(folder / "train.en", english)
        trees.write_lines(folder / "train.de", german)
    trees.write_lines(split / "valid.en", english[:30] + ["other"] * 20)
    trees.write_lines(split / "valid.de", ["x"] * 50)
    describe_test_sets("c-en-de", settings.corpus("c-en-de"), tmp_path)
    return SetFindings.read(corpus_folder("c-en-de", "test_stats", tmp_path))


def test_findings_contain_the_lines_of_a_test_set_that_do_not_fit(findings):
    """The 300 targets of the test set `news` are all one line too early: offset -1."""
    assert list(findings.misfits) == ["test.news"]
    misfits = findings.misfits["test.news"]
    assert len(misfits) == 1
    assert misfits[0].offset == -1
    assert misfits[0].last >= 295


def test_findings_contain_the_sentences_that_two_sets_share(findings):
    """Of the 300 sources of the test set news, 30 are in the validation set."""
    assert findings.overlaps == (Overlap(test="news", other="valid", shared=30, lines=300),)
