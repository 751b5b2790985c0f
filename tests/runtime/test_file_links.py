"""A file gets a second name without being copied; where that is impossible, it is copied."""

import errno
import os

import pytest

from bleuprint.runtime.file_links import link_or_copy


def test_both_names_lead_to_one_file(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a\r\n")

    link_or_copy(path, tmp_path / "second")

    assert (tmp_path / "second").samefile(path)
    assert (tmp_path / "second").read_bytes() == b"a\r\n"


def test_the_target_of_a_symbolic_link_gets_the_second_name(tmp_path):
    """DVC can replace outputs by symbolic links to its cache, and removes them when it likes."""
    cached = tmp_path / "cached"
    cached.write_text("a\n")
    (tmp_path / "text").symlink_to("cached")

    link_or_copy(tmp_path / "text", tmp_path / "second")
    (tmp_path / "text").unlink()
    cached.unlink()

    assert (tmp_path / "second").read_text() == "a\n"


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_without_hard_links_the_file_is_copied(tmp_path, monkeypatch, number):
    """The errors: another file system, a file of another user, too many links, no support."""

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "text"
    path.write_bytes(b"a\n")

    link_or_copy(path, tmp_path / "second")

    assert not (tmp_path / "second").samefile(path)
    assert (tmp_path / "second").read_bytes() == b"a\n"


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        link_or_copy(tmp_path / "missing", tmp_path / "second")
