"""Readers refuse pipes, devices and folders, for some of which they would wait for ever."""

import os
import socket
from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.regular_files import describe_non_file, read_bytes, sha256_of
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text.parallel import read_lines


def make_socket(path):
    """Create a socket at a path."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def link_to_endless_device(path):
    """Create a link to /dev/zero, which returns zeros without end."""
    path.symlink_to("/dev/zero")


def read_all_lines(path):
    """Read all lines of a text file."""
    return list(read_lines(path))


@pytest.mark.parametrize(
    ("create", "kind"),
    [
        pytest.param(Path.mkdir, "a folder", id="folder"),
        pytest.param(os.mkfifo, "a pipe or device", id="pipe"),
        pytest.param(make_socket, "a pipe or device", id="socket"),
        pytest.param(link_to_endless_device, "a pipe or device", id="device"),
    ],
)
@pytest.mark.parametrize("read", [read_json, read_bytes, sha256_of, load_yaml, read_all_lines])
def test_each_reader_refuses_what_is_not_a_regular_file(tmp_path, monkeypatch, create, kind, read):
    """A reader would wait for the writer of a pipe, and never reach the end of a device."""
    monkeypatch.chdir(tmp_path)  # The path of a socket may have about 100 characters at most.
    path = Path("x.json")
    create(path)

    with pytest.raises(UserError, match=f"^x.json: {kind}"):
        read(path)


def test_a_folder_is_described(tmp_path):
    assert describe_non_file(tmp_path) == "a folder"


def test_a_missing_file_is_described(tmp_path):
    assert describe_non_file(tmp_path / "missing") == "no such file"


def test_a_pipe_is_described_with_what_to_do(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    assert describe_non_file(pipe) == "a pipe or device. Copy its output into a file"
