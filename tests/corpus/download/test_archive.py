"""Members of every kind of archive, and one line for every file that cannot be unpacked."""

import bz2
import errno
import gzip
import lzma
import random
import tarfile
import unicodedata
import zipfile

import pytest

from archives import (
    ARCHIVES,
    FILES,
    LINES,
    LONG,
    TEXT,
    entry,
    pack,
    packed,
    read,
    refused,
    tar,
    tgz,
    zipped,
)
from bleuprint.corpus.download import archive
from bleuprint.corpus.download.archive import open_member
from bleuprint.runtime.errors import UserError

PACK = {"t.gz": gzip.compress, "t.bz2": bz2.compress, "t.xz": lzma.compress}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("member", FILES, ids=lambda file: file[0])
def test_a_member_of_every_kind_of_archive(name, member):
    assert read(name, packed(name), member[0]) == member[1]


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_methods_of_zip_files(how):
    assert read("a.zip", zipped(FILES, how), "b/text.de") == TEXT


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        *((name, how(TEXT)) for name, how in PACK.items()),
        # several streams, as pbzip2, pigz, pixz and cat write them
        *((name, how(TEXT[:9]) + how(b"") + how(TEXT[9:])) for name, how in PACK.items()),
        *((name, TEXT) for name in ("t.de", "t.gzip", "t.gz.txt")),
    ],
)
def test_a_single_file_is_unpacked_by_its_extension_alone_or_as_a_member(name, packed):
    assert read(name, packed) == TEXT
    assert read("a.tgz", tgz([(f"b/{name}", packed)]), f"b/{name}") == TEXT
    assert read("a.zip", zipped([(f"b/{name}", packed)]), f"b/{name}") == TEXT


@pytest.mark.parametrize(
    "name", ["http://h/a.TGZ", "https://h/r/a.tgz?download=1", "https://h/get?file=a.tgz"]
)
def test_extensions_in_capitals_and_of_urls_with_a_query(name):
    assert read(name, packed("a.tgz"), "b/text.de") == TEXT


@pytest.mark.parametrize("outer", ARCHIVES)
def test_archives_in_archives(outer):
    inner = [("b/text.de", TEXT)]
    for name in ARCHIVES:
        data = pack(outer, [("x", LINES[0]), (f"in/{name}", pack(name, inner)), ("y", b"")])
        assert read(outer, data, f"in/{name}", "b/text.de") == TEXT
    deep = pack(outer, [("2/b.zip", zipped([("3/b.tgz", tgz([("1/b.zip", zipped(inner))]))]))])
    assert read(outer, deep, "2/b.zip", "3/b.tgz", "1/b.zip", "b/text.de") == TEXT


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ARCHIVES)
def test_odd_names(name):
    long = f"größe/{'lang/' * 60}日本語.txt"
    for written, asked in (("./b/t", "b/t"), ("b/t", "./b/t"), (long, long), ("/b/t", "b/t")):
        assert read(name, pack(name, [(written, TEXT)]), asked) == TEXT
    assert read("a.zip", zipped([("t", b"old"), ("u", b"x"), ("t", TEXT)]), "t") == TEXT


def test_nothing_is_extracted_to_disk(tmp_path, monkeypatch):
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


# Errors


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_missing_member_is_named_with_similar_ones(name):
    message = refused(name, packed(name), "b/texts.de")
    assert message.startswith(f"{name}: no b/texts.de in it; similar names are b/text.de")
    message = refused(name, pack(name, [("./1", b""), ("2", b""), ("3", b""), ("4", b"")]), "text")
    assert message == f"{name}: no text in it; it holds 1, 2, 3"
    outer = tgz([("in", b""), (f"in.{name}", packed(name))])
    message = refused("a.tgz", outer, f"in.{name}", "text.de")
    assert message.startswith(f"a.tgz!in.{name}: no text.de in it")
    message = f"{name}: an archive: archive_member must name a file in it"
    assert refused(name, packed(name)) == message


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE])
def test_a_member_that_is_not_a_regular_file_is_refused(kind):
    info = entry("b", type=kind, linkname="/etc/passwd")
    message = refused("a.tgz", tgz([("a", TEXT), (info, b"")]), "b")
    assert message == "a.tgz!b: not a regular file"


def test_members_go_with_archives_alone():
    assert refused("a.txt", TEXT, "b").startswith("a.txt: not an archive (.tar, ")
    message = refused("a.tgz", packed("a.tgz"), "b/text.de", "c")
    assert message.startswith("a.tgz!b/text.de: not an archive")


