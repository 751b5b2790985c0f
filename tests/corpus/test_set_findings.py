"""Which held-out sets share sentences, and what of it is kept."""

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.set_findings import Overlap, SetFindings, find_overlaps
from bleuprint.corpus.set_notes import _has_same_content
from bleuprint.corpus.test_sets import SetDescription


def sentences(name, count):
    return [f"{name} {number}" for number in range(count)]


@pytest.mark.parametrize(("lines", "is_found"), [(99, True), (100, True), (101, False)])
def test_sets_share_sentences_from_one_percent_of_the_test_set_on(lines, is_found):
    test = sentences("test", lines)
    sets = {"valid": [*sentences("valid", 5), "TEST 3!"], "test.x": test}
    expected = [Overlap(test="x", other="valid", shared=1, lines=lines)] if is_found else []
    assert list(find_overlaps(sets)) == expected


def test_sets_without_a_common_sentence_do_not_overlap():
    sets = {"valid": sentences("valid", 5), "test.x": sentences("x", 5), "test.y": []}
    assert list(find_overlaps(sets)) == []


def test_a_test_set_is_compared_with_validation_and_those_before_it():
    sets = {
        "test.x": sentences("a", 4),
        "valid": sentences("a", 2),
        "test.y": [*sentences("a", 1), *sentences("b", 3)],
    }
    assert list(find_overlaps(sets)) == [
        Overlap(test="x", other="valid", shared=2, lines=4),
        Overlap(test="y", other="valid", shared=1, lines=4),
        Overlap(test="y", other="x", shared=1, lines=4),
    ]


@pytest.mark.parametrize("overlaps", [(), (Overlap("x", "valid", 1, 5),)])
@pytest.mark.parametrize("has_misfits", [False, True])
def test_findings_are_read_back(tmp_path, overlaps, has_misfits):
    misfits = {"test.x": ()} if has_misfits else {}
    findings = SetFindings(misfits, overlaps)
    findings.write(tmp_path)
    assert [*tmp_path.iterdir()] != [] if misfits or overlaps else [*tmp_path.iterdir()] == []
    assert SetFindings.read(tmp_path) == findings


def test_what_describes_a_test_set_has_as_many_lines():
    assert SetDescription([5, 6], ["a", "b"], None, None)
    assert SetDescription([5, 6], ["a", "b"], {"a": 1, "b": 0}, ["one", "two"])
    with pytest.raises(ValueError, match=r"^2 source_tokens, 1 reference_tokens$"):
        SetDescription([5, 6], ["a"], None, None)
    for documents in (["one"], ["one", "two", "three"], []):
        with pytest.raises(ValueError, match=f"^2 source_tokens, {len(documents)} documents$"):
            SetDescription([5, 6], ["a", "b"], None, documents)
    with pytest.raises(ValueError, match=r"^training_counts lacks 'b', which is in"):
        SetDescription([5, 6], ["a", "b"], {"a": 1}, None)


def test_when_two_files_have_the_same_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in (("a", "one"), ("same", "one"), ("other", "two"), ("longer", "three")):
        (tmp_path / name).write_text(content)

    def local(name, **given):
        file = object.__new__(File)
        for key, value in {"url": None, "path": name, "archive_member": (), "sha256": None}.items():
            object.__setattr__(file, key, given.get(key, value))
        return file

    assert _has_same_content(local("a"), local("a"))
    assert _has_same_content(local("nowhere"), local("nowhere"))
    assert _has_same_content(local("a"), local("same"))
    assert not _has_same_content(local("a"), local("other"))
    assert not _has_same_content(local("a"), local("longer"))
    assert not _has_same_content(local("a"), local("nowhere"))
    assert not _has_same_content(local("nowhere"), local("a"))
    assert not _has_same_content(None, local("a"))
    assert not _has_same_content(local("a"), None)
    hashed, other = "1" * 64, "2" * 64
    assert _has_same_content(local("a", sha256=hashed), local("other", sha256=hashed))
    assert not _has_same_content(local("a", sha256=hashed), local("same", sha256=other))
    members = {"archive_member": ("x",), "sha256": hashed}
    assert not _has_same_content(local("a", **members), local("other", sha256=hashed))
