"""Pipes below the folders that DVC hashes, for which it would wait for ever."""

import os

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.special_files import HASHED, check_no_special_files


@pytest.mark.parametrize("folder", HASHED)
def test_a_pipe_is_named(tmp_path, folder):
    pipe = tmp_path / folder / "inner" / "pipe"
    pipe.parent.mkdir(parents=True)
    (pipe.parent / "a.txt").touch()
    os.mkfifo(pipe)
    with pytest.raises(UserError, match=rf"^{pipe}: a pipe or device, which DVC would wait for"):
        check_no_special_files(tmp_path)


def test_a_link_to_a_pipe_is_named(tmp_path):
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "pipe")
    with pytest.raises(UserError, match="data/link: a pipe"):
        check_no_special_files(tmp_path)


def test_files_links_and_what_is_not_hashed_are_left_alone(tmp_path):
    for folder in ("data", "work", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / "a.txt").touch()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "data" / "a.txt")
    (tmp_path / "data" / "to_nothing").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "work" / "pipe")
    os.mkfifo(tmp_path / "elsewhere" / "pipe")
    (tmp_path / "data" / "folder").symlink_to(tmp_path / "elsewhere")
    check_no_special_files(tmp_path)
    with pytest.raises(UserError, match="work/pipe: a pipe"):
        check_no_special_files(tmp_path, ["data", "work"])
