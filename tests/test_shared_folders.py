"""Folders that tests share are made once, and a test that changes one is found out."""

import os
import time

import pytest

from shared_folders import SharedFolders, left_unchanged


def make(folder):
    """A folder with two files, one in a folder of its own, and a link to a folder elsewhere.

    The files are an hour old, so that a change shows where a file system counts time in seconds.
    """
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "train.de").write_text("ein Hund\n")
    (folder / "params.yaml").write_text("seeds: [1]\n")
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (folder / "src").symlink_to(elsewhere)
    an_hour_ago = time.time() - 3600
    for path in (folder / "data" / "train.de", folder / "params.yaml"):
        os.utime(path, (an_hour_ago, an_hour_ago))


def change_and_undo(folder):
    path = folder / "params.yaml"
    text = path.read_text()
    path.write_text("seeds: [2]\n")
    path.write_text(text)


def replace_by_the_same(folder):
    """By a file with equal content and modification time."""
    path = folder / "params.yaml"
    status = path.stat()
    new = folder / "new"
    new.write_text(path.read_text())
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.rename(path)


def change_only_the_size(folder):
    path = folder / "data" / "train.de"
    status = path.stat()
    path.write_text("eine Katze\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def link_to_another_folder(folder):
    (folder / "src").unlink()
    (folder / "src").symlink_to(folder / "data")


CHANGES = [
    (change_and_undo, "changed: params.yaml"),
    (replace_by_the_same, "changed: params.yaml"),
    (change_only_the_size, "changed: data/train.de"),
    (link_to_another_folder, "changed: src"),
    (lambda folder: (folder / "params.yaml").unlink(), "removed: params.yaml"),
    (lambda folder: (folder / "data" / "valid.de").write_text(""), "added: data/valid.de"),
    (lambda folder: (folder / "models").mkdir(), "added: models"),
    (lambda folder: (folder / "index").write_text(""), "added: index"),
    (lambda folder: (folder / "lock").symlink_to("missing"), "added: lock"),
]
IDS = [
    "changed and undone",
    "replaced",
    "another size",
    "a link to another folder",
    "removed",
    "added",
    "an empty folder added",
    "another index than Git's",
    "a link added",
]


@pytest.mark.parametrize(("change", "expected"), CHANGES, ids=IDS)
def test_a_change_is_named(tmp_path, change, expected):
    folder = tmp_path / "folder"
    make(folder)
    with (
        pytest.raises(AssertionError, match="must copy them first") as raised,
        left_unchanged(folder),
    ):
        change(folder)
    _, *changes = str(raised.value).splitlines()
    assert changes == [expected]


def test_reading_caches_of_tools_and_files_elsewhere_are_no_changes(tmp_path):
    """Reading may compile Python, and `git status` refreshes Git's index."""
    folder = tmp_path / "folder"
    make(folder)
    (folder / ".git").mkdir()
    (folder / ".git" / "index").write_text("")
    with left_unchanged(folder):
        (folder / "params.yaml").read_text()
        (folder / ".git" / "index").write_text("refreshed")
        (folder / "data" / "__pycache__").mkdir()
        (folder / "data" / "__pycache__" / "module.pyc").write_text("")
        (folder / "src" / "module.py").write_text("")


def test_a_folder_is_made_once_for_all_processes(tmp_path):
    made = []

    def make_and_count(folder):
        make(folder)
        made.append(folder)

    first = SharedFolders(tmp_path)
    second = SharedFolders(tmp_path)
    assert first.made("toy", make_and_count) == second.made("toy", make_and_count)
    assert len(made) == 1
    first.check()
    second.check()


def test_a_change_before_another_process_begins_to_read_is_seen_by_both(tmp_path):
    first = SharedFolders(tmp_path)
    folder = first.made("toy", make)
    (folder / "params.yaml").unlink()
    second = SharedFolders(tmp_path)
    second.made("toy", make)
    for folders in (first, second):
        with pytest.raises(AssertionError, match="shared-toy: removed: params"):
            folders.check()


def test_changes_of_all_shared_folders_are_named_at_once(tmp_path):
    folders = SharedFolders(tmp_path)
    for name in ("clean", "dvc"):
        folder = folders.made(name, lambda folder: folder.mkdir())
        (folder / "note.txt").write_text("")
    with pytest.raises(AssertionError) as raised:
        folders.check()
    _, *changes = str(raised.value).splitlines()
    assert changes == ["shared-clean: added: note.txt", "shared-dvc: added: note.txt"]


def test_a_folder_that_was_not_made_to_its_end_is_made_again(tmp_path):
    def fail_half_way(folder):
        folder.mkdir()
        (folder / "half.txt").write_text("")
        raise OSError

    folders = SharedFolders(tmp_path)
    with pytest.raises(OSError):
        folders.made("toy", fail_half_way)
    folder = folders.made("toy", lambda folder: folder.mkdir())
    assert list(folder.iterdir()) == []
    folders.check()
