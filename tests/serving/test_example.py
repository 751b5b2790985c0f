"""The sentence with which the page of `bleuprint serve` begins."""

from types import SimpleNamespace

import pytest

from bleuprint.serving import server

KNOWN = "ba be bo ba be bo"


@pytest.mark.parametrize(
    ("validation", "example"),
    [
        (["ba be", "zzz be bo ba be bo", "ba " * 16, KNOWN], KNOWN),
        (["ba be"], ""),
        (["ba " * 16], ""),
        (["zzz be bo ba be bo"], ""),
    ],
    ids=["others first", "short", "long", "unknown word"],
)
def test_the_example_of_the_page_is_of_5_to_15_known_words(validation, example):
    words = SimpleNamespace(decode=str.split, detokenize=" ".join)
    corpus = SimpleNamespace(
        source="xx",
        target="yy",
        side=lambda _name, _language: validation,
        segmentation=lambda _language: words,
        tokenizer=lambda _language: words,
    )
    known = SimpleNamespace(unknown=lambda tokens: {"zzz"} & set(tokens))
    translator = SimpleNamespace(corpus=corpus, known=known, source="xx", target="yy")
    assert server._example(translator) == example
    # the corpus has several language pairs, and validation sentences of all of them
    translator.target = "zz"
    assert server._example(translator) == ""
