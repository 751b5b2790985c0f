import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile

import pytest

from archives import (
    ARCHIVES,
    FILES,
    LINES,
    LONG,
    PACKED,
    TEXT,
    entry,
    pack,
    read,
    refused,
    tar,
    tgz,
    zipped,
)
from bleuprint.corpus.download import archive
from bleuprint.corpus.download.archive import open_member
from bleuprint.runtime.errors import UserError

# What is read


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("member", FILES, ids=lambda file: file[0])
def test_a_member_of_every_kind_of_archive(name, member):
    assert read(name, PACKED[name], member[0]) == member[1]


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_files_packed_otherwise(how):
    assert read("a.zip", zipped(FILES, how), "b/text.de") == TEXT


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("t.gz", gzip.compress(TEXT, mtime=0)),
        ("t.gz", gzip.compress(TEXT[:9], mtime=0) + gzip.compress(TEXT[9:], mtime=0)),
        ("t.bz2", bz2.compress(TEXT)),
        ("t.xz", lzma.compress(TEXT)),
        ("t.de", TEXT),
        ("t.gzip", TEXT),
        ("t.gz.txt", TEXT),
    ],
)
def test_a_single_file_is_unpacked_going_by_its_name_alone_or_as_a_member(name, packed):
    assert read(name, packed) == TEXT
    assert read("a.tgz", tgz([(f"b/{name}", packed)]), f"b/{name}") == TEXT
    assert read("a.zip", zipped([(f"b/{name}", packed)]), f"b/{name}") == TEXT


@pytest.mark.parametrize(
    "name", ["http://h/a.TGZ", "https://h/r/a.tgz?download=1", "https://h/get?file=a.tgz"]
)
def test_endings_in_capitals_and_of_addresses_with_a_query(name):
    assert read(name, PACKED["a.tgz"], "b/text.de") == TEXT


def test_archives_in_archives():
    inner = [("b/text.de", TEXT)]
    for name in ARCHIVES:
        for other in ARCHIVES:
            data = pack(name, [("x", LINES[0]), (f"in/{other}", pack(other, inner)), ("y", b"")])
            assert read(name, data, f"in/{other}", "b/text.de") == TEXT
    deep = zipped([("t.gz", gzip.compress(TEXT))])
    deep = tgz([("1/b.zip", deep)])
    deep = tar([("2/b.tgz", zipped([("3/b.tgz", deep)]))])
    with pytest.raises(UserError):
        read("a.tar", deep, "2/b.tgz", "3/b.tgz", "1/b.zip", "t.gz")  # a zip called .tgz
    deep = tar([("2/b.zip", zipped([("3/b.tgz", tgz([("1/b.zip", zipped(inner))]))]))])
    assert read("a.tar", deep, "2/b.zip", "3/b.tgz", "1/b.zip", "b/text.de") == TEXT


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_leading_dot_does_not_matter(name):
    assert read(name, pack(name, [("./b/t", TEXT)]), "b/t") == TEXT
    assert read(name, pack(name, [("b/t", TEXT)]), "./b/t") == TEXT


@pytest.mark.parametrize("name", ARCHIVES)
def test_names_that_are_long_or_not_ascii(name):
    member = f"größe/{'lang/' * 60}日本語.txt"
    assert read(name, pack(name, [(member, TEXT)]), member) == TEXT


