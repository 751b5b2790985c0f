"""A native library that is not the one that was built is left out, with one note."""

import hashlib
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bleuprint import native
from bleuprint.native import VERSION
from bleuprint.native import __main__ as set_up_note
from requirements import needs_programs
from root import ROOT

pytestmark = needs_programs("g++")
VALID_SOURCE = f'extern "C" int native_version() {{ return {VERSION}; }}\n'


@pytest.fixture
def build_library(tmp_path, monkeypatch):
    """Return a function that compiles a library and its checksum, which the package then loads.

    It takes the source and returns the path of the library.
    """
    path = tmp_path / "_bleuprint_native.so"
    monkeypatch.setattr(native, "find_spec", lambda _: SimpleNamespace(origin=str(path)))
    native.library.cache_clear()

    def compile_library(source):
        (tmp_path / "x.cpp").write_text(source)
        command = ["g++", "-shared", "-fPIC", "-o", path, tmp_path / "x.cpp"]
        subprocess.run(command, check=True)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        path.with_name(f"{path.name}.sha256").write_text(f"{digest}\n")
        return path

    yield compile_library
    native.library.cache_clear()


def test_the_library_that_was_built_is_used(build_library, capsys):
    build_library(VALID_SOURCE)
    assert native.library().native_version() == VERSION
    assert (native.unavailable_reason(), capsys.readouterr().err) == ("", "")


def test_the_version_is_that_of_the_sources(build_library, capsys):
    """Otherwise every library is left out, and all that compares with it is skipped."""
    build_library((ROOT / "src" / "bleuprint" / "native" / "version.cpp").read_text())
    assert native.library().native_version() == VERSION
    assert (native.unavailable_reason(), capsys.readouterr().err) == ("", "")


def empty_file(path):
    path.write_bytes(b"")


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])


def flip_one_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def make_foreign(path):
    """Its machine in the ELF header becomes AArch64 (183)."""
    content = bytearray(path.read_bytes())
    content[18] = 183
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [empty_file, truncate, flip_one_bit, make_foreign])
def test_a_library_that_differs_from_its_checksum_is_not_loaded(build_library, capsys, damage):
    path = build_library(VALID_SOURCE)
    damage(path)

    assert native.library() is None

    note = capsys.readouterr().err
    assert note.count("\n") == 1
    assert note.startswith(f"bleuprint: note: {path}: is not the library that was built here")
    assert native.unavailable_reason().startswith(f"{path}: is not the library")
    # The note is printed once.
    assert native.library() is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (VALID_SOURCE + "extern int nowhere; int *there = &nowhere;\n", "does not load ("),
        ("int other;\n", "does not load ("),
        (
            'extern "C" int native_version() { return 1; }\n',
            "was built from the sources of another",
        ),
    ],
)
def test_a_library_that_does_not_fit_is_left_out(build_library, capsys, source, reason):
    path = build_library(source)
    assert native.library() is None
    assert f"note: {path}: {reason}" in capsys.readouterr().err


def test_a_foreign_library_without_a_checksum_is_left_out(build_library, capsys):
    path = build_library(VALID_SOURCE)
    path.with_name(f"{path.name}.sha256").unlink()
    make_foreign(path)
    assert native.library() is None
    assert f"{path}: does not load (" in capsys.readouterr().err


def test_without_a_library_no_note_is_printed_but_the_reason_is_known(monkeypatch, capsys):
    """`make setup` prints the reason."""
    monkeypatch.setattr(native, "find_spec", lambda _: None)
    native.library.cache_clear()

    assert native.library() is None
    assert capsys.readouterr().err == ""

    native.library.cache_clear()
    assert native.unavailable_reason().startswith("no C++ functions were built")


def test_set_up_prints_why_there_is_no_library(monkeypatch, capsys):
    monkeypatch.setattr(native, "find_spec", lambda _: None)

    set_up_note.main()

    assert capsys.readouterr().out.startswith("note: no C++ functions were built")


def test_set_up_prints_nothing_if_the_library_was_built(build_library, capsys):
    build_library(VALID_SOURCE)

    set_up_note.main()

    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "false"])
def test_the_build_writes_the_checksum_or_nothing(tmp_path, compiler):
    """An editable install, as of make setup, over an older library."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    ignored = shutil.ignore_patterns("_bleuprint_native*", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    suffix = "cpython-{}{}-x86_64-linux-gnu.so".format(*sys.version_info[:2])
    library = tmp_path / "src" / f"_bleuprint_native.{suffix}"
    checksum = library.with_name(f"{library.name}.sha256")
    library.write_bytes(b"an older library")
    options = ["--no-build-isolation", "--no-deps", "--quiet", "--target", tmp_path / "site"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--editable", tmp_path],
        env={"PATH": "/usr/bin:/bin", "CC": compiler, "CXX": compiler, "HOME": str(tmp_path)},
        check=True,
    )
    if compiler == "false":
        assert not library.exists() and not checksum.exists()
    else:
        digest = subprocess.run(["sha256sum", library], capture_output=True, text=True, check=True)
        assert checksum.read_text().strip() == digest.stdout.split()[0]
