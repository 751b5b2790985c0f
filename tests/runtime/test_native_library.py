"""The native library (compiled C++ functions): which file is loaded, and the note about others.

Without the library, slower functions in Python compute the same.
"""

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


def test_a_library_with_our_version_is_loaded_without_a_note(build_library, capsys):
    build_library(VALID_SOURCE)

    library = native.library()

    assert library.native_version() == VERSION
    assert native.unavailable_reason() == ""
    assert capsys.readouterr().err == ""


def test_the_c_plus_plus_sources_have_the_version_that_python_expects(build_library, capsys):
    """With different versions, no library would be loaded, and its tests would be skipped."""
    build_library((ROOT / "src" / "bleuprint" / "native" / "version.cpp").read_text())

    library = native.library()

    assert library.native_version() == VERSION
    assert native.unavailable_reason() == ""
    assert capsys.readouterr().err == ""


def empty_file(path):
    """Remove the content of a file."""
    path.write_bytes(b"")


def truncate(path):
    """Keep the first third of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])


def flip_one_bit(path):
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def make_foreign(path):
    """Turn a library into one for Arm: the ELF header names AArch64 (183) as its processor."""
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
    assert note.startswith(f"bleuprint: note: {path} differs from the library that was built here")
    assert native.unavailable_reason().startswith(f"{path} differs from the library")
    # The note is printed once.
    assert native.library() is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(
            VALID_SOURCE + "extern int nowhere; int *there = &nowhere;\n",
            "does not load (",
            id="undefined symbol",
        ),
        pytest.param("int other;\n", "does not load (", id="without our functions"),
        pytest.param(
            'extern "C" int native_version() { return 1; }\n',
            "was built from the sources of another",
            id="old version",
        ),
    ],
)
def test_an_unusable_library_is_ignored_with_a_note(build_library, capsys, source, reason):
    path = build_library(source)

    assert native.library() is None
    assert f"note: {path} {reason}" in capsys.readouterr().err


def test_a_library_for_another_processor_is_ignored_with_a_note(build_library, capsys):
    """Without a checksum, only the loader of the operating system can tell."""
    path = build_library(VALID_SOURCE)
    path.with_name(f"{path.name}.sha256").unlink()
    make_foreign(path)

    assert native.library() is None
    assert f"{path} does not load (" in capsys.readouterr().err


def test_a_missing_library_causes_no_note_but_has_a_reason(monkeypatch, capsys):
    """`make setup` prints the reason once; a note in each run would be annoying."""
    monkeypatch.setattr(native, "find_spec", lambda _: None)
    native.library.cache_clear()

    assert native.library() is None
    assert capsys.readouterr().err == ""

    native.library.cache_clear()
    assert native.unavailable_reason().startswith("the C++ functions were not built")


def test_set_up_prints_why_there_is_no_library(monkeypatch, capsys):
    monkeypatch.setattr(native, "find_spec", lambda _: None)

    set_up_note.main()

    assert capsys.readouterr().out.startswith("note: the C++ functions were not built")


def test_set_up_prints_nothing_if_the_library_was_built(build_library, capsys):
    build_library(VALID_SOURCE)

    set_up_note.main()

    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "false"])
def test_an_installation_replaces_an_old_library_and_writes_its_checksum(tmp_path, compiler):
    """With a compiler that fails (`false`), the old library is removed instead.

    An old library would be loaded with the new Python code. `make setup` installs in the same way.
    """
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    ignored = shutil.ignore_patterns("_bleuprint_native*", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    suffix = "cpython-{}{}-x86_64-linux-gnu.so".format(*sys.version_info[:2])
    library = tmp_path / "src" / f"_bleuprint_native.{suffix}"
    checksum = library.with_name(f"{library.name}.sha256")
    library.write_bytes(b"an old library")
    options = ["--no-build-isolation", "--no-deps", "--quiet", "--target", tmp_path / "site"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--editable", tmp_path],
        env={"PATH": "/usr/bin:/bin", "CC": compiler, "CXX": compiler, "HOME": str(tmp_path)},
        check=True,
    )

    if compiler == "false":
        assert not library.exists()
        assert not checksum.exists()
    else:
        digest = subprocess.run(["sha256sum", library], capture_output=True, text=True, check=True)
        assert checksum.read_text().strip() == digest.stdout.split()[0]
