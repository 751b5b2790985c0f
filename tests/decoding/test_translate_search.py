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
        return np.array([len(token_ids) for token_ids in self])


# The ids of the tags <2de> and <2fr>.
TO_GERMAN = 7
TO_FRENCH = 8


def lengths_searched(sentences, language_by_tag, max_source_length):
    """Translate sentences, and return the lengths with which the engine is asked to search them.

    Args:
        sentences: The token ids of each sentence.
        language_by_tag: The tags that the corpus defines. A tag names the target language, such as
            <2de>; it stands before the words of a source sentence.
        max_source_length: The number of positions of the model.
    """
    sentences = Sentences(sentences)
    tag_ids = {"<2de>": TO_GERMAN, "<2fr>": TO_FRENCH}
    segmentation = SimpleNamespace(encode=lambda tokens: np.array([tag_ids[tokens[0]], EOS]))
    source_tags = SourceTags(language_by_tag, lambda: segmentation)
    corpus = SimpleNamespace(
        folder=Path("data/binary/x"),
        source="en",
        side=lambda *_: sentences,
        search_lengths=lambda sources: source_tags.search_lengths(sources, sources.lengths),
    )
    searched_lengths = []

    def search(source, lengths, progress):
        assert progress is None
        searched_lengths.extend(lengths.tolist())
        return [[f"best of {token_ids}", "second"] for token_ids in source]

    engine = SimpleNamespace(max_source_length=max_source_length, search=search)
    best = translate.best_translations(engine, corpus, "test.x")
    assert best == [f"best of {token_ids}" for token_ids in sentences]
    return searched_lengths


@pytest.mark.parametrize(
    ("language_by_tag", "lengths"),
    [
        pytest.param({"<2de>": "de", "<2fr>": "fr"}, [1, 3, 1], id="both ids are tags"),
        pytest.param({"<2de>": "de"}, [1, 3, 2], id="only 7 is a tag"),
        pytest.param({}, [2, 3, 2], id="both ids are words"),
    ],
)
def test_a_sentence_that_contains_only_a_tag_is_searched_as_an_empty_sentence(
    language_by_tag, lengths
):
    """A tag such as <2de> before a sentence names the target language. Here <2de> is 7, <2fr> is 8.

    An empty sentence has length 1, its EOS, and is translated as an empty line.
    """
    sentences = [[TO_GERMAN, EOS], [TO_GERMAN, 5, EOS], [TO_FRENCH, EOS]]

    assert lengths_searched(sentences, language_by_tag, max_source_length=3) == lengths


def test_the_longest_sentence_is_named_if_the_model_has_too_few_positions():
    """The second of three sentences has 3 tokens with EOS, but the model only 2 positions."""
    sentences = [[TO_GERMAN, EOS], [TO_GERMAN, 5, EOS], [TO_FRENCH, EOS]]

    with pytest.raises(
        UserError,
        match=r"^data/binary/x: line 2 of test\.x\.en has 3 tokens, EOS included\. Raise "
        r"model\.max_positions \(2\)$",
    ):
        lengths_searched(sentences, {}, max_source_length=2)