def test_lines_end_where_they_do_in_a_file(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(PACKED["a.tgz"])
    with open_member(path, "a.tgz", ["b/text.de"]) as stream:
        assert list(stream) == LINES


def test_what_is_left_unread_does_no_harm(tmp_path):
    path = tmp_path / "kept"
    for name in ARCHIVES:
        path.write_bytes(PACKED[name])
        with open_member(path, name, ["b/other.en"]) as stream:
            assert stream.read(10) == LONG[:10]


def test_mistakes_of_who_reads_are_not_taken_for_damage(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(PACKED["a.tgz"][:-100])
    with (
        pytest.raises(ValueError, match="mine") as error,
        open_member(path, "a.tgz", ["b/text.de"]),
    ):
        raise ValueError("mine")
    assert not isinstance(error.value, UserError)


def test_nothing_is_written_anywhere(tmp_path, monkeypatch):
    outside, inside = tmp_path / "outside", tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    names = ["../../outside", str(outside), "b/text.de"]
    path = tmp_path / "kept"
    for kind in ARCHIVES:
        path.write_bytes(pack(kind, [(name, TEXT) for name in names]))
        with open_member(path, kind, ["b/text.de"]) as stream:
            assert stream.read() == TEXT
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["in", "kept", "side"]


# What an archive lacks, or holds in another way


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_nearest_to_a_missing_member_are_named(name):
    message = refused(name, PACKED[name], "b/texts.de")
    assert message.startswith(f"{name}: no b/texts.de in it; near to it are b/text.de")
    message = refused(name, pack(name, [("./1", b""), ("2", b""), ("3", b""), ("4", b"")]), "text")
    assert message == f"{name}: no text in it; it holds 1, 2, 3"
    assert refused(name, pack(name, []), "text") == f"{name}: no text in it; it holds nothing"


def test_a_member_missing_from_an_inner_archive_is_told_with_the_way_there():
    data = tgz([("in.tgz", PACKED["a.tgz"])])
    assert refused("a.tgz", data, "in.tgz", "text.de").startswith("a.tgz!in.tgz: no text.de in it")


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        (entry("b", type=tarfile.DIRTYPE), "folder"),
        (entry("b", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "link"),
        (entry("b", type=tarfile.LNKTYPE, linkname="a"), "link"),
        (entry("b", type=tarfile.FIFOTYPE), "special"),
        (entry("b", type=tarfile.CHRTYPE), "special"),
    ],
)
def test_a_tar_member_that_is_no_regular_file_is_refused(info, kind):
    assert refused("a.tgz", tgz([("a", TEXT), (info, b"")]), "b") == (
        f"a.tgz!b: not a regular file: {kind}"
    )


def sparse(name, size):
    """The header of a file that is one hole."""
    block = bytearray(entry(name).tobuf(tarfile.GNU_FORMAT))
    block[156:157] = tarfile.GNUTYPE_SPARSE
    block[386:410] = b"%011o\0%011o\0" % (size, 0)
    block[483:495] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def test_a_tar_member_of_holes_is_refused_or_gone_past():
    data = sparse("b", 7 << 30) + tar([("t", TEXT)])
    with tarfile.open(fileobj=io.BytesIO(data)) as made:
        assert made.getmember("b").size == 7 << 30 and made.getmember("b").issparse()
    assert refused("a.tar", data, "b") == "a.tar!b: not a regular file: special"
    assert read("a.tar", data, "t") == read("a.tgz", gzip.compress(data), "t") == TEXT


def test_a_zip_member_that_is_no_regular_file_is_refused():
    link = zipfile.ZipInfo("b")
    link.external_attr = 0o120777 << 16
    folder = zipfile.ZipInfo("c/")
    data = zipped([(link, b"/etc/passwd"), (folder, b"")])
    assert refused("a.zip", data, "b") == "a.zip!b: not a regular file"
    assert refused("a.zip", data, "c/") == "a.zip!c/: not a regular file"


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(name):
    data = pack(name, [("b/t", TEXT), ("x", LONG), ("./b/t", TEXT[::-1]), ("u", TEXT)])
    assert refused(name, data, "b/t") == f"{name}: b/t is in it more than once"
    assert read(name, data, "u") == TEXT
    outer = tgz([(f"in/{name}", data)])
    assert refused("o.tgz", outer, f"in/{name}", "b/t").startswith(f"o.tgz!in/{name}: b/t is in")


def test_an_inner_archive_that_is_there_twice_is_refused():
    data = tgz([("in.tgz", PACKED["a.tgz"]), ("in.tgz", PACKED["a.tgz"])])
    assert refused("a.tgz", data, "in.tgz", "b/text.de") == "a.tgz: in.tgz is in it more than once"


def test_a_member_of_what_is_no_archive_is_refused():
    assert refused("a.txt", TEXT, "b").startswith("a.txt: no archive (.tar, ")
    assert refused("a.gz", gzip.compress(TEXT), "b").startswith("a.gz: no archive")
    assert refused("a.tgz", PACKED["a.tgz"], "b/text.de", "c").startswith(
        "a.tgz!b/text.de: no archive"
    )


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_without_a_member_is_refused(name):
    data = PACKED[name]
    assert refused(name, data) == f"{name}: an archive: member must name a file in it"
    outer = tar([(name, data)])
    assert refused("o.tar", outer, name).startswith(f"o.tar!{name}: an archive: member must")


# Cost


def peak(path, name, member):
    tracemalloc.start()
    with open_member(path, name, [member]) as stream:
        stream.read()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("name", ["a.tar", "a.tgz"])
def test_memory_does_not_grow_with_the_members_of_a_tar_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(archive, "_NAMES", 100)
    peaks = []
    for count in (1000, 3000):
        (tmp_path / "kept").write_bytes(pack(name, [(f"{i:09d}", b"") for i in range(count)]))
        peak(tmp_path / "kept", name, "000000001")
        peaks.append(peak(tmp_path / "kept", name, f"{count - 1:09d}"))
    assert peaks[1] < 1.1 * peaks[0]


@pytest.fixture
def taken(monkeypatch):
    """Bytes read from files."""
    counts = []
    read = archive._Disk.read

    def counted(disk, size=-1):
        data = read(disk, size)
        counts.append(len(data))
        return data

    monkeypatch.setattr(archive._Disk, "read", counted)
    return counts


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz"])
def test_a_packed_archive_is_gone_through_once_for_a_member(taken, name):
    for member, body in FILES:
        taken.clear()
        assert read(name, PACKED[name], member) == body
        assert sum(taken) == len(PACKED[name])


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_of_an_archive_with_places_to_go_to_little_more_than_the_member_is_read(taken, name):
    assert read(name, PACKED[name], "b/text.de") == TEXT
    assert sum(taken) < 50_000
