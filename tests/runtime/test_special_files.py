"""Pipes in the folders that DVC hashes: DVC would wait for them for ever."""

import os

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.special_files import HASHED, check_no_special_files


@pytest.mark.parametrize("folder", HASHED)
def test_a_pipe_in_a_folder_that_dvc_hashes_is_reported(tmp_path, folder):
    pipe = tmp_path / folder / "inner" / "pipe"
    pipe.parent.mkdir(parents=True)
    (pipe.parent / "a.txt").touch()
    os.mkfifo(pipe)

    with pytest.raises(UserError, match=rf"^{pipe}: a pipe or device, for which DVC would wait"):
        check_no_special_files(tmp_path)


def test_a_link_to_a_pipe_is_reported(tmp_path):
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "pipe")

    with pytest.raises(UserError, match="data/link: a pipe"):
        check_no_special_files(tmp_path)


def test_files_and_links_to_files_are_accepted(tmp_path):
    """DVC reads files and follows links to files; it does not wait at a link that leads nowhere."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").touch()
    (data / "link").symlink_to(data / "a.txt")
    (data / "link_to_nothing").symlink_to(tmp_path / "missing")

    check_no_special_files(tmp_path)  # Raises nothing.


def test_links_to_folders_are_not_followed(tmp_path):
    """The folder behind the link contains a pipe."""
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    os.mkfifo(tmp_path / "elsewhere" / "pipe")
    (tmp_path / "data" / "folder").symlink_to(tmp_path / "elsewhere")

    check_no_special_files(tmp_path)  # Raises nothing.


def test_only_the_given_folders_are_checked(tmp_path):
    """DVC does not read the folder work/, so it is checked only on request."""
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work" / "pipe")

    check_no_special_files(tmp_path)  # Raises nothing.
    with pytest.raises(UserError, match="work/pipe: a pipe"):
        check_no_special_files(tmp_path, ["data", "work"])
