"""The settings of a text and of its files: valid combinations, and messages about other ones."""

import pytest

from bleuprint.config.corpus_files import File, Text

SOURCE = File(path="inputs/a.de")
TARGET = File(path="inputs/a.en")
BOTH = File(path="inputs/a.de-en")
SHA256 = "a" * 64


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"source": SOURCE, "target": TARGET}, id="two plain files"),
        pytest.param({"source": SOURCE}, id="source only"),
        pytest.param({"target": TARGET}, id="target only"),
        pytest.param(
            {"source": SOURCE, "target": TARGET, "format": "documents"}, id="two files of documents"
        ),
        pytest.param({"both": BOTH, "format": "tmx"}, id="tmx"),
        pytest.param(
            {"both": BOTH, "format": "tmx", "languages": ("en-GB", "de")}, id="tmx with languages"
        ),
        pytest.param(
            {"both": BOTH, "format": "tsv", "columns": (1, 2)}, id="tsv with column numbers"
        ),
        pytest.param(
            {"both": BOTH, "format": "tsv", "columns": ("German", "English")},
            id="tsv with column names",
        ),
        pytest.param({"source": SOURCE, "target": TARGET, "pairs": 5}, id="some pairs"),
        pytest.param(
            {"source": SOURCE, "target": TARGET, "pairs": 5, "pairs_seed": 1},
            id="some pairs by a seed",
        ),
        pytest.param({"source": SOURCE, "tag": "<bt>"}, id="tag for synthetic pairs"),
        pytest.param({"source": SOURCE, "target": TARGET, "repeat": 2}, id="repeated"),
    ],
)
def test_the_settings_of_a_text_are_accepted(settings):
    text = Text("own", **settings)

    for name, value in settings.items():
        assert getattr(text, name) == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            {},
            "format plain needs two files, source and target. For both sides in one file, set",
            id="plain without files",
        ),
        pytest.param({"both": BOTH}, "format plain needs two files", id="plain in one file"),
        pytest.param(
            {"both": BOTH, "source": SOURCE, "target": TARGET},
            "format plain needs two files",
            id="plain in three files",
        ),
        pytest.param(
            {"source": SOURCE, "format": "documents"},
            "format documents needs two files",
            id="documents without target",
        ),
        pytest.param(
            {"target": TARGET, "format": "documents"},
            "format documents needs two files",
            id="documents without source",
        ),
        pytest.param(
            {"format": "tmx"},
            "format tmx has both sides in one file. Name this file",
            id="tmx without files",
        ),
        pytest.param(
            {"source": SOURCE, "target": TARGET, "format": "tmx"},
            "format tmx has both sides in one",
            id="tmx in two files",
        ),
        pytest.param(
            {"both": BOTH, "source": SOURCE, "format": "tmx"},
            "format tmx has both sides in one",
            id="tmx with a source file",
        ),
        pytest.param(
            {"both": BOTH, "target": TARGET, "format": "tmx"},
            "format tmx has both sides in one",
            id="tmx with a target file",
        ),
        pytest.param(
            {"both": BOTH, "format": "tsv"},
            "format tsv needs columns. Name the source",
            id="tsv without columns",
        ),
        pytest.param(
            {"both": BOTH, "format": "tmx", "columns": (1, 2)},
            "columns are only for formats csv, jsonl, parquet and tsv, but format is tmx",
            id="tmx with columns",
        ),
        pytest.param(
            {"both": BOTH, "format": "parquet", "columns": (1, 2)},
            r"columns \[1, 2\]: the columns of format parquet have names, not numbers",
            id="parquet with numbers of columns",
        ),
        pytest.param(
            {"both": File(path="inputs/a.parquet", line_ends="cr"), "format": "parquet"},
            "line_ends is cr, but a parquet file has no lines. Remove line_ends",
            id="parquet with line_ends",
        ),
        pytest.param(
            {"both": BOTH, "format": "jsonl", "columns": ("text", "text")},
            r"columns \['text', 'text'\]: source and target are the same",
            id="one column of JSON for both sides",
        ),
        pytest.param(
            {"source": File(path="inputs/a.en.jsonl.gz"), "target": TARGET},
            r"inputs/a\.en\.jsonl\.gz: by its name, the file is of format jsonl, not plain\. Set ",
            id="JSON lines as plain text",
        ),
        pytest.param(
            {"source": SOURCE, "target": File(path="inputs/a.CSV")},
            r"inputs/a\.CSV: by its name, the file is of format csv, not plain",
            id="table as plain text",
        ),
        pytest.param(
            {"source": SOURCE, "target": File(url="https://h/a.parquet?download=1")},
            "a.parquet.download=1: by its name, the file is of format parquet, not plain",
            id="Parquet as plain text",
        ),
        pytest.param(
            {"source": SOURCE, "target": File(path="inputs/a.zip", archive_member=("b.tmx",))},
            r"inputs/a\.zip!b\.tmx: by its name, the file is of format tmx, not plain",
            id="translation memory in an archive as plain text",
        ),
        pytest.param(
            {"both": BOTH, "format": "tsv", "columns": (2, 2)},
            r"columns \[2, 2\]: source and target are the same",
            id="one column for both sides",
        ),
        pytest.param(
            {"both": BOTH, "format": "tsv", "columns": (1, "English")},
            r"columns \[1, 'English'\]: one has a name, the other a number",
            id="a number and a name of columns",
        ),
        pytest.param(
            {"both": BOTH, "format": "tsv", "columns": (1, 2), "languages": ("en-GB", "de")},
            r"languages is \['en-GB', 'de'\] and format is tsv, but only a tmx file has",
            id="tsv with languages",
        ),
        pytest.param(
            {"source": SOURCE, "target": TARGET, "tag": "<bt>"},
            "tag '<bt>' is only for a text that a system translates",
            id="tag for parallel text",
        ),
        pytest.param(
            {"source": SOURCE, "target": TARGET, "pairs_seed": 0},
            "pairs_seed 0 has no effect without pairs",
            id="seed without pairs",
        ),
    ],
)
def test_settings_of_a_text_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Text("own", **settings)


