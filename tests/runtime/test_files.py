import subprocess
import sys

import pytest

from bleuprint.runtime.files import whole_file, whole_folder


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


def test_a_folder_takes_anothers_place_and_leaves_nothing_else(tmp_path):
    for name in ("a", "b"):
        with whole_folder(tmp_path / "x") as folder:
            (folder / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["x", "x/b"]


def test_a_folder_that_fails_leaves_the_one_before(tmp_path):
    with whole_folder(tmp_path / "x") as folder:
        (folder / "a").touch()
    with pytest.raises(ValueError, match="no"), whole_folder(tmp_path / "x"):
        raise ValueError("no")
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
