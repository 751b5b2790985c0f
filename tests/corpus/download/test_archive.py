"""Members of every kind of archive, and one line for every file that cannot be unpacked."""

import bz2
import errno
import gzip
import lzma
import random
import shutil
import subprocess
import tarfile
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
from bleuprint.corpus.download import unpacked
from bleuprint.corpus.download.archive import Damaged, open_member
from bleuprint.runtime.errors import UserError

SINGLE = {
    "t.gz": gzip.compress(LONG),
    "t.bz2": bz2.compress(LONG),
    "t.xz": lzma.compress(LONG),
}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("member", FILES, ids=lambda file: file[0])
def test_a_member_of_every_kind_of_archive(name, member):
    assert read(name, PACKED[name], member[0]) == member[1]


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_methods_of_zip_files(how):
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
def test_a_single_file_is_unpacked_by_its_extension_alone_or_as_a_member(name, packed):
    assert read(name, packed) == TEXT
    assert read("a.tgz", tgz([(f"b/{name}", packed)]), f"b/{name}") == TEXT
    assert read("a.zip", zipped([(f"b/{name}", packed)]), f"b/{name}") == TEXT


@pytest.mark.parametrize(
    "name", ["http://h/a.TGZ", "https://h/r/a.tgz?download=1", "https://h/get?file=a.tgz"]
)
def test_extensions_in_capitals_and_of_urls_with_a_query(name):
    assert read(name, PACKED["a.tgz"], "b/text.de") == TEXT


@pytest.mark.parametrize("outer", ARCHIVES)
def test_archives_in_archives(outer):
    inner = [("b/text.de", TEXT)]
    for name in ARCHIVES:
        data = pack(outer, [("x", LINES[0]), (f"in/{name}", pack(name, inner)), ("y", b"")])
        assert read(outer, data, f"in/{name}", "b/text.de") == TEXT
    deep = pack(outer, [("2/b.zip", zipped([("3/b.tgz", tgz([("1/b.zip", zipped(inner))]))]))])
    assert read(outer, deep, "2/b.zip", "3/b.tgz", "1/b.zip", "b/text.de") == TEXT


@pytest.mark.parametrize("name", ARCHIVES)
def test_names_with_a_leading_dot_and_names_that_are_long_or_not_ascii(name):
    assert read(name, pack(name, [("./b/t", TEXT)]), "b/t") == TEXT
    assert read(name, pack(name, [("b/t", TEXT)]), "./b/t") == TEXT
    member = f"größe/{'lang/' * 60}日本語.txt"
    assert read(name, pack(name, [(member, TEXT)]), member) == TEXT


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_absolute_names_and_the_last_of_two_members_of_a_zip_file():
    for name in ARCHIVES:
        assert read(name, pack(name, [("/data/t", TEXT)]), "data/t") == TEXT
    assert read("a.zip", zipped([("t", b"old"), ("u", b"x"), ("t", TEXT)]), "t") == TEXT


