"""Descriptions of test sets: lengths, and counts worked by hand."""

import dataclasses

import pytest

import result_trees as trees
from bleuprint.config import paths
from bleuprint.config.paths import corpus_folder
from bleuprint.corpus.phrasebook import sentences
from bleuprint.corpus.set_findings import Overlap, SetFindings
from bleuprint.corpus.test_sets import (
    SetDescription,
    describe_test_sets,
    names_of_test_sets,
    read_set_description,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.text.parallel import TextFolder


@pytest.fixture
def made(tmp_path):
    """One corpus with a test set of three lines, and five of training."""
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("news",)})
    split, tokens = (corpus_folder("c-en-de", stage, tmp_path) for stage in ("split", "tokens"))
    trees.write_lines(split / "test.news.en", ["One two.", "", "Three!"])
    trees.write_lines(split / "test.news.de", ["Eins zwei.", "Eins eins", "Drei!"])
    trees.write_lines(tokens / "test.news.en", ["One two .", "", "Three !"])
    trees.write_lines(tokens / "test.news.de", ["Eins zwei .", "Eins eins", "Drei !"])
    trees.write_lines(tokens / "train.en", ["x", "x", "x", "x", "Eins"])
    trees.write_lines(tokens / "train.de", ["Eins eins .", "eins eins", "", "zweite .", "vier ."])
    return tmp_path, settings


def test_a_description_worked_by_hand(made):
    root, settings = made
    trees.describe(root, settings, "c-en-de")
    assert read_set_description(
        corpus_folder("c-en-de", "test_stats", root), "news"
    ) == SetDescription(
        source_tokens=[3, 0, 2],
        reference_tokens=["Eins zwei .", "Eins eins", "Drei !"],
        training_counts={"Eins": 1, "zwei": 0, ".": 3, "eins": 3, "Drei": 0, "!": 0},
        documents=None,
    )


def test_the_training_text_counts_once_for_all_test_sets(made):
    root, settings = made
    for stage, line in (("split", "eins vier"), ("tokens", "eins vier")):
        for language in ("en", "de"):
            trees.write_lines(
                corpus_folder("c-en-de", stage, root) / f"test.more.{language}", [line]
            )
    trees.describe(root, settings, "c-en-de")
    described = corpus_folder("c-en-de", "test_stats", root)
    assert sorted(path.name for path in described.iterdir()) == ["more.json", "news.json"]
    assert read_json(described / "more.json")["training_counts"] == {"eins": 3, "vier": 1}
    assert "vier" not in read_json(described / "news.json")["training_counts"]


def test_characters_are_no_words(made):
    root, settings = made
    corpus = settings.corpus("c-en-de")
    by_character = dataclasses.replace(
        corpus, tokenize=dataclasses.replace(corpus.tokenize, name="characters")
    )
    describe_test_sets("c-en-de", by_character, root)
    assert (
        read_set_description(corpus_folder("c-en-de", "test_stats", root), "news").training_counts
        is None
    )


def test_test_sets_come_in_the_order_of_the_settings(tmp_path):
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("zeta", "alpha")})
    trees.write_texts(tmp_path, settings)
    texts = TextFolder(tmp_path / "data" / "split" / "c-en-de", "en", "de")
    for side in texts.files("test.made"):
        trees.write_lines(side, ["one"])
    assert names_of_test_sets(settings.corpus("c-en-de"), texts) == ["zeta", "alpha", "made"]
    texts.files("test.alpha")[0].unlink()
    with pytest.raises(UserError, match=r"split/c-en-de/test\.alpha\.en: no such file"):
        names_of_test_sets(settings.corpus("c-en-de"), texts)


def test_bad_input_leaves_nothing(made):
    root, settings = made
    tokens = corpus_folder("c-en-de", "tokens", root)
    (tokens / "train.de").unlink()
    with pytest.raises(UserError, match=r"tokens/c-en-de/train\.de: no such file"):
        trees.describe(root, settings, "c-en-de")
    trees.write_lines(tokens / "test.news.en", ["One two .", ""])
    with pytest.raises(UserError, match="has 2 lines and"):
        trees.describe(root, settings, "c-en-de")
    assert not corpus_folder("c-en-de", "test_stats", root).exists()


def test_faults_of_whole_sets_are_written(made):
    root, settings = made
    german, english = (list(sentences("train", language))[:300] for language in ("de", "en"))
    folders = {stage: corpus_folder("c-en-de", stage, root) for stage in ("split", "tokens")}
    given = paths.download_folder("c-en-de", root)
    for path in (*folders.values(), given):
        trees.write_lines(path / "test.news.en", english)
        trees.write_lines(path / "test.news.de", [*german[1:], german[0]])
        trees.write_lines(path / "train.en", english)
        trees.write_lines(path / "train.de", german)
    trees.write_lines(folders["split"] / "valid.en", [*english[:30], *["other"] * 20])
    trees.write_lines(folders["split"] / "valid.de", ["x"] * 50)
    trees.describe(root, settings, "c-en-de")
    found = SetFindings.read(corpus_folder("c-en-de", "test_stats", root))
    assert list(found.misfits) == ["test.news"]
    (misfit,) = found.misfits["test.news"]
    assert misfit.offset == -1
    assert misfit.last >= 295
    assert found.overlaps == (Overlap(test="news", other="valid", shared=30, lines=300),)
