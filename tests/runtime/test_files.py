import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from bleuprint.runtime.atomic_files import atomic_file, atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile, name_in_errors
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.regular_files import read_bytes, sha256_of
from bleuprint.runtime.schema import read_record
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text.parallel import read_lines


def test_what_killed_processes_left_goes_and_what_others_write_stays(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    at_work = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    for process in (done, at_work):
        (tmp_path / f".x.partial-{process.pid}").mkdir()
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "a").touch()
    with atomic_file(tmp_path / "y") as file:
        file.touch()
    assert {path.name for path in tmp_path.iterdir()} == {"x", "y", f".x.partial-{at_work.pid}"}
    at_work.communicate(b"\n")
    with atomic_folder(tmp_path / "x"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"x", "y"}


@pytest.mark.parametrize("name", [".x.partial-1.swp", ".x.partial-99999999999999999999"])
def test_files_that_only_look_like_those_of_a_process_stay(tmp_path, name):
    (tmp_path / name).touch()
    with atomic_file(tmp_path / "x") as file:
        file.touch()
    assert {path.name for path in tmp_path.iterdir()} == {"x", name}


def test_a_new_folder_replaces_the_one_before_with_all_its_files(tmp_path):
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "old").touch()
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "new").touch()
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert found == ["x", "x/new"]


def test_an_error_while_a_folder_is_written_leaves_the_one_before(tmp_path):
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "old").touch()
    with pytest.raises(ValueError, match="seven"), atomic_folder(tmp_path / "x") as folder:
        (folder / "new").touch()
        raise ValueError("seven")
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert found == ["x", "x/old"]


def test_a_rename_that_fails_leaves_the_folder_before(tmp_path, monkeypatch):
    with atomic_folder(tmp_path / "x") as folder:
        (folder / "a").touch()
    rename = Path.rename

    def fails(self, target):
        if ".partial-" in self.name and not self.name.endswith(".old"):
            raise OSError(errno.EIO, "Input/output error", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="Input/output"), atomic_folder(tmp_path / "x"):
        pass
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["x", "x/a"]


def test_a_link_to_a_folder_is_replaced_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("kept")
    (tmp_path / "output").symlink_to("elsewhere")
    with atomic_folder(tmp_path / "output") as partial:
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
    with pytest.raises(OSError, match=str(tmp_path)) as raised, name_in_errors(tmp_path):
        call(tmp_path)
    assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path))


def test_other_errors_stay_as_they_are(tmp_path):
    with pytest.raises(FileNotFoundError, match="other/file"), name_in_errors(tmp_path):
        Path("other/file").read_bytes()
    with pytest.raises(ValueError, match="seven"), name_in_errors(tmp_path):
        raise ValueError("seven")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": 1, "b": 2, "a": 3}', "field a occurs twice"),
        (b'{"a": NaN}', "NaN is not a number of JSON"),
        (b'{"a": [-Infinity]}', "-Infinity is not a number of JSON"),
        (b'{"a": 1e999}', "1e999 is too large for a number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
        (b'{"a": "\\ud800"}', "it contains half a character"),
        (b'{\n"a": "\xff"}', "byte 9 is 0xff, not UTF-8"),
        (b'{\n"a": }', "line 2 is not JSON: Expecting value"),
        (b"", "line 1 is not JSON: Expecting value"),
        (b"[" * 101 + b"]" * 101, "nested more than 100 deep"),
        (b'{"a":' * 5000 + b"0" + b"}" * 5000, "nested more than 100 deep"),
        (b"[" * 100_000, "nested more than 100 deep"),
    ],
)
def test_what_is_not_json_is_damaged(tmp_path, content, problem):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile) as raised:
        read_json(path, "get it again")
    message = str(raised.value)
    assert message.startswith(f"{path} is damaged: ") and problem in message
    assert message.endswith("; get it again") and len(message.splitlines()) == 1


def test_json_at_the_limits_is_read(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b'{"\\ud83d\\ude00": ' + b"[" * 99 + b"1e308" + b"]" * 99 + b"}")
    value = read_json(path)["\U0001f600"]
    for _ in range(99):
        (value,) = value
    assert value == 1e308


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("a", "field a is missing, as in a file that another version wrote"),
        ("b", "field b.1.c: 'x' is not a whole number"),
        ("d", "field d is unknown, as in a file that another version wrote"),
    ],
)
def test_a_record_names_its_first_wrong_field(tmp_path, field, problem):
    path = tmp_path / "x.json"
    content = {"a": 1.5, "b": [{"c": 2}, {"c": 3}]}
    if field == "a":
        del content["a"]
    elif field == "b":
        content["b"][1]["c"] = "x"
    else:
        content["d"] = None
    path.write_text(json.dumps(content))
    with pytest.raises(DamagedFile) as raised:
        read_record(Outer, path, "get it again")
    assert str(raised.value) == f"{path} is damaged: {problem}; get it again"


@dataclass(frozen=True)
class Inner:
    c: int


@dataclass(frozen=True)
class Outer:
    a: float
    b: list[Inner]


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "a folder"),
        (os.mkfifo, "a pipe or device"),
        (make_socket, "a pipe or device"),
        (lambda path: path.symlink_to("/dev/zero"), "a pipe or device"),
    ],
)
@pytest.mark.parametrize(
    "read", [read_json, read_bytes, sha256_of, load_yaml, lambda path: list(read_lines(path))]
)
def test_only_regular_files_are_read(tmp_path, monkeypatch, make, kind, read):
    monkeypatch.chdir(tmp_path)  # the address of a socket is short
    path = Path("x.json")
    make(path)
    with pytest.raises(UserError, match=f"^x.json: {kind}"):
        read(path)


def test_an_error_of_reading_names_the_file():
    """Its pages at address 0 are not mapped: read(2) returns EIO."""
    with pytest.raises(OSError, match="Input/output error") as raised:
        read_bytes(Path("/proc/self/mem"))
    assert raised.value.filename == "/proc/self/mem"
