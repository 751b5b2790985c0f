"""Members of every kind of archive are read; a file that cannot be unpacked gives one error."""

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
    ARCHIVE_NAMES,
    FILES,
    RANDOM_BYTES,
    TEXT,
    TEXT_LINES,
    archive_of_files,
    pack,
    read_error,
    read_member,
    tar,
    tar_entry,
    tgz,
    zip_archive,
    zstd_compress,
)
from bleuprint.corpus.download import archive
from bleuprint.corpus.download.archive import open_member
from bleuprint.runtime.errors import UserError

# How the single file of this name is compressed.
COMPRESS = {
    "t.gz": gzip.compress,
    "t.bz2": bz2.compress,
    "t.xz": lzma.compress,
    "t.zst": zstd_compress,
}


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
@pytest.mark.parametrize(("member", "content"), FILES, ids=[name for name, _ in FILES])
def test_each_member_of_every_kind_of_archive_is_read(archive_name, member, content):
    assert read_member(archive_name, archive_of_files(archive_name), member) == content


@pytest.mark.parametrize(
    "compression",
    [
        pytest.param(zipfile.ZIP_STORED, id="stored"),
        pytest.param(zipfile.ZIP_BZIP2, id="bzip2"),
        pytest.param(zipfile.ZIP_LZMA, id="LZMA"),
    ],
)
def test_zip_files_with_other_compression_methods_are_read(compression):
    content = zip_archive([("b/text.de", TEXT)], compression)

    assert read_member("a.zip", content, "b/text.de") == TEXT


def compressed_in_three_streams(name):
    """Return the compressed TEXT as pbzip2, pigz, pixz, pzstd and cat write it: in streams."""
    compress = COMPRESS[name]
    return compress(TEXT[:9]) + compress(b"") + compress(TEXT[9:])


SINGLE_FILES = [
    pytest.param("t.gz", gzip.compress(TEXT), id="gzip"),
    pytest.param("t.bz2", bz2.compress(TEXT), id="bzip2"),
    pytest.param("t.xz", lzma.compress(TEXT), id="xz"),
    pytest.param("t.gz", compressed_in_three_streams("t.gz"), id="gzip in three streams"),
    pytest.param("t.bz2", compressed_in_three_streams("t.bz2"), id="bzip2 in three streams"),
    pytest.param("t.xz", compressed_in_three_streams("t.xz"), id="xz in three streams"),
    pytest.param("t.zst", zstd_compress(TEXT), id="Zstandard"),
    pytest.param("t.zst", compressed_in_three_streams("t.zst"), id="Zstandard in three frames"),
    pytest.param("t.de", TEXT, id="not compressed"),
    pytest.param("t.gzip", TEXT, id="not compressed, name ends in .gzip"),
    pytest.param("t.gz.txt", TEXT, id="not compressed, name contains .gz"),
]


@pytest.mark.parametrize(("name", "content"), SINGLE_FILES)
def test_a_single_file_is_decompressed_as_its_name_says(name, content):
    assert read_member(name, content) == TEXT


@pytest.mark.parametrize(("name", "content"), SINGLE_FILES)
def test_a_member_is_decompressed_as_its_name_says(name, content):
    member = f"b/{name}"

    assert read_member("a.tgz", tgz([(member, content)]), member) == TEXT
    assert read_member("a.zip", zip_archive([(member, content)]), member) == TEXT


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://h/a.TGZ", id="capitals"),
        pytest.param("https://h/r/a.tgz?download=1", id="query after the name"),
        pytest.param("https://h/get?file=a.tgz", id="name in the query"),
    ],
)
def test_the_kind_of_an_archive_is_recognized_in_a_url(url):
    assert read_member(url, archive_of_files("a.tgz"), "b/text.de") == TEXT


@pytest.mark.parametrize("outer_name", ARCHIVE_NAMES)
@pytest.mark.parametrize("inner_name", ARCHIVE_NAMES)
def test_a_member_of_an_archive_in_an_archive_is_read(outer_name, inner_name):
    inner = pack(inner_name, [("b/text.de", TEXT)])
    outer = pack(outer_name, [("x", TEXT_LINES[0]), (f"in/{inner_name}", inner), ("y", b"")])

    assert read_member(outer_name, outer, f"in/{inner_name}", "b/text.de") == TEXT


