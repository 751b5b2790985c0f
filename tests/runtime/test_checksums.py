"""SHA256SUMS is read as coreutils' sha256sum reads it, whose own output is the expectation."""

import hashlib
import os
import subprocess

import pytest

from bleuprint.runtime.checksums import format_checksums, read_checksums
from bleuprint.runtime.errors import UserError
from requirements import needs_programs

NAMES = ["a", "b c", " d", "*e", "f\\g", "h\ni", "j\rk", "ü", "l/m", "\\n", "o\\\\p"]

pytestmark = needs_programs("sha256sum")


@pytest.fixture
def folder(tmp_path):
    """Files of odd names, each with its own content."""
    root = tmp_path / "files"
    for name in NAMES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
    (root / os.fsdecode(b"not utf-8 \xff")).write_text("bytes")
    return root


def digests(root):
    files = [path for path in root.rglob("*") if path.is_file()]
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.mark.parametrize("options", [[], ["--binary"], ["--text"], ["--tag"]])
def test_what_sha256sum_writes_is_read(folder, tmp_path, options):
    names = sorted(digests(folder))
    written = subprocess.run(
        ["sha256sum", *options, "--", *names], cwd=folder, stdout=subprocess.PIPE, check=True
    )
    (tmp_path / "SUMS").write_bytes(written.stdout)
    assert read_checksums(tmp_path / "SUMS") == digests(folder)


def test_what_is_written_is_accepted_by_sha256sum(folder):
    (folder / "SUMS").write_bytes(os.fsencode(format_checksums(folder, ("a",))))
    check = ["sha256sum", "--check", "--strict", "SUMS"]
    done = subprocess.run(check, cwd=folder, stdout=subprocess.PIPE, check=True)
    assert done.stdout.count(b": OK\n") == len(NAMES)
    expected = digests(folder)
    del expected["a"], expected["SUMS"]
    assert read_checksums(folder / "SUMS") == expected


@pytest.mark.parametrize(
    "text",
    [
        "{hash}  a\n",
        "{capitals}  a\n",
        "{hash} *a\n",
        "{hash} a\n",
        "  {hash}  a\n",
        "{hash}  a",
        "{hash}  a\r\n",
        "{hash}  a\n\n",
        "\n{hash}  a\n",
        "# a comment\n{hash}  a\n",
        "\\{hash}  a\n",
        "{hash}  ./a\n",
        "{hash}  a\n{hash}  a\n",
        "SHA256 (a) = {hash}\n",
        "{hash}\n",
        "{hash}a\n",
        "{short}  a\n",
        "{hash}  a\n{short}  a\n",
        "x{hash}  a\n",
        "MD5 (a) = {hash}\n",
    ],
)
def test_what_sha256sum_accepts_is_accepted_and_nothing_else(tmp_path, text):
    (tmp_path / "a").write_text("content")
    digest = hashlib.sha256(b"content").hexdigest()
    given = text.format(hash=digest, capitals=digest.upper(), short=digest[:-2])
    (tmp_path / "SUMS").write_bytes(given.encode())
    check = ["sha256sum", "--check", "--strict", "SUMS"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True)
    if done.returncode == 0:
        assert read_checksums(tmp_path / "SUMS") == {"a": digest}
    else:
        with pytest.raises(UserError, match=r"damaged: line \d is not a SHA-256 and a name"):
            read_checksums(tmp_path / "SUMS")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../a", "names '../a', which is not inside the folder"),
        ("x/../../a", "is not inside the folder"),
        ("/etc/passwd", "names '/etc/passwd', which is not inside the folder"),
        ("a\n" + 64 * "1" + "  a", "line 2 is a second checksum of 'a'"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path, name, problem):
    (tmp_path / "SUMS").write_text(f"{64 * '0'}  {name}\n")
    with pytest.raises(UserError) as raised:
        read_checksums(tmp_path / "SUMS")
    assert problem in str(raised.value)
