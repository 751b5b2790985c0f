"""On a file system without locks a command names its folder; flock is made to fail."""

import errno
import fcntl
import os
import re

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.locks import FileLock
from root import ROOT


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


def test_every_lock_of_the_package_reports_a_file_system_without_locks():
    """By our FileLock: the one of filelock would wait for a file that a killed process left."""
    modules = [*(ROOT / "src").rglob("*.py"), *(ROOT / "stages").glob("*.py")]
    assert len(modules) > 100
    for path in modules:
        if path.name == "locks.py":
            continue
        text = path.read_text(encoding="utf-8")
        assert "import filelock" not in text, path
        for names in re.findall(r"from filelock import (.*)", text):
            assert names == "Timeout", path