@pytest.mark.parametrize("outer_name", ARCHIVE_NAMES)
def test_a_member_four_archives_deep_is_read(outer_name):
    """TEXT is in a zip archive, in a tar archive, in a zip archive, in the outer archive."""
    innermost = zip_archive([("b/text.de", TEXT)])
    middle = tgz([("1/b.zip", innermost)])
    second = zip_archive([("3/b.tgz", middle)])
    outer = pack(outer_name, [("2/b.zip", second)])

    content = read_member(outer_name, outer, "2/b.zip", "3/b.tgz", "1/b.zip", "b/text.de")

    assert content == TEXT


LONG_NAME = f"größe/{'lang/' * 60}日本語.txt"


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
@pytest.mark.parametrize(
    ("name_in_archive", "requested_name"),
    [
        pytest.param("./b/t", "b/t", id="./ in the archive"),
        pytest.param("b/t", "./b/t", id="./ in the settings"),
        pytest.param(LONG_NAME, LONG_NAME, id="more than 100 characters"),
        pytest.param("/b/t", "b/t", id="/ in the archive"),
    ],
)
def test_a_member_is_found_by_its_path(archive_name, name_in_archive, requested_name):
    content = pack(archive_name, [(name_in_archive, TEXT)])

    assert read_member(archive_name, content, requested_name) == TEXT


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_last_of_two_zip_members_with_the_same_name_is_read():
    content = zip_archive([("t", b"old"), ("u", b"x"), ("t", TEXT)])

    assert read_member("a.zip", content, "t") == TEXT


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
def test_reading_a_member_writes_no_file(tmp_path, monkeypatch, archive_name):
    """Names in an archive may lead out of the current folder; unpacking would follow them."""
    current_folder = tmp_path / "in" / "side"
    current_folder.mkdir(parents=True)
    monkeypatch.chdir(current_folder)
    names = ["../../outside", str(tmp_path / "outside"), "b/text.de"]
    path = tmp_path / "archive"
    path.write_bytes(pack(archive_name, [(name, TEXT) for name in names]))

    with open_member(path, archive_name, ["b/text.de"]) as stream:
        assert stream.read() == TEXT

    # The file outside, at any of these places, would have been written by unpacking.
    names_after = sorted(file.name for file in tmp_path.rglob("*"))
    assert names_after == ["archive", "in", "side"]


# Errors


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
def test_the_error_for_a_missing_member_lists_similar_names(archive_name):
    """The archive contains the file b/text.de; the settings ask for b/texts.de by mistake."""
    message = read_error(archive_name, archive_of_files(archive_name), "b/texts.de")

    assert message.startswith(
        f"{archive_name}: this archive contains no file b/texts.de. Similar names: b/text.de"
    )


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
def test_the_error_for_a_missing_member_lists_three_names_if_none_is_similar(archive_name):
    """The archive contains four files: 1, 2, 3 and 4; the settings ask for `text`."""
    content = pack(archive_name, [("./1", b""), ("2", b""), ("3", b""), ("4", b"")])

    message = read_error(archive_name, content, "text")

    assert (
        message == f"{archive_name}: this archive contains no file text. First names in it: 1, 2, 3"
    )


@pytest.mark.parametrize("inner_name", ARCHIVE_NAMES)
def test_the_error_for_a_missing_member_names_the_archive_in_an_archive(inner_name):
    """The inner archive contains b/text.de, but not text.de."""
    inner = archive_of_files(inner_name)
    outer = tgz([("in", b""), (f"in.{inner_name}", inner)])

    message = read_error("a.tgz", outer, f"in.{inner_name}", "text.de")

    assert message.startswith(f"a.tgz!in.{inner_name}: this archive contains no file text.de")


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
def test_an_archive_without_archive_member_in_the_settings_is_refused(archive_name):
    message = read_error(archive_name, archive_of_files(archive_name))

    start = f"{archive_name}: this is an archive. Name a file in it by archive_member. If "
    assert message.startswith(start)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(tarfile.DIRTYPE, id="folder"),
        pytest.param(tarfile.SYMTYPE, id="symbolic link"),
        pytest.param(tarfile.CHRTYPE, id="device"),
    ],
)
def test_a_member_that_is_not_a_regular_file_is_refused(kind):
    """A folder or device has no text; a link could lead to a file outside of the archive."""
    info = tar_entry("b", type=kind, linkname="/etc/passwd")

    message = read_error("a.tgz", tgz([("a", TEXT), (info, b"")]), "b")

    assert message.startswith("a.tgz!b: not a regular file, but a folder or link. ")


