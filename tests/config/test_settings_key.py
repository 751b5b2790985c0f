"""The key in params.yaml of a text that a stage calls SET.TEXT."""

import pytest

from bleuprint.config.corpus_files import settings_key


@pytest.mark.parametrize(
    ("corpus", "text", "expected_key"),
    [
        pytest.param("own", "train.a", "corpora.own.files.train.a", id="training text"),
        pytest.param("own", "test.news.v", "corpora.own.files.tests.news.v", id="test set"),
        pytest.param(
            "own",
            "test.test.test.source",
            "corpora.own.files.tests.test.test.source",
            id="test set called test",
        ),
        pytest.param("own", "valid", "corpora.own.files.valid", id="all validation texts"),
        pytest.param(
            "own/de-en",
            "valid.talks",
            "corpora.own.files.valid.de-en-talks",
            id="validation text of a direction",
        ),
        pytest.param(
            "own/de-en",
            "test.news.v",
            "corpora.own.files.tests.de-en-news.v",
            id="test set of a direction",
        ),
    ],
)
def test_a_text_has_its_key_in_params(corpus, text, expected_key):
    assert settings_key(corpus, text) == expected_key
