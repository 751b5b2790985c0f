"""The stage tokenize edits held-out sets, and splits all sentences into tokens."""

import pytest

from bleuprint.corpus.steps.filter_stats import read_filter_stats
from bleuprint.rules import EDITS
from corpora import PAIRS, numbered_pairs
from prepared import prepare


@pytest.mark.parametrize("name", ["train", "valid", "test.held-out"])
def test_sets_that_were_drawn_from_the_training_text_are_not_edited_a_second_time(tmp_path, name):
    """The stage clean edits the training text before the stage split draws sets from it.

    An edit may change a sentence again: &amp;lt; becomes &lt;, and a second time <.
    """
    escaped_twice = numbered_pairs("Satz {} &amp;lt;", "sentence {} &amp;lt;", 50)

    outputs = prepare(tmp_path, {"train": escaped_twice}, edits=(EDITS["entities"](),))

    for source, _ in outputs.text("tokens").pairs(name):
        assert " &lt;" in source


@pytest.mark.parametrize("name", ["valid", "test.x"])
def test_published_sets_are_edited_for_their_tokens_but_kept_as_published(tmp_path, name):
    """The model gets edited sources; BLEU compares with the published references."""
    published = [("Fisch &amp; Brot", "fish &amp; bread")]
    sets = {"train": PAIRS, "valid": published, "test.x": published}

    outputs = prepare(tmp_path, sets, edits=(EDITS["entities"](),))

    assert list(outputs.text("split").pairs(name)) == published
    assert list(outputs.text("tokens").pairs(name)) == [("Fisch & Brot", "fish & bread")]


@pytest.mark.parametrize(("name", "number"), [("valid", 0), ("test.x", 1), ("train", 2)])
def test_each_side_is_edited_and_tokenized_in_its_language(tmp_path, name, number):
    """French splits l' off; English splits 's off and moves a comma into quotation marks."""
    pairs = numbered_pairs("""l'eau "claire", {}""", """it's "clear", {}""", 40)
    sets = {"train": pairs[2:], "valid": [pairs[0]], "test.x": [pairs[1]]}
    punctuation = EDITS["punctuation"]()

    outputs = prepare(tmp_path, sets, edits=(punctuation,), languages=("fr", "en"))

    french, english = next(iter(outputs.text("tokens").pairs(name)))
    assert french == f"""l' eau " claire " , {number}"""
    assert english == f"""it 's " clear , " {number}"""


def test_the_statistics_count_the_pairs_of_all_sets(tmp_path):
    """Tokenizing drops no pair, in no set."""
    pairs = numbered_pairs("Satz {}", "sentence {}", 9)
    sets = {"train": pairs[:5], "valid": pairs[5:8], "test.x": pairs[8:]}

    outputs = prepare(tmp_path, sets)

    counts = read_filter_stats(outputs.filter_stats("tokenize"))
    assert list(counts) == ["train", "valid", "test.x"]
    for name, pair_count in (("train", 5), ("valid", 3), ("test.x", 1)):
        assert counts[name].pairs_in == pair_count
        assert counts[name].pairs_out == pair_count
