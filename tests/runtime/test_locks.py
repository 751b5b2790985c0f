"""On a file system without locks a command names its folder; flock is made to fail."""

import errno
import fcntl
import os
import re
from pathlib import Path

import pytest

from bleuprint.runtime import locks
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


def test_who_does_not_wait_for_a_lock_is_told_to_come_again(tmp_path):
    path = tmp_path / "x.lock"
    said = (
        r"^x: another run( \(kill \d+ makes it save and end\))?; when it has ended, run the same "
    )
    with FileLock(path).acquire_or_notify("x: never said"), pytest.raises(UserError, match=said):
        FileLock(path).acquire_or_notify("x: another run", wait=False)


def test_who_waits_for_a_lock_says_so_and_gets_it(tmp_path, monkeypatch, capsys):
    """The other one ends while this one says that it waits."""
    path = tmp_path / "x.lock"
    other = FileLock(path)
    other.acquire()

    def print_message(message, kind):
        assert kind == "note"
        print(message)
        other.release()

    monkeypatch.setattr(locks, "print_message", print_message)
    waiting = FileLock(path)
    with waiting.acquire_or_notify("x: another run"):
        assert waiting.is_locked
    assert re.fullmatch(r"x: another run.*: waiting for it\n", capsys.readouterr().out)


def test_a_lock_waits_without_a_limit_unless_one_is_given(tmp_path):
    assert FileLock(tmp_path / "x.lock").timeout == -1
    assert FileLock(tmp_path / "x.lock", timeout=3).timeout == 3


@pytest.mark.parametrize(("kind", "holder"), [("FLOCK", 4711), ("POSIX", None)])
def test_the_process_that_holds_a_lock_is_the_one_that_the_kernel_names(
    tmp_path, monkeypatch, kind, holder
):
    """As in proc_locks(5); a process of another container is 0 there."""
    path = tmp_path / "x.lock"
    path.touch()
    inode = path.stat().st_ino
    lines = [
        f"1: FLOCK  ADVISORY  WRITE 12 08:02:{inode}1 0 EOF",
        f"2: FLOCK  ADVISORY  WRITE 0 08:02:{inode} 0 EOF",
        f"3: {kind}  ADVISORY  WRITE 4711 08:02:{inode} 0 EOF",
    ]
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "\n".join(lines))
    assert locks.flock_holder(path) == holder
    assert locks.flock_holder(tmp_path / "missing.lock") is None