def test_a_member_of_a_file_that_is_no_archive_is_refused():
    assert read_error("a.txt", TEXT, "b").startswith("a.txt: not an archive (.tar, ")


def test_a_member_of_a_member_that_is_no_archive_is_refused():
    message = read_error("a.tgz", archive_of_files("a.tgz"), "b/text.de", "c")

    assert message.startswith("a.tgz!b/text.de: not an archive")


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
@pytest.mark.parametrize("share", [0.9, 0.5, 0.0001, 0])
def test_an_archive_of_which_only_the_start_is_there_is_named(archive_name, share):
    content = archive_of_files(archive_name)
    content = content[: int(len(content) * share)]

    assert read_error(archive_name, content, "b/last.fr").startswith(archive_name)


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("share", [0.9, 0.5, 0.0001])
def test_a_compressed_file_that_is_cut_short_is_named_alone_and_as_a_member(name, share):
    """A download that broke off must not become a shorter text."""
    # Random bytes cannot be compressed: the compressed file is about as long as they are.
    content = COMPRESS[name](RANDOM_BYTES)[: int(len(RANDOM_BYTES) * share)]

    message = read_error(name, content)
    message_as_member = read_error("a.tgz", tgz([(name, content)]), name)

    assert message.startswith(f"{name}: cannot be unpacked")
    assert message_as_member.startswith(f"a.tgz!{name}: cannot be unpacked")


def damaged_streams(stream):
    """Return the second stream of a compressed file in forms that are damaged."""
    return {
        "first bit flipped": bytes([stream[0] ^ 1]) + stream[1:],
        "first byte lost": stream[1:],
        "web page": b"<html>",
        "cut short": stream[:5],
        "start overwritten": b"\0\0\0" + stream[2:],
    }


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("damage", damaged_streams(TEXT))
def test_damage_after_the_first_stream_of_a_compressed_file_is_refused(name, damage):
    """Programs such as pigz write a compressed file as several streams, one after the other.

    Without an error, the text of the damaged second stream would be missing.
    """
    first_stream = COMPRESS[name](RANDOM_BYTES)
    second_stream = COMPRESS[name](TEXT)

    message = read_error(name, first_stream + damaged_streams(second_stream)[damage])

    assert message.startswith(f"{name}: cannot be unpacked")


# A .zst file has no padding.
@pytest.mark.parametrize("name", ["t.gz", "t.bz2", "t.xz"])
@pytest.mark.parametrize(
    "padding", [pytest.param(bytes(4), id="4 bytes"), pytest.param(bytes(1 << 19), id="512 KiB")]
)
def test_zeros_between_and_after_streams_are_padding(name, padding):
    """A compressed file may consist of several streams; programs fill up disk blocks with zeros."""
    compress = COMPRESS[name]
    streams = [compress(RANDOM_BYTES), compress(b""), compress(TEXT)]
    content = b"".join(stream + padding for stream in streams)

    assert read_member(name, content) == RANDOM_BYTES + TEXT


@pytest.mark.parametrize(
    ("name", "members"),
    [(name, ["b/other.en"]) for name in ARCHIVE_NAMES] + [(name, []) for name in COMPRESS],
    ids=[*ARCHIVE_NAMES, *COMPRESS],
)
def test_a_web_page_under_the_name_of_an_archive_is_refused(name, members):
    page = b"<!DOCTYPE html>\n<html>404</html>\n" * 100

    assert read_error(name, page, *members).startswith(f"{name}: cannot be unpacked")


