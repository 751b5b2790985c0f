"""The key of a text in params.yaml, written out by hand."""

import pytest

from bleuprint.config.corpus_files import settings_key


@pytest.mark.parametrize(
    ("corpus", "text", "key"),
    [
        ("own", "train.a", "corpora.own.files.train.a"),
        ("own", "test.news.v", "corpora.own.files.tests.news.v"),
        ("own", "test.test.test.source", "corpora.own.files.tests.test.test.source"),
        ("own", "valid", "corpora.own.files.valid"),
        ("own/de-en", "valid.talks", "corpora.own.files.valid.de-en-talks"),
        ("own/de-en", "test.news.v", "corpora.own.files.tests.de-en-news.v"),
    ],
)
def test_settings_key(corpus, text, key):
    assert settings_key(corpus, text) == key