@pytest.mark.parametrize("left", [0.9, 0.5, 0.0001, 0])
def test_a_file_that_is_cut_short_is_named(left):
    for name in ARCHIVES:
        data = packed(name)
        assert refused(name, data[: int(len(data) * left)], "b/last.fr").startswith(name)
    for name, how in PACK.items():
        data = how(LONG)[: int(len(LONG) * left)]
        if left:
            assert refused(name, data).startswith(f"{name}: truncated or damaged")
            message = refused("a.tgz", tgz([(name, data)]), name)
            assert message.startswith(f"a.tgz!{name}: truncated or damaged")


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize(
    "second",
    [
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: data[1:],
        lambda _: b"<html>",
        lambda data: data[:5],
        lambda data: b"\0\0\0" + data[2:],
    ],
    ids=["bit flipped", "byte lost", "page", "cut short", "overwritten"],
)
def test_what_follows_a_stream_and_is_none_is_refused(name, second):
    data = PACK[name](LONG) + second(PACK[name](TEXT))
    assert refused(name, data).startswith(f"{name}: truncated or damaged")


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("padding", [bytes(4), bytes(1 << 19)], ids=len)
def test_zeros_after_a_stream_are_padding(name, padding):
    data = b"".join(PACK[name](part) + padding for part in (LONG, b"", TEXT))
    assert read(name, data) == LONG + TEXT


@pytest.mark.parametrize("name", [*ARCHIVES, *PACK])
def test_a_file_that_is_not_what_its_name_says_is_named(name):
    members = [FILES[0][0]] if name in ARCHIVES else []
    page = b"<!DOCTYPE html>\n<html>404</html>\n" * 100
    assert refused(name, page, *members).startswith(f"{name}: truncated or damaged, or not")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz", "a.zip", "t.gz", "t.bz2"])
def test_changed_bytes_are_an_error_in_one_line_wherever_a_checksum_covers_them(name):
    draw = random.Random(7)
    body = LONG[:3000] + TEXT
    archive = PACK[name](body) if name in PACK else pack(name, [("x", TEXT), ("b/t", body)])
    for _ in range(300):
        data = bytearray(archive)
        for _ in range(draw.choice([1, 1, 3])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            found = read(name, bytes(data), *([] if name in PACK else ["b/t"]))
        except UserError as error:
            assert str(error).startswith(name) and "\n" not in str(error)
        else:
            assert found == body or name in ("a.tar", "a.tar.gz")


def test_an_error_of_the_disk_is_not_reported_as_damage(monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setitem(archive._OPENERS, ".gz", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read("a.gz", b"")


def test_an_error_of_the_reader_is_not_reported_as_damage(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(packed("a.tgz"))
    opened = open_member(path, "a.tgz", ["b/text.de"])
    with pytest.raises(ValueError, match="of the reader"), opened:
        raise ValueError("of the reader")


@pytest.mark.parametrize("size", [9 << 30, 1 << 60])
@pytest.mark.parametrize("member", ["a", "t"])
def test_a_size_in_a_header_that_is_not_true_is_damage(size, member):
    block = bytearray(entry("a").tobuf(tarfile.GNU_FORMAT))
    block[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    block[148:156] = b" " * 8  # the checksum is that of the header with spaces in its place
    block[148:156] = b"%06o\0 " % sum(block)
    data = bytes(block) + tar([("t", TEXT)])
    assert refused("a.tar", data, member).startswith("a.tar")


def test_an_encrypted_zip_member_and_an_unknown_method_are_named():
    data = bytearray(zipped([("t", TEXT)]))
    data[data.index(b"PK\1\2") + 8] |= 1
    data[6] |= 1
    message = refused("a.zip", bytes(data), "t")
    assert message.startswith("a.zip!t: ") and "encrypted" in message
    data = bytearray(zipped([("t", TEXT)]))
    data[data.index(b"PK\1\2") + 10] = data[8] = 9  # Deflate64
    message = refused("a.zip", bytes(data), "t")
    assert message.startswith("a.zip!t: ") and "method" in message


@pytest.mark.parametrize(("packed", "wanted"), [("NFD", "NFC"), ("NFC", "NFD"), ("NFD", "NFD")])
@pytest.mark.parametrize(("name", "pack_as"), [("a.zip", zipped), ("a.tgz", tgz)])
def test_a_name_is_found_in_both_forms_of_unicode(name, pack_as, packed, wanted):
    """Archives made on macOS have decomposed letters."""
    file = unicodedata.normalize(packed, "daten/übung.de")
    content = pack_as([("daten/ubung.de", b"other"), (file, TEXT)])
    assert read(name, content, unicodedata.normalize(wanted, "daten/übung.de")) == TEXT
