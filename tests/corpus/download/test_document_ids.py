"""The documents of test sets, from the downloaded files to the description that scoring reads."""

from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.config.paths import corpus_folder, download_folder
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.test_sets import read_set_description
from bleuprint.text.parallel import TextFolder
from scoring import SEPARATORS

# An id with characters at which other programs would end a line.
ODD_ID = "".join(SEPARATORS) + "\0"


def sgml(root_element, line_counts):
    """Return an SGML file.

    Args:
        root_element: The name of the element that contains all documents.
        line_counts: The number of sentences of each document, by its id.
    """
    documents = []
    for document_id, line_count in line_counts.items():
        sentences = [f"<seg id={n}>{document_id} {n}</seg>" for n in range(line_count)]
        documents.append(f'<doc docid="{document_id}">{"".join(sentences)}</doc>\n')
    return f"<{root_element}>\n{''.join(documents)}</{root_element}>\n"


def write_sgml_text(name, line_counts):
    """Write a text to inputs/ of the current folder, and return its settings.

    Args:
        name: The name of the files.
        line_counts: The number of sentences of each document, by its id.
    """
    source_path = Path("inputs") / f"{name}.srcset"
    target_path = Path("inputs") / f"{name}.refset"
    source_path.parent.mkdir(exist_ok=True)
    source_path.write_bytes(sgml("srcset", line_counts).encode())
    target_path.write_bytes(sgml("refset", line_counts).encode())
    return Text("x", "sgml", source=File(path=str(source_path)), target=File(path=str(target_path)))


def download_test_sets(root, tests):
    """Download an English-German corpus with these test sets, and return the folder of its text."""
    raw = TextFolder(download_folder("c-en-de", root), "en", "de")
    train = write_sgml_text("train", {"t": 2})
    source = Downloads(None, root / "store", root / "downloads.lock")
    files = Files({"a": train}, {"a": train}, tests)
    download_corpus("c", files, raw, root / "filter_stats.json", source)
    return raw.path


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """The folder of a downloaded corpus with four test sets.

    single: three sentences of two documents.
    both: these, and a sentence of another file, whose document has the same id.
    part: these, and two sentences without a document.
    none: two sentences without a document.
    """
    monkeypatch.chdir(tmp_path)
    first = write_sgml_text("1", {"a": 2, ODD_ID: 1})
    second = write_sgml_text("2", {"a": 1})
    without_ids = write_sgml_text("3", {"": 2})
    tests = {
        "single": {"one": first},
        "both": {"one": first, "two": second},
        "part": {"one": first, "no": without_ids},
        "none": {"no": without_ids},
    }
    return download_test_sets(tmp_path, tests)


def test_only_test_sets_whose_files_name_all_documents_get_a_file_of_ids(raw):
    assert sorted(path.name for path in raw.glob("*.documents")) == [
        "test.both.documents",
        "test.single.documents",
    ]


def test_the_file_of_ids_contains_the_document_of_each_sentence(raw):
    ids = (raw / "test.single.documents").read_bytes()

    assert ids == f"a\na\n{ODD_ID}\n".encode()


def test_ids_of_a_test_set_in_two_files_begin_with_the_name_of_the_file(raw):
    ids = (raw / "test.both.documents").read_bytes().decode()

    assert ids == f"one/a\none/a\none/{ODD_ID}\ntwo/a\n"


def test_a_test_set_with_sentences_outside_of_documents_is_reported(tmp_path, monkeypatch, capsys):
    """Document scores need the document of every sentence, so that no document id is used then."""
    monkeypatch.chdir(tmp_path)
    # The number of sentences by document id.
    text_with_ids = write_sgml_text("1", {"a": 2, "b": 1})
    text_without_ids = write_sgml_text("2", {"": 2})

    download_test_sets(tmp_path, {"part": {"one": text_with_ids, "no": text_without_ids}})

    # The set `part` joins both texts: 3 + 2 lines.
    message = (
        "test.part: 2 of 5 lines belong to no document, so the documents of this set are ignored"
    )
    assert message in capsys.readouterr().err


def test_files_of_document_ids_are_not_listed_as_sets(raw):
    """The folder also contains files such as test.single.documents: the document of each line."""
    names = TextFolder(raw, "en", "de").set_names()

    assert names == [
        "train",
        "valid",
        "test.both",
        "test.none",
        "test.part",
        "test.single",
    ]


@pytest.mark.parametrize(
    ("test_set", "documents"),
    [
        # The newline in the id of the second document is a space here.
        pytest.param("known", ["a", "a", "b  c"], id="test set with documents"),
        pytest.param("unknown", None, id="test set without documents"),
    ],
)
def test_the_description_of_a_test_set_contains_its_documents(
    tmp_path, monkeypatch, test_set, documents
):
    """The test set `known` has two documents; the test set `unknown` has none.

    The stages after download keep the lines of a test set, so that the file of its documents still
    fits.
    """
    monkeypatch.chdir(tmp_path)
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("known", "unknown")})
    text = write_sgml_text("s", {"a": 2, "b\n c": 1})
    raw = download_test_sets(tmp_path, {"known": {"p": text}})
    # Stand-ins for the outputs of the stages between download and test_stats.
    for language in ("en", "de"):
        lines = (raw / f"test.known.{language}").read_text("utf-8").split("\n")[:-1]
        for stage in ("split", "tokens"):
            folder = corpus_folder("c-en-de", stage, tmp_path)
            for set_name in ("train", "test.known", "test.unknown"):
                trees.write_lines(folder / f"{set_name}.{language}", lines)

    trees.describe(tmp_path, settings, "c-en-de")

    descriptions = corpus_folder("c-en-de", "test_stats", tmp_path)
    assert read_set_description(descriptions, test_set).documents == documents
