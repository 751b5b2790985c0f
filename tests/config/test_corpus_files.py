"""Which files a text of a corpus may have, and what is said of other combinations."""

import pytest

from bleuprint.config.corpus_files import File, Text

SOURCE = File(path="inputs/a.de")
TARGET = File(path="inputs/a.en")
BOTH = File(path="inputs/a.de-en")
SHA256 = "a" * 64


@pytest.mark.parametrize(
    "settings",
    [
        {"source": SOURCE, "target": TARGET},
        {"source": SOURCE},
        {"target": TARGET},
        {"source": SOURCE, "target": TARGET, "format": "documents"},
        {"both": BOTH, "format": "tmx"},
        {"both": BOTH, "format": "tmx", "languages": ("en-GB", "de")},
        {"both": BOTH, "format": "tsv", "columns": (1, 2)},
        {"both": BOTH, "format": "tsv", "columns": ("German", "English")},
        {"source": SOURCE, "target": TARGET, "pairs": 5},
        {"source": SOURCE, "target": TARGET, "pairs": 5, "pairs_seed": 1},
        {"source": SOURCE, "tag": "<bt>"},
        {"source": SOURCE, "target": TARGET, "repeat": 2},
    ],
)
def test_texts_that_are_accepted(settings):
    text = Text("own", **settings)
    for name, value in settings.items():
        assert getattr(text, name) == value


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "format plain needs two files, source and target; for both sides in one file, set"),
        ({"both": BOTH}, "format plain needs two files"),
        ({"both": BOTH, "source": SOURCE, "target": TARGET}, "format plain needs two files"),
        ({"source": SOURCE, "format": "documents"}, "format documents needs two files"),
        ({"target": TARGET, "format": "documents"}, "format documents needs two files"),
        ({"format": "tmx"}, "format tmx has both sides in one file: needs both"),
        ({"source": SOURCE, "target": TARGET, "format": "tmx"}, "format tmx has both sides in one"),
        ({"both": BOTH, "source": SOURCE, "format": "tmx"}, "format tmx has both sides in one"),
        ({"both": BOTH, "target": TARGET, "format": "tmx"}, "format tmx has both sides in one"),
        ({"both": BOTH, "format": "tsv"}, "format tsv needs columns, and no other format has them"),
        (
            {"both": BOTH, "format": "tmx", "columns": (1, 2)},
            "format tsv needs columns, and no other format has them",
        ),
        (
            {"both": BOTH, "format": "tsv", "columns": (2, 2)},
            r"columns \[2, 2\]: source and target are the same",
        ),
        (
            {"both": BOTH, "format": "tsv", "columns": (1, "English")},
            r"columns \[1, 'English'\]: name both, or number both",
        ),
        (
            {"both": BOTH, "format": "tsv", "columns": (1, 2), "languages": ("en-GB", "de")},
            r"languages \['en-GB', 'de'\]: only a tmx file has language codes, and format is tsv",
        ),
        (
            {"source": SOURCE, "target": TARGET, "tag": "<bt>"},
            "tag '<bt>' is for a text that a system translates",
        ),
        ({"source": SOURCE, "target": TARGET, "pairs_seed": 0}, "pairs_seed 0 needs pairs"),
    ],
)
def test_texts_that_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Text("own", **settings)


@pytest.mark.parametrize(
    ("settings", "made", "files"),
    [
        ({"source": SOURCE, "target": TARGET}, None, (SOURCE, TARGET)),
        ({"source": SOURCE}, "target", (SOURCE,)),
        ({"target": TARGET}, "source", (TARGET,)),
        ({"both": BOTH, "format": "tmx"}, None, (BOTH,)),
    ],
)
def test_the_side_that_a_system_translates(settings, made, files):
    text = Text("own", **settings)
    assert text.synthetic_side == made
    assert text.files == files


@pytest.mark.parametrize(
    "settings",
    [
        {"path": "inputs/a"},
        {"path": "inputs/below/a.de"},
        {"url": "https://example.org/a"},
        {"url": "https://example.org/a", "mirrors": ("http://example.org/b",)},
        {"url": "file:///a", "sha256": SHA256},
        {"url": "phrasebook:train.en"},
        {"url": "https://example.org/a", "size": 0},
    ],
)
def test_files_that_are_accepted(settings):
    file = File(**settings)
    for name, value in settings.items():
        assert getattr(file, name) == value


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "needs either url or path"),
        ({"url": "https://example.org/a", "path": "inputs/a"}, "needs either url or path"),
        ({"path": "inputs/a", "mirrors": ("https://example.org/a",)}, "mirrors needs url"),
        ({"path": "inputs"}, "path is 'inputs': local files must be below inputs/"),
        ({"path": "a/inputs"}, "path is 'a/inputs': local files must be below inputs/"),
        ({"path": "inputs/../a"}, r"path is 'inputs/\.\./a': local files must be below inputs/"),
        ({"url": "ftp://example.org/a"}, "url is 'ftp://example.org/a': not http, https or file"),
        (
            {"url": "https://example.org/a", "mirrors": ("ftp://example.org/a",)},
            "mirrors is 'ftp://example.org/a': not http, https or file",
        ),
        (
            {
                "url": "https://example.org/a",
                "mirrors": ("http://example.org/a", "ftp://example.org/b"),
            },
            "mirrors is 'ftp://example.org/b': not http, https or file",
        ),
        ({"url": "file:///a"}, "url is 'file:///a': needs sha256"),
        ({"url": "phrasebook:trian.en"}, "url is 'phrasebook:trian.en': write one of phrasebook:"),
        ({"url": "https://me:word@example.org/a"}, "a URL with a user name, password or key"),
        (
            {"url": "https://example.org/a", "mirrors": ("https://me:word@example.org/a",)},
            "a URL with a user name, password or key",
        ),
    ],
)
def test_files_that_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        File(**settings)


def test_the_name_of_a_file_in_an_archive_ends_with_its_members():
    file = File(url="https://example.org/a.zip", archive_member=("b.tar", "c"))
    assert file.name == "https://example.org/a.zip!b.tar!c"
    assert SOURCE.name == "inputs/a.de"