def change_bytes(generator, content):
    """Return content of which one or three bytes are changed to random ones."""
    changed = bytearray(content)
    for _ in range(generator.choice([1, 1, 3])):
        changed[generator.randrange(len(changed))] = generator.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "members", "has_checksum"),
    [
        pytest.param("a.tar", ["b/t"], False, id="tar"),
        # The checksum of gzip is at the end of the archive, behind the member.
        pytest.param("a.tar.gz", ["b/t"], False, id="tar.gz"),
        pytest.param("a.tar.xz", ["b/t"], True, id="tar.xz"),
        pytest.param("a.zip", ["b/t"], True, id="zip"),
        pytest.param("t.gz", [], True, id="gz"),
        pytest.param("t.bz2", [], True, id="bz2"),
    ],
)
def test_changed_bytes_are_an_error_or_do_not_matter(name, members, has_checksum):
    """Damage must not change the text silently, if the format has a checksum to detect it.

    `members` is the path of the file in the archive; it is empty for a single compressed file.
    """
    generator = random.Random(7)
    text = RANDOM_BYTES[:3000] + TEXT
    content = pack(name, [("x", TEXT), ("b/t", text)]) if members else COMPRESS[name](text)

    for _ in range(300):
        changed_content = change_bytes(generator, content)
        try:
            text_read = read_member(name, changed_content, *members)
        except UserError as error:
            assert str(error).startswith(name)
            assert "\n" not in str(error)
        else:
            if has_checksum:
                assert text_read == text


def test_a_disk_error_is_not_reported_as_damage(monkeypatch):
    """Deleting and downloading the file again, the advice for damage, would not help."""

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    # Opening any .gz file fails as on a broken disk.
    monkeypatch.setitem(archive._OPENERS, ".gz", fail)

    with pytest.raises(OSError, match="Input/output error"):
        read_member("a.gz", b"")


def test_an_exception_raised_while_a_member_is_open_is_not_reported_as_damage(tmp_path):
    """The fault is in the code that uses the member, not in the archive."""
    path = tmp_path / "archive"
    path.write_bytes(archive_of_files("a.tgz"))
    member = open_member(path, "a.tgz", ["b/text.de"])

    with pytest.raises(ValueError, match="fault of the caller"), member:
        raise ValueError("fault of the caller")


def tar_header_with_size(name, size):
    """Return the header of a tar member that says a size, with a valid checksum."""
    header = bytearray(tar_entry(name).tobuf(tarfile.GNU_FORMAT))
    header[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    # The checksum is computed with spaces in its place.
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


@pytest.mark.parametrize("size", [9 << 30, 1 << 60])
@pytest.mark.parametrize("member", ["a", "t"])
def test_a_tar_header_that_says_a_wrong_size_is_reported(size, member):
    """The reader must not allocate what the header says, 9 GiB and more."""
    content = tar_header_with_size("a", size) + tar([("t", TEXT)])

    assert read_error("a.tar", content, member).startswith("a.tar")


def test_an_encrypted_zip_member_is_refused():
    """The message must say so, instead of reporting the file as damaged."""
    content = bytearray(zip_archive([("t", TEXT)]))
    # Python cannot write encrypted archives. The lowest bit of a file's flags marks it as
    # encrypted; the flags are in the central directory and in the header of the file.
    content[content.index(b"PK\1\2") + 8] |= 1
    content[6] |= 1

    message = read_error("a.zip", bytes(content), "t")

    assert message.startswith("a.zip!t: ")
    assert "encrypted" in message


def test_a_zip_member_with_an_unknown_compression_method_is_refused():
    """Windows writes large archives with Deflate64, which Python cannot read."""
    deflate64 = 9
    content = bytearray(zip_archive([("t", TEXT)]))
    # Python cannot write Deflate64. The number of the method is in the central directory and in
    # the header of the file.
    content[content.index(b"PK\1\2") + 10] = deflate64
    content[8] = deflate64

    message = read_error("a.zip", bytes(content), "t")

    assert message.startswith("a.zip!t: ")
    assert "method" in message


@pytest.mark.parametrize(
    ("form_in_archive", "requested_form"), [("NFD", "NFC"), ("NFC", "NFD"), ("NFD", "NFD")]
)
@pytest.mark.parametrize(("archive_name", "make_archive"), [("a.zip", zip_archive), ("a.tgz", tgz)])
def test_a_member_is_found_in_both_forms_of_unicode(
    archive_name, make_archive, form_in_archive, requested_form
):
    """On macOS, ü is u and a combining accent (NFD); on other systems, one character (NFC)."""
    name_in_archive = unicodedata.normalize(form_in_archive, "daten/übung.de")
    requested_name = unicodedata.normalize(requested_form, "daten/übung.de")
    content = make_archive([("daten/ubung.de", b"other"), (name_in_archive, TEXT)])

    assert read_member(archive_name, content, requested_name) == TEXT
