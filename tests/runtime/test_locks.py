"""On a file system without locks a command names its folder; flock is made to fail."""

import errno
import fcntl
import os

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.locks import FileLock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_one_line_names_the_folder(tmp_path, monkeypatch, number):
    """Also where a killed process left the file of a lock: nothing waits for it."""

    def flock(*_):
        raise OSError(number, os.strerror(number))

    (tmp_path / "x.lock").write_text("4194304\nelsewhere\n")
    monkeypatch.setattr(fcntl, "flock", flock)
    said = rf"^{tmp_path}: its file system has no locks \(flock: {os.strerror(number)}\)"
    with pytest.raises(UserError, match=said):
        FileLock(tmp_path / "x.lock").acquire()
