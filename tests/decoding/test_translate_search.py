"""Which sentences of a set an engine searches, and with what lengths."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bleuprint.dataset.source_tags import SourceTags
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding import translate
from bleuprint.runtime.errors import UserError


class Sentences(list):
    """Token ids of a set, with their lengths."""

    @property
    def lengths(self):
        return np.array([len(each) for each in self])


TO_GERMAN, TO_FRENCH = 7, 8


def lengths_searched(tags, most=3):
    """The lengths with which an engine searches three sentences, of which two are a tag alone."""
    sentences = Sentences([[TO_GERMAN, EOS], [TO_GERMAN, 5, EOS], [TO_FRENCH, EOS]])
    words = {"<2de>": TO_GERMAN, "<2fr>": TO_FRENCH}
    segmentation = SimpleNamespace(encode=lambda tokens: np.array([words[tokens[0]], EOS]))
    directions = SimpleNamespace(
        folder=Path("data/binary/x"),
        source="en",
        side=lambda *_: sentences,
    )
    source_tags = SourceTags(tags, lambda: segmentation)
    directions.search_lengths = lambda sources: source_tags.search_lengths(sources, sources.lengths)
    given = []

    def search(source, lengths, progress):
        assert progress is None
        given.extend(lengths.tolist())
        return [[f"best of {each}", "second"] for each in source]

    finder = SimpleNamespace(max_source_length=most, search=search)
    found = translate.best_translations(finder, directions, "test.x")
    assert found == [f"best of {each}" for each in sentences]
    return given


def test_a_sentence_that_is_its_tag_alone_is_empty():
    assert lengths_searched({"<2de>": "de", "<2fr>": "fr"}) == [1, 3, 1]
    assert lengths_searched({"<2de>": "de"}) == [1, 3, 2]
    assert lengths_searched({}) == [2, 3, 2]


def test_the_longest_sentence_for_which_there_is_no_position_is_named():
    with pytest.raises(
        UserError,
        match=r"^data/binary/x: line 2 of test\.x\.en has 3 tokens, EOS included: raise "
        r"model\.max_positions \(2\)$",
    ):
        lengths_searched({}, most=2)
