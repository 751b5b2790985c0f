"""Files and folders that appear only when they are complete, even if a process is killed."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.runtime.atomic_files import atomic_file, atomic_folder


def names_in(folder):
    """Return the names of the files and folders directly in a folder."""
    return {path.name for path in folder.iterdir()}


def paths_below(folder):
    """Return the relative paths of everything in a folder and its subfolders, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def id_of_ended_process():
    """Return the process id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_writing_a_folder_removes_what_a_killed_process_left(tmp_path):
    """A process writes the folder x under the temporary name .x.partial-PROCESS_ID."""
    leftover = tmp_path / f".x.partial-{id_of_ended_process()}"
    leftover.mkdir()

    with atomic_folder(tmp_path / "x") as folder:
        (folder / "a").touch()

    assert paths_below(tmp_path) == ["x", "x/a"]


def test_the_temporary_folder_of_a_running_process_is_kept(tmp_path):
    """Two processes may write the same folder: neither may remove the work of the other."""
    other_process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    temporary_folder = tmp_path / f".x.partial-{other_process.pid}"
    temporary_folder.mkdir()

    with atomic_folder(tmp_path / "x"):
        pass
    names_while_it_runs = names_in(tmp_path)
    other_process.communicate(b"\n")  # The line that input() waits for: the process ends.
    with atomic_folder(tmp_path / "x"):
        pass
    names_after_it_ended = names_in(tmp_path)

    assert names_while_it_runs == {"x", temporary_folder.name}
    assert names_after_it_ended == {"x"}


def test_writing_one_file_keeps_the_temporary_files_of_another(tmp_path):
    leftover_of_x = f".x.partial-{id_of_ended_process()}"
    (tmp_path / leftover_of_x).touch()

    with atomic_file(tmp_path / "y") as file:
        file.touch()

    assert names_in(tmp_path) == {"y", leftover_of_x}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(".x.partial-1.swp", id="backup of an editor"),
        pytest.param(".x.partial-99999999999999999999", id="too large for a process id"),
    ],
)
def test_a_file_that_only_resembles_a_temporary_file_is_kept(tmp_path, name):
    """Temporary files are named .x.partial-PROCESS_ID; files of other programs are not removed."""
    (tmp_path / name).touch()

    with atomic_file(tmp_path / "x") as file:
        file.touch()

    assert names_in(tmp_path) == {"x", name}


def test_a_new_folder_replaces_all_files_of_the_old_one(tmp_path):
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "old").touch()

    with atomic_folder(tmp_path / "x") as folder:
        (folder / "new").touch()

    assert paths_below(tmp_path) == ["x", "x/new"]


def test_an_error_while_a_folder_is_written_keeps_the_old_folder(tmp_path):
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "old").touch()

    with pytest.raises(ValueError, match="seven"), atomic_folder(tmp_path / "x") as folder:
        (folder / "new").touch()
        raise ValueError("seven")

    assert paths_below(tmp_path) == ["x", "x/old"]


def test_a_failing_rename_keeps_the_old_folder(tmp_path, monkeypatch):
    """A folder is replaced by two renames: the old one gets another name, the new one gets its.

    Here the second rename fails, and the old folder must get its name back.
    """
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "old").touch()
    rename = Path.rename

    def fail_to_rename_the_new_folder(self, target):
        # The new folder is .x.partial-PROCESS_ID, the old one .x.partial-PROCESS_ID.old.
        if ".partial-" in self.name and not self.name.endswith(".old"):
            raise OSError(errno.EIO, "Input/output error", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_to_rename_the_new_folder)

    with pytest.raises(OSError, match="Input/output"), atomic_folder(tmp_path / "x"):
        pass

    assert paths_below(tmp_path) == ["x", "x/old"]


def test_a_link_is_replaced_and_the_folder_it_leads_to_is_kept(tmp_path):
    """Users link output folders to another disk, whose files must not be removed."""
    target = tmp_path / "other disk"
    target.mkdir()
    (target / "file").write_text("kept")
    output = tmp_path / "output"
    output.symlink_to("other disk")

    with atomic_folder(output) as partial_folder:
        (partial_folder / "new").write_text("new")

    assert names_in(tmp_path) == {"other disk", "output"}  # Nothing temporary is left.
    assert not output.is_symlink()
    assert names_in(output) == {"new"}
    assert (target / "file").read_text() == "kept"
