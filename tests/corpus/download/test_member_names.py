"""The files in an archive are listed, and a file that is not packed can seek."""

import gzip
import io
import tarfile

import pytest

from archives import (
    ARCHIVE_NAMES,
    FILES,
    TEXT,
    archive_of_files,
    pack,
    tar_entry,
    tgz,
    zip_archive,
)
from bleuprint.corpus.download.archive import member_names, open_member
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize("archive_name", ARCHIVE_NAMES)
def test_the_names_of_all_files_in_an_archive_are_listed(tmp_path, archive_name):
    path = tmp_path / "archive"
    path.write_bytes(archive_of_files(archive_name))

    assert member_names(path, archive_name) == [name for name, _ in FILES]


@pytest.mark.parametrize("outer_name", ARCHIVE_NAMES)
def test_the_names_of_the_files_of_an_archive_in_an_archive_are_listed(tmp_path, outer_name):
    path = tmp_path / "archive"
    path.write_bytes(pack(outer_name, [("x", TEXT), ("in.zip", archive_of_files("a.zip"))]))

    names = member_names(path, outer_name, ["in.zip"])

    assert names == [name for name, _ in FILES]


def test_folders_and_links_are_not_among_the_files_of_an_archive(tmp_path):
    path = tmp_path / "archive"
    folder = tar_entry("b", type=tarfile.DIRTYPE)
    link = tar_entry("l", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    path.write_bytes(tgz([(folder, b""), (link, b""), ("b/t", TEXT)]))

    assert member_names(path, "a.tgz") == ["b/t"]

    path.write_bytes(zip_archive([("b/", b""), ("b/t", TEXT)]))

    assert member_names(path, "a.zip") == ["b/t"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("a.txt", TEXT, "a.txt: not an archive (.tar, ", id="text"),
        pytest.param("a.zip", b"<html>", "a.zip: cannot be unpacked", id="web page"),
        pytest.param("a.tgz", tgz(FILES)[:9999], "a.tgz: cannot be unpacked", id="cut short"),
    ],
)
def test_the_files_of_a_damaged_archive_are_not_listed(tmp_path, name, content, message):
    path = tmp_path / "archive"
    path.write_bytes(content)

    with pytest.raises(UserError) as error:
        member_names(path, name)

    assert str(error.value).startswith(message)


def test_only_a_file_that_is_not_packed_can_seek(tmp_path):
    """A Parquet file is read from its end, so that a packed one must be unpacked first."""
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    with open_member(path, "t.de", ()) as stream:
        assert stream.seekable()
        stream.seek(-3, io.SEEK_END)
        assert stream.read() == TEXT[-3:]

    path.write_bytes(gzip.compress(TEXT))
    with open_member(path, "t.de.gz", ()) as stream:
        assert not stream.seekable()
