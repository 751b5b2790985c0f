"""SHA256SUMS, a list of files with their SHA-256: the reference is the command `sha256sum`."""

import hashlib
import os
import subprocess

import pytest

from bleuprint.runtime.checksums import format_checksums, read_checksums
from bleuprint.runtime.errors import UserError
from requirements import needs_programs

# Some of these characters must be escaped in a list of checksums.
NAMES = ["a", "b c", " d", "*e", "f\\g", "h\ni", "j\rk", "ü", "l/m", "\\n", "o\\\\p"]

pytestmark = needs_programs("sha256sum")


@pytest.fixture
def folder(tmp_path):
    """A folder of files with unusual names, each with other content."""
    root = tmp_path / "files"
    for name in NAMES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
    (root / os.fsdecode(b"not utf-8 \xff")).write_text("bytes")
    return root


def sha256_by_name(root):
    """Return the SHA-256 of each file in a folder, by its relative path, computed by hashlib."""
    sums = {}
    for path in root.rglob("*"):
        if path.is_file():
            name = path.relative_to(root).as_posix()
            sums[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return sums


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="default"),
        pytest.param(["--binary"], id="binary"),
        pytest.param(["--text"], id="text"),
        pytest.param(["--tag"], id="tag"),
    ],
)
def test_every_format_that_sha256sum_writes_is_read(folder, tmp_path, options):
    """The names contain spaces, line breaks, backslashes and bytes that are not UTF-8."""
    expected = sha256_by_name(folder)
    command = ["sha256sum", *options, "--", *sorted(expected)]
    process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    (tmp_path / "SUMS").write_bytes(process.stdout)

    assert read_checksums(tmp_path / "SUMS") == expected


def test_sha256sum_accepts_the_list_that_we_write(folder):
    """The names contain spaces, line breaks, backslashes and bytes that are not UTF-8."""
    expected_files = sha256_by_name(folder)
    del expected_files["a"]

    text = format_checksums(folder, excluded_names=("a",))
    (folder / "SUMS").write_bytes(os.fsencode(text))

    # sha256sum fails if a checksum is wrong, and prints a line "NAME: OK" for each right one.
    check = ["sha256sum", "--check", "--strict", "SUMS"]
    process = subprocess.run(check, cwd=folder, stdout=subprocess.PIPE, check=True)
    assert process.stdout.count(b": OK\n") == len(expected_files)
    assert read_checksums(folder / "SUMS") == expected_files


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{hash}  a\n", id="default"),
        pytest.param("{capitals}  a\n", id="capital digits"),
        pytest.param("{hash} *a\n", id="binary"),
        pytest.param("{hash} a\n", id="one space"),
        pytest.param("  {hash}  a\n", id="indented"),
        pytest.param("{hash}  a", id="no line feed"),
        pytest.param("{hash}  a\r\n", id="Windows line end"),
        pytest.param("{hash}  a\n\n", id="empty last line"),
        pytest.param("\n{hash}  a\n", id="empty first line"),
        pytest.param("# a comment\n{hash}  a\n", id="comment"),
        pytest.param("\\{hash}  a\n", id="backslash"),
        pytest.param("{hash}  ./a\n", id="dot in the path"),
        pytest.param("{hash}  a\n{hash}  a\n", id="repeated line"),
        pytest.param("SHA256 (a) = {hash}\n", id="tag"),
        pytest.param("{hash}\n", id="no name"),
        pytest.param("{hash}a\n", id="no space"),
        pytest.param("{short}  a\n", id="short hash"),
        pytest.param("{hash}  a\n{short}  a\n", id="short second hash"),
        pytest.param("x{hash}  a\n", id="letter before the hash"),
        pytest.param("MD5 (a) = {hash}\n", id="MD5"),
    ],
)
def test_a_list_is_accepted_exactly_if_sha256sum_accepts_it(tmp_path, template):
    (tmp_path / "a").write_text("content")
    sha256 = hashlib.sha256(b"content").hexdigest()
    text = template.format(hash=sha256, capitals=sha256.upper(), short=sha256[:-2])
    (tmp_path / "SUMS").write_bytes(text.encode())

    check = ["sha256sum", "--check", "--strict", "SUMS"]
    reference = subprocess.run(check, cwd=tmp_path, capture_output=True)

    if reference.returncode == 0:
        assert read_checksums(tmp_path / "SUMS") == {"a": sha256}
    else:
        with pytest.raises(UserError, match=r"damaged: line \d is not a SHA-256 and a name"):
            read_checksums(tmp_path / "SUMS")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../a", "names '../a', which is not inside the folder"),
        ("x/../../a", "is not inside the folder"),
        ("/etc/passwd", "names '/etc/passwd', which is not inside the folder"),
    ],
)
def test_a_name_outside_the_folder_is_refused(tmp_path, name, problem):
    """A list from an untrusted source could make us read any file of this machine."""
    any_sha256 = 64 * "0"
    (tmp_path / "SUMS").write_text(f"{any_sha256}  {name}\n")

    with pytest.raises(UserError) as raised:
        read_checksums(tmp_path / "SUMS")

    assert problem in str(raised.value)


def test_two_different_checksums_of_one_file_are_refused(tmp_path):
    first_sha256 = 64 * "0"
    second_sha256 = 64 * "1"
    (tmp_path / "SUMS").write_text(f"{first_sha256}  a\n{second_sha256}  a\n")

    with pytest.raises(UserError, match="line 2 is a second checksum of 'a'"):
        read_checksums(tmp_path / "SUMS")
