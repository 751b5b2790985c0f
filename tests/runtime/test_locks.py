"""Locks between processes: waiting for them, who holds them, and file systems without locks."""

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
def test_a_file_system_without_locks_is_reported_with_its_folder(tmp_path, monkeypatch, number):
    """The library filelock would wait instead for the lock file that a killed process left."""

    def fail(*_):
        """Stand in for the system call flock on a file system without locks."""
        raise OSError(number, os.strerror(number))

    lock_file = tmp_path / "x.lock"
    lock_file.write_text("4194304\nelsewhere\n")  # Process id and host of the killed process.
    monkeypatch.setattr(fcntl, "flock", fail)

    expected = (
        rf"^{tmp_path}: its file system does not support locks \(flock: {os.strerror(number)}\)"
    )
    with pytest.raises(UserError, match=expected):
        FileLock(lock_file).acquire()


def test_all_modules_use_our_file_lock_instead_of_that_of_filelock():
    """On a file system without locks, the library's lock waits for ever for a killed process.

    Only locks.py, which defines our FileLock, uses the library; others import its Timeout.
    """
    modules = [*(ROOT / "src").rglob("*.py"), *(ROOT / "stages").glob("*.py")]
    assert len(modules) > 100
    for path in modules:
        if path.name == "locks.py":
            continue
        text = path.read_text(encoding="utf-8")
        assert "import filelock" not in text, path
        for names in re.findall(r"from filelock import (.*)", text):
            assert names == "Timeout", path


def test_a_free_lock_is_acquired_without_a_note(tmp_path, capsys):
    lock = FileLock(tmp_path / "x.lock")

    with lock.acquire_or_notify("x: another run"):
        assert lock.is_locked

    assert capsys.readouterr() == ("", "")


def test_a_lock_held_by_another_is_an_error_for_a_command_that_does_not_wait(tmp_path):
    """The id of the holder is known only if /proc/locks lists it, which a container may hide."""
    path = tmp_path / "x.lock"
    expected = (
        r"^x: another run( \(kill \d+ makes it save and end\))?\. When it has ended, run the same "
    )

    with FileLock(path), pytest.raises(UserError, match=expected):
        FileLock(path).acquire_or_notify("x: another run", should_wait=False)


def test_a_command_that_waits_for_a_lock_prints_a_note_and_then_acquires_it(
    tmp_path, monkeypatch, capsys
):
    """The holder releases the lock at the moment when the waiting command prints its note."""
    path = tmp_path / "x.lock"
    holder = FileLock(path)
    holder.acquire()

    def print_message(message, kind):
        assert kind == "note"
        print(message)
        holder.release()

    monkeypatch.setattr(locks, "print_message", print_message)
    waiting_lock = FileLock(path)

    with waiting_lock.acquire_or_notify("x: another run"):
        assert waiting_lock.is_locked

    assert re.fullmatch(r"x: another run.*\. Waiting for it\n", capsys.readouterr().out)


def test_by_default_a_lock_waits_without_a_limit(tmp_path):
    """In filelock, the timeout -1 means no limit."""
    assert FileLock(tmp_path / "x.lock").timeout == -1


def test_a_lock_waits_for_at_most_its_timeout(tmp_path):
    assert FileLock(tmp_path / "x.lock", timeout=3).timeout == 3


@pytest.mark.parametrize(
    ("kind", "expected_process"),
    [pytest.param("FLOCK", 4711, id="flock"), pytest.param("POSIX", None, id="other kind")],
)
def test_the_holder_of_a_lock_is_read_from_the_list_of_linux(
    tmp_path, monkeypatch, kind, expected_process
):
    """Linux lists locks in /proc/locks by the inode of their file, as in proc_locks(5).

    Here, process 12 has locked another file. A process of another container is listed as 0, which
    no message can name. Our locks are of the kind FLOCK.
    """
    path = tmp_path / "x.lock"
    path.touch()
    inode = path.stat().st_ino
    listed_locks = (
        f"1: FLOCK  ADVISORY  WRITE 12 08:02:{inode}1 0 EOF\n"
        f"2: FLOCK  ADVISORY  WRITE 0 08:02:{inode} 0 EOF\n"
        f"3: {kind}  ADVISORY  WRITE 4711 08:02:{inode} 0 EOF\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: listed_locks)

    assert locks.flock_holder(path) == expected_process


def test_a_missing_lock_file_has_no_holder(tmp_path):
    assert locks.flock_holder(tmp_path / "missing.lock") is None
