"""Held-out sets that share sentences are found, and the findings are kept in a file."""

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.misalignment import Misfit
from bleuprint.corpus.set_findings import Overlap, SetFindings, find_overlaps
from bleuprint.corpus.set_notes import _has_same_content
from bleuprint.corpus.test_sets import SetDescription


def numbered_sentences(name, count):
    """Return different sentences, such as "valid 0" and "valid 1"."""
    return [f"{name} {number}" for number in range(count)]


@pytest.mark.parametrize(("test_set_size", "is_found"), [(99, True), (100, True), (101, False)])
def test_an_overlap_is_found_from_one_percent_of_the_test_set_on(test_set_size, is_found):
    """One sentence of the test set, "test 3", is also in the validation set.

    Sentences are compared without case and punctuation.
    """
    test_sentences = numbered_sentences("test", test_set_size)
    valid_sentences = [*numbered_sentences("valid", 5), "TEST 3!"]

    overlaps = list(find_overlaps({"valid": valid_sentences, "test.x": test_sentences}))

    overlap = Overlap(test="x", other="valid", shared=1, lines=test_set_size)
    assert overlaps == ([overlap] if is_found else [])


def test_sets_without_a_common_sentence_do_not_overlap():
    """`numbered_sentences("x", 5)` are "x 0" to "x 4"."""
    sets = {
        "valid": numbered_sentences("valid", 5),
        "test.x": numbered_sentences("x", 5),
        "test.y": [],
    }

    assert list(find_overlaps(sets)) == []


def test_a_test_set_is_compared_with_the_validation_set_and_earlier_test_sets():
    """`numbered_sentences("a", 4)` are "a 0" to "a 3": two of x's sentences are also in valid."""
    sets = {
        "test.x": numbered_sentences("a", 4),
        "valid": numbered_sentences("a", 2),
        "test.y": numbered_sentences("a", 1) + numbered_sentences("b", 3),
    }

    assert list(find_overlaps(sets)) == [
        Overlap(test="x", other="valid", shared=2, lines=4),
        Overlap(test="y", other="valid", shared=1, lines=4),
        Overlap(test="y", other="x", shared=1, lines=4),
    ]


@pytest.mark.parametrize(
    "findings",
    [
        pytest.param(SetFindings(misfits={"test.x": ()}), id="set with misfits"),
        pytest.param(
            SetFindings(misfits={"test.x": (Misfit(first=1, last=9, offset=None),)}),
            id="misfit",
        ),
        pytest.param(SetFindings(overlaps=(Overlap("x", "valid", 1, 5),)), id="overlap"),
        pytest.param(
            SetFindings(misfits={"test.x": ()}, overlaps=(Overlap("x", "valid", 1, 5),)),
            id="set with misfits and overlap",
        ),
    ],
)
def test_written_findings_are_read_back(tmp_path, findings):
    findings.write(tmp_path)

    assert list(tmp_path.iterdir()) != []
    assert SetFindings.read(tmp_path) == findings


def test_empty_findings_are_not_written(tmp_path):
    """A misfit is a range of lines whose sides do not translate each other."""
    no_findings = SetFindings(misfits={}, overlaps=())

    no_findings.write(tmp_path)

    assert list(tmp_path.iterdir()) == []
    assert SetFindings.read(tmp_path) == no_findings


@pytest.mark.parametrize(
    ("training_counts", "documents"),
    [
        pytest.param(None, None, id="without counts and documents"),
        pytest.param({"a": 1, "b": 0}, ["one", "two"], id="with counts and documents"),
    ],
)
def test_a_description_with_or_without_optional_entries_is_accepted(training_counts, documents):
    """The test set has two sentences; training counts and document ids are optional."""
    description = SetDescription(
        source_tokens=[5, 6],
        reference_tokens=["a", "b"],
        training_counts=training_counts,
        documents=documents,
    )

    assert description.reference_tokens == ["a", "b"]
    assert description.training_counts == training_counts
    assert description.documents == documents


def test_a_description_with_too_few_references_is_refused():
    with pytest.raises(ValueError, match=r"^2 source_tokens, 1 reference_tokens$"):
        SetDescription(
            source_tokens=[5, 6], reference_tokens=["a"], training_counts=None, documents=None
        )


@pytest.mark.parametrize(
    "documents",
    [["one"], ["one", "two", "three"], []],
    ids=["one document id", "three document ids", "no document id"],
)
def test_a_description_with_too_few_or_too_many_documents_is_refused(documents):
    """The test set has two sentences, so that two document ids are needed."""
    with pytest.raises(ValueError, match=f"^2 source_tokens, {len(documents)} documents$"):
        SetDescription(
            source_tokens=[5, 6],
            reference_tokens=["a", "b"],
            training_counts=None,
            documents=documents,
        )


def test_a_description_without_the_training_count_of_a_reference_token_is_refused():
    """The counts say how often each word of the references occurs in the training text."""
    with pytest.raises(ValueError, match=r"^training_counts lacks 'b', which is in"):
        SetDescription(
            source_tokens=[5, 6],
            reference_tokens=["a", "b"],
            training_counts={"a": 1},
            documents=None,
        )


def file_settings(path, sha256=None, archive_member=()):
    """Return the settings of a local file, without checking whether it exists.

    Args:
        path: The path.
        sha256: Its hash, if the settings contain one.
        archive_member: The names of the member to read, if the file is an archive.
    """
    file = object.__new__(File)
    fields = {"url": None, "path": path, "archive_member": archive_member, "sha256": sha256}
    for name, value in fields.items():
        object.__setattr__(file, name, value)
    return file


@pytest.fixture
def files_to_compare(tmp_path, monkeypatch):
    """Files in the current folder: a and same have the same content, other and longer do not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("one")
    (tmp_path / "same").write_text("one")
    (tmp_path / "other").write_text("two")
    (tmp_path / "longer").write_text("three")


SHA256 = "1" * 64
OTHER_SHA256 = "2" * 64


@pytest.mark.usefixtures("files_to_compare")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            file_settings("a"),
            file_settings("a"),
            id="same path",
        ),
        pytest.param(
            file_settings("missing"),
            file_settings("missing"),
            id="same path of a missing file",
        ),
        pytest.param(
            file_settings("a"),
            file_settings("same"),
            id="same content",
        ),
        pytest.param(
            file_settings("a", sha256=SHA256),
            file_settings("other", sha256=SHA256),
            id="same hash in the settings",
        ),
    ],
)
def test_two_files_have_the_same_content(first, second):
    assert _has_same_content(first, second)


@pytest.mark.usefixtures("files_to_compare")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            file_settings("a"),
            file_settings("other"),
            id="other content of the same size",
        ),
        pytest.param(
            file_settings("a"),
            file_settings("longer"),
            id="longer content",
        ),
        pytest.param(
            file_settings("a"),
            file_settings("missing"),
            id="second file is missing",
        ),
        pytest.param(
            file_settings("missing"),
            file_settings("a"),
            id="first file is missing",
        ),
        pytest.param(None, file_settings("a"), id="first is None"),
        pytest.param(file_settings("a"), None, id="second is None"),
        pytest.param(
            file_settings("a", sha256=SHA256),
            file_settings("same", sha256=OTHER_SHA256),
            id="other hash in the settings",
        ),
        pytest.param(
            file_settings("a", sha256=SHA256, archive_member=("x",)),
            file_settings("other", sha256=SHA256),
            id="member of an archive and a whole file",
        ),
    ],
)
def test_two_files_count_as_different(first, second):
    assert not _has_same_content(first, second)