@pytest.mark.parametrize(
    ("settings", "synthetic_side"),
    [
        pytest.param({"source": SOURCE, "target": TARGET}, None, id="parallel text"),
        pytest.param({"source": SOURCE}, "target", id="source only"),
        pytest.param({"target": TARGET}, "source", id="target only"),
        pytest.param({"both": BOTH, "format": "tmx"}, None, id="one parallel file"),
    ],
)
def test_the_synthetic_side_of_a_text_is_the_side_without_a_file(settings, synthetic_side):
    """A trained system translates the other side, and so makes the synthetic side."""
    assert Text("own", **settings).synthetic_side == synthetic_side


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        pytest.param({"source": SOURCE, "target": TARGET}, (SOURCE, TARGET), id="parallel text"),
        pytest.param({"source": SOURCE}, (SOURCE,), id="source only"),
        pytest.param({"target": TARGET}, (TARGET,), id="target only"),
        pytest.param({"both": BOTH, "format": "tmx"}, (BOTH,), id="one parallel file"),
    ],
)
def test_a_text_lists_its_files(settings, files):
    assert Text("own", **settings).files == files


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"path": "inputs/a"}, id="local file"),
        pytest.param({"path": "inputs/below/a.de"}, id="local file in a folder"),
        pytest.param({"url": "https://example.org/a"}, id="url"),
        pytest.param(
            {"url": "https://example.org/a", "mirrors": ("http://example.org/b",)},
            id="url with a mirror",
        ),
        pytest.param({"url": "file:///a", "sha256": SHA256}, id="file url with its hash"),
        pytest.param({"url": "phrasebook:train.en"}, id="phrasebook"),
        pytest.param({"url": "https://example.org/a", "size": 0}, id="empty file"),
    ],
)
def test_the_settings_of_a_file_are_accepted(settings):
    file = File(**settings)

    for name, value in settings.items():
        assert getattr(file, name) == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({}, "needs either url or path", id="neither url nor path"),
        pytest.param(
            {"url": "https://example.org/a", "path": "inputs/a"},
            "needs either url or path",
            id="url and path",
        ),
        pytest.param(
            {"path": "inputs/a", "mirrors": ("https://example.org/a",)},
            "mirrors needs url",
            id="path with mirrors",
        ),
        pytest.param(
            {"path": "inputs"},
            "path is 'inputs', but local files must be below inputs/",
            id="the folder itself",
        ),
        pytest.param(
            {"path": "a/inputs"},
            "path is 'a/inputs', but local files must be below inputs/",
            id="another folder",
        ),
        pytest.param(
            {"path": "inputs/../a"},
            r"path is 'inputs/\.\./a', but local files must be below inputs/",
            id="up from the folder",
        ),
        pytest.param(
            {"url": "ftp://example.org/a"},
            "url is 'ftp://example.org/a'. Write an http, https or file",
            id="ftp url",
        ),
        pytest.param(
            {"url": "https://example.org/a", "mirrors": ("ftp://example.org/a",)},
            "mirrors is 'ftp://example.org/a'. Write an http, https or file",
            id="ftp mirror",
        ),
        pytest.param(
            {
                "url": "https://example.org/a",
                "mirrors": ("http://example.org/a", "ftp://example.org/b"),
            },
            "mirrors is 'ftp://example.org/b'. Write an http, https or file",
            id="second mirror is ftp",
        ),
        pytest.param(
            {"url": "file:///a"}, "url is 'file:///a' without sha256", id="file url without hash"
        ),
        pytest.param(
            {"url": "phrasebook:trian.en"},
            "url is 'phrasebook:trian.en', but no such text exists. Write one of phrasebook:",
            id="unknown file of the phrasebook",
        ),
        pytest.param(
            {"url": "https://me:word@example.org/a"},
            "the URL contains a user name, password or key",
            id="password in a url",
        ),
        pytest.param(
            {"url": "https://example.org/a", "mirrors": ("https://me:word@example.org/a",)},
            "the URL contains a user name, password or key",
            id="password in a mirror",
        ),
    ],
)
def test_invalid_settings_of_a_file_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        File(**settings)


def test_the_name_of_a_local_file_is_its_path():
    assert File(path="inputs/a.de").name == "inputs/a.de"


def test_the_name_of_a_file_in_nested_archives_ends_with_the_archive_members():
    file = File(url="https://example.org/a.zip", archive_member=("b.tar", "c"))

    assert file.name == "https://example.org/a.zip!b.tar!c"