def test_lines_end_as_in_a_file_and_need_not_be_read_to_the_end(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(PACKED["a.tgz"])
    with open_member(path, "a.tgz", ["b/text.de"]) as stream:
        assert list(stream) == LINES
    with open_member(path, "a.tgz", ["b/other.en"]) as stream:
        assert stream.read(10) == LONG[:10]


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
    message = refused(name, PACKED[name], "b/texts.de")
    assert message.startswith(f"{name}: no b/texts.de in it; similar names are b/text.de")
    message = refused(name, pack(name, [("./1", b""), ("2", b""), ("3", b""), ("4", b"")]), "text")
    assert message == f"{name}: no text in it; it holds 1, 2, 3"
    outer = tgz([("in", b""), (f"in.{name}", PACKED[name])])
    message = refused("a.tgz", outer, f"in.{name}", "text.de")
    assert message.startswith(f"a.tgz!in.{name}: no text.de in it")


@pytest.mark.parametrize(
    "info",
    [
        entry("b", type=tarfile.DIRTYPE),
        entry("b", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        entry("b", type=tarfile.LNKTYPE, linkname="a"),
        entry("b", type=tarfile.CHRTYPE),
    ],
    ids=["folder", "symbolic link", "hard link", "device"],
)
def test_a_member_that_is_not_a_regular_file_is_refused(info):
    message = refused("a.tgz", tgz([("a", TEXT), (info, b"")]), "b")
    assert message == "a.tgz!b: not a regular file"


def test_members_go_with_archives_alone():
    assert refused("a.txt", TEXT, "b").startswith("a.txt: not an archive (.tar, ")
    assert refused("a.gz", gzip.compress(TEXT), "b").startswith("a.gz: not an archive")
    message = refused("a.tgz", PACKED["a.tgz"], "b/text.de", "c")
    assert message.startswith("a.tgz!b/text.de: not an archive")
    for name in ARCHIVES:
        assert (
            refused(name, PACKED[name])
            == f"{name}: an archive: archive_member must name a file in it"
        )


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"])
@pytest.mark.parametrize("left", [0.9, 0.5, 0.1, 0.0001])
def test_a_truncated_archive_is_named(name, left):
    data = PACKED[name][: int(len(PACKED[name]) * left)]
    assert refused(name, data, "b/last.fr").startswith(f"{name}")


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("left", [0.99999, 0.5, 0.0001, 0])
def test_a_truncated_or_empty_file_is_named(name, left):
    data = SINGLE[name][: int(len(SINGLE[name]) * left)]
    assert refused(name, data).startswith(f"{name}: truncated or damaged")
    message = refused("a.tgz", tgz([(name, data)]), name)
    assert message.startswith(f"a.tgz!{name}: truncated or damaged")


@pytest.mark.parametrize("name", [*ARCHIVES, *SINGLE])
def test_a_file_that_is_not_what_its_name_says_is_named(name):
    members = [FILES[0][0]] if name in ARCHIVES else []
    page = b"<!DOCTYPE html>\n<html>404</html>\n" * 100
    for data in (page, b"") if name in ARCHIVES else (page,):
        assert refused(name, data, *members).startswith(f"{name}: truncated or damaged, or not")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz", "a.zip", "t.gz", "t.bz2"])
def test_changed_bytes_are_an_error_in_one_line_wherever_a_checksum_covers_them(tmp_path, name):
    draw = random.Random(7)
    path = tmp_path / "kept"
    body = LONG[:3000] + TEXT
    single = {"t.gz": gzip.compress, "t.bz2": bz2.compress}
    packed = single[name](body) if name in single else pack(name, [("x", TEXT), ("b/t", body)])
    for _ in range(300):
        data = bytearray(packed)
        for _ in range(draw.choice([1, 1, 3])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            with open_member(path, name, [] if name in single else ["b/t"]) as stream:
                found = stream.read()
        except UserError as error:
            assert str(error).startswith(name) and "\n" not in str(error)
        else:
            assert found == body or name in ("a.tar", "a.tar.gz")


PROGRAMS = {"t.gz": "gzip", "t.bz2": "bzip2", "t.xz": "xz"}
PACK = {"t.gz": gzip.compress, "t.bz2": bz2.compress, "t.xz": lzma.compress}


def unpacked_by_program(name, data):
    if shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"no {PROGRAMS[name]}")
    return subprocess.run([PROGRAMS[name], "-dc"], input=data, capture_output=True, check=False)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("padding", [b"", bytes(4), bytes(1 << 19)], ids=len)
def test_all_streams_of_a_file_are_read(name, padding):
    """As pbzip2, pigz, pixz and cat write them; tapes and blocks pad with zeros."""
    parts = [LONG, b"", TEXT]
    data = b"".join(PACK[name](part) + padding for part in parts)
    assert read(name, data) == LONG + TEXT
    assert read("a.zip", zipped([(name, data)]), name) == LONG + TEXT
    if not padding or name == "t.xz":
        run = unpacked_by_program(name, data)
        assert (run.returncode, run.stdout) == (0, LONG + TEXT)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize(
    "second",
    [
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: data[1:],
        lambda _: b"\n",
        lambda _: b"<html>",
        lambda data: data[:5],
        lambda data: b"\0\0\0" + data[2:],
    ],
    ids=["bit flipped", "byte lost", "line end", "page", "cut short", "overwritten"],
)
def test_what_follows_a_stream_and_is_none_is_refused(name, second):
    """The message says how much gzip, bzip2 and xz write before they complain or end."""
    first = PACK[name](LONG)
    data = first + second(PACK[name](TEXT))
    message = refused(name, data)
    start = f"{name}: truncated or damaged, or not what its name says: what follows byte "
    assert message.startswith(f"{start}{len(first):,}, where a stream ends, cannot be unpacked (")
    kept = f"{PROGRAMS[name]} -dc writes what is before it, {len(LONG):,} bytes, if the rest may"
    assert kept in message
    assert unpacked_by_program(name, data).stdout == LONG


@pytest.mark.parametrize("name", SINGLE)
def test_damage_inside_a_later_stream_is_refused(name):
    data = PACK[name](TEXT) + PACK[name](LONG)
    for place in range(len(data) - 200_000, len(data) - 20, 50_021):
        changed = data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :]
        assert refused(name, changed).startswith(f"{name}: truncated or damaged")
    assert refused(name, data[:-1]).startswith(f"{name}: truncated or damaged")


def test_zeros_between_streams_of_xz_come_by_fours():
    one = lzma.compress(TEXT)
    message = refused("t.xz", one + bytes(6) + one)
    assert "padding of 6 zeros, which is no multiple of four" in message
    assert unpacked_by_program("t.xz", one + bytes(6) + one).returncode == 1


def test_damage_and_wrong_settings_are_different_errors():
    for name, data in (("a.tgz", PACKED["a.tgz"][:-9000]), ("a.zip", TEXT), ("a.tgz", b"")):
        with pytest.raises(Damaged):
            read(name, data, "b/last.fr")
    with pytest.raises(UserError) as error:
        read("a.tgz", PACKED["a.tgz"], "b/no")
    assert not isinstance(error.value, Damaged)


def test_an_error_of_the_disk_is_not_reported_as_damage(monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setitem(unpacked.DECOMPRESSORS, ".gz", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read("a.tgz", PACKED["a.tgz"], "b/text.de")


def test_an_error_of_the_reader_is_not_reported_as_damage(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(PACKED["a.tgz"])
    with pytest.raises(ValueError, match="mine"), open_member(path, "a.tgz", ["b/text.de"]):
        raise ValueError("mine")


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


@pytest.mark.parametrize("size", [9 << 30, 1 << 60])
def test_a_size_in_a_header_that_is_not_true_is_named(size):
    block = bytearray(entry("a").tobuf(tarfile.GNU_FORMAT))
    block[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    data = bytes(block) + tar([("t", TEXT)])
    for member in ("a", "t"):
        assert refused("a.tar", data, member).startswith("a.tar")
