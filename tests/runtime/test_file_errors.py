"""Errors of the operating system name the file, whichever library raises them."""

import errno
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from bleuprint.runtime.file_errors import name_in_errors
from bleuprint.runtime.regular_files import read_bytes


def read_as_file(folder):
    """Read a folder as if it were a file; the error of the system names no path."""
    os.read(os.open(folder, os.O_RDONLY), 1)


def fail_as_rmtree(_):
    """Raise an error as shutil.rmtree does, with a path relative to the folder it removes."""
    raise OSError(errno.ESTALE, "stale", "held.json")


def fail_as_copytree(_):
    """Raise an error as shutil.copytree does, which collects the messages about all files."""
    raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")])


def save_tensors_as_file(folder):
    """Write safetensors to the path of a folder: the library is written in Rust."""
    save_file({"a": torch.zeros(1)}, folder)


def map_missing_file(folder):
    """Let torch, which is written in C++, map a file that does not exist."""
    torch.UntypedStorage.from_file(f"{folder}/missing", False, 1)


@pytest.mark.parametrize(
    ("fail", "number"),
    [
        pytest.param(fail_as_copytree, errno.ENOSPC, id="shutil.copytree"),
        pytest.param(read_as_file, errno.EISDIR, id="os.read"),
        pytest.param(fail_as_rmtree, errno.ESTALE, id="shutil.rmtree"),
        pytest.param(save_tensors_as_file, errno.EISDIR, id="safetensors"),
        pytest.param(map_missing_file, errno.ENOENT, id="torch"),
    ],
)
def test_an_operating_system_error_gets_the_path_that_the_library_omits(tmp_path, fail, number):
    """Libraries raise these errors without a path, or with one that a user cannot find."""
    with pytest.raises(OSError, match=str(tmp_path)) as raised, name_in_errors(tmp_path):
        fail(tmp_path)

    assert raised.value.errno == number
    assert raised.value.filename == str(tmp_path)


def test_an_error_that_names_another_file_keeps_its_path(tmp_path):
    with pytest.raises(FileNotFoundError, match="other/file"), name_in_errors(tmp_path):
        Path("other/file").read_bytes()


def test_an_error_of_the_code_is_raised_unchanged(tmp_path):
    with pytest.raises(ValueError, match="seven"), name_in_errors(tmp_path):
        raise ValueError("seven")


def test_a_read_error_of_the_disk_names_the_file():
    """Linux returns the error of a broken disk, EIO, for the unused address 0 in this file."""
    path = "/proc/self/mem"

    with pytest.raises(OSError, match="Input/output error") as raised:
        read_bytes(Path(path))

    assert raised.value.filename == path
