import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from bleuprint.runtime.files import system_errors, whole_file, whole_folder


def test_what_killed_processes_left_goes_and_what_others_write_stays(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    at_work = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    for process in (done, at_work):
        (tmp_path / f".x.partial-{process.pid}").mkdir()
    with whole_folder(tmp_path / "x") as folder:
        (folder / "a").touch()
    with whole_file(tmp_path / "y") as file:
        file.touch()
    assert {path.name for path in tmp_path.iterdir()} == {"x", "y", f".x.partial-{at_work.pid}"}
    at_work.communicate(b"\n")
    with whole_folder(tmp_path / "x"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"x", "y"}


@pytest.mark.parametrize("name", [".x.partial-1.swp", ".x.partial-99999999999999999999"])
def test_files_that_only_look_like_those_of_a_process_stay(tmp_path, name):
    (tmp_path / name).touch()
    with whole_file(tmp_path / "x") as file:
        file.touch()
    assert {path.name for path in tmp_path.iterdir()} == {"x", name}


def test_a_rename_that_fails_leaves_the_folder_before(tmp_path, monkeypatch):
    with whole_folder(tmp_path / "x") as folder:
        (folder / "a").touch()
    rename = Path.rename

    def fails(self, target):
        if ".partial-" in self.name and not self.name.endswith(".old"):
            raise OSError(errno.EIO, "Input/output error", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="Input/output"), whole_folder(tmp_path / "x"):
        pass
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["x", "x/a"]


def test_a_link_to_a_folder_is_replaced_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("kept")
    (tmp_path / "output").symlink_to("elsewhere")
    with whole_folder(tmp_path / "output") as partial:
        (partial / "new").write_text("new")
    assert not (tmp_path / "output").is_symlink()
    assert [path.name for path in (tmp_path / "output").iterdir()] == ["new"]
    assert (tmp_path / "elsewhere" / "file").read_text() == "kept"


def read_a_folder(path):
    os.read(os.open(path, os.O_RDONLY), 1)


def fail_in_a_folder(_):
    """As shutil.rmtree does, which names a file relative to the folder that it removes."""
    raise OSError(errno.ESTALE, "stale", "held.json")


def copy_a_folder(_):
    """As shutil.copytree does, which collects the errors of all files."""
    raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")])


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (copy_a_folder, errno.ENOSPC),
        (read_a_folder, errno.EISDIR),
        (fail_in_a_folder, errno.ESTALE),
        (lambda path: save_file({"a": torch.zeros(1)}, path), errno.EISDIR),  # of Rust
        (lambda path: torch.UntypedStorage.from_file(f"{path}/none", False, 1), errno.ENOENT),
    ],
)
def test_an_error_of_the_system_names_its_path_whoever_raises_it(tmp_path, call, number):
    with pytest.raises(OSError, match=str(tmp_path)) as raised, system_errors(tmp_path):
        call(tmp_path)
    assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path))


def test_other_errors_stay_as_they_are(tmp_path):
    with pytest.raises(FileNotFoundError, match="other/file"), system_errors(tmp_path):
        Path("other/file").read_bytes()
    with pytest.raises(ValueError, match="seven"), system_errors(tmp_path):
        raise ValueError("seven")
