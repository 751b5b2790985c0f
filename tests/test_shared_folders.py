"""Folders that tests share are made once, and a test that changes one is found out."""

import os
import time

import pytest

from shared_folders import SharedFolders, left_unchanged


def make_folder(folder):
    """Make a folder with two files, one in a folder within it, and a link to a folder elsewhere.

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
    """Change a file, and write its old text again."""
    path = folder / "params.yaml"
    text = path.read_text()
    path.write_text("seeds: [2]\n")
    path.write_text(text)


def replace_by_equal_file(folder):
    """Replace a file by another one with equal content and modification time."""
    path = folder / "params.yaml"
    status = path.stat()
    new_path = folder / "new"
    new_path.write_text(path.read_text())
    os.utime(new_path, ns=(status.st_atime_ns, status.st_mtime_ns))
    new_path.rename(path)


def change_only_the_size(folder):
    """Change a file, and set its old modification time."""
    path = folder / "data" / "train.de"
    status = path.stat()
    path.write_text("eine Katze\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def change_link(folder):
    """Make a link lead to another folder."""
    (folder / "src").unlink()
    (folder / "src").symlink_to(folder / "data")


def remove_file(folder):
    """Remove a file."""
    (folder / "params.yaml").unlink()


def add_file(folder):
    """Add a file."""
    (folder / "data" / "valid.de").write_text("")


def add_empty_folder(folder):
    """Add a folder."""
    (folder / "models").mkdir()


def add_file_named_index(folder):
    """Add a file with the name of Git's index, which may change, in another folder."""
    (folder / "index").write_text("")


def add_broken_link(folder):
    """Add a link that leads nowhere."""
    (folder / "lock").symlink_to("missing")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(change_and_undo, "changed: params.yaml", id="changed and undone"),
        pytest.param(replace_by_equal_file, "changed: params.yaml", id="replaced"),
        pytest.param(change_only_the_size, "changed: data/train.de", id="another size"),
        pytest.param(change_link, "changed: src", id="a link to another folder"),
        pytest.param(remove_file, "removed: params.yaml", id="removed"),
        pytest.param(add_file, "added: data/valid.de", id="added"),
        pytest.param(add_empty_folder, "added: models", id="an empty folder added"),
        pytest.param(add_file_named_index, "added: index", id="another index than Git's"),
        pytest.param(add_broken_link, "added: lock", id="a link added"),
    ],
)
def test_a_change_of_a_shared_folder_is_an_error_that_names_the_file(tmp_path, change, message):
    """Tests may share a folder that takes long to make, but must leave it unchanged.

    `left_unchanged` compares the folder before and after its block.
    """
    folder = tmp_path / "folder"
    make_folder(folder)

    with (
        pytest.raises(AssertionError, match="must copy them first") as error,
        left_unchanged(folder),
    ):
        change(folder)

    _, *changes = str(error.value).splitlines()
    assert changes == [message]


@pytest.fixture
def git_folder(tmp_path):
    """Return a folder made by `make_folder` with an index of Git."""
    folder = tmp_path / "folder"
    make_folder(folder)
    (folder / ".git").mkdir()
    (folder / ".git" / "index").write_text("")
    return folder


def test_reading_a_file_is_no_change(git_folder):
    with left_unchanged(git_folder):
        (git_folder / "params.yaml").read_text()


def test_a_refreshed_index_of_git_is_no_change(git_folder):
    """The command `git status` writes it, though it only reads."""
    with left_unchanged(git_folder):
        (git_folder / ".git" / "index").write_text("refreshed")


def test_bytecode_of_python_is_no_change(git_folder):
    """Python writes it when it imports a module."""
    with left_unchanged(git_folder):
        (git_folder / "data" / "__pycache__").mkdir()
        (git_folder / "data" / "__pycache__" / "module.pyc").write_text("")


def test_a_new_file_behind_a_link_to_another_folder_is_no_change(git_folder):
    with left_unchanged(git_folder):
        (git_folder / "src" / "module.py").write_text("")


def test_a_folder_is_made_once_for_all_processes(tmp_path):
    """pytest-xdist runs tests in several processes, its workers, each with its own SharedFolders.

    The second worker must use the folder that the first one has made.
    """
    new_folders = []

    def make_and_count(folder):
        make_folder(folder)
        new_folders.append(folder)

    first_worker = SharedFolders(tmp_path)
    second_worker = SharedFolders(tmp_path)
    first_folder = first_worker.folder("toy", make_and_count)
    second_folder = second_worker.folder("toy", make_and_count)

    assert first_folder == second_folder
    assert len(new_folders) == 1
    # Raises an error if the folder was changed.
    first_worker.check()
    second_worker.check()


def test_a_change_before_another_worker_uses_the_folder_is_an_error_of_both(tmp_path):
    """A worker is a process of pytest-xdist. Both use the folder toy; the first one changes it."""
    first_worker = SharedFolders(tmp_path)
    folder = first_worker.folder("toy", make_folder)
    (folder / "params.yaml").unlink()

    second_worker = SharedFolders(tmp_path)
    second_worker.folder("toy", make_folder)

    for worker in (first_worker, second_worker):
        with pytest.raises(AssertionError, match="shared-toy: removed: params"):
            worker.check()


def make_empty_folder(folder):
    """Make a folder without a file."""
    folder.mkdir()


def test_an_error_names_the_changes_of_all_shared_folders(tmp_path):
    """Two shared folders, clean and dvc, are empty at first; a test adds a file to each."""
    worker = SharedFolders(tmp_path)
    for name in ("clean", "dvc"):
        folder = worker.folder(name, make_empty_folder)
        (folder / "note.txt").write_text("")

    with pytest.raises(AssertionError) as error:
        worker.check()

    _, *changes = str(error.value).splitlines()
    assert changes == ["shared-clean: added: note.txt", "shared-dvc: added: note.txt"]


def test_a_folder_whose_making_failed_half_way_is_made_again(tmp_path):
    """The first attempt leaves half.txt behind; the second one must begin with an empty folder."""

    def fail_half_way(folder):
        folder.mkdir()
        (folder / "half.txt").write_text("")
        raise OSError

    worker = SharedFolders(tmp_path)
    with pytest.raises(OSError):
        worker.folder("toy", fail_half_way)

    folder = worker.folder("toy", make_empty_folder)

    assert list(folder.iterdir()) == []
    worker.check()
