"""A file that is written line by line: its bytes, and the name in its errors."""

import errno
from pathlib import Path

import pytest

from bleuprint.runtime.streams import text_output


def test_text_is_utf_8_and_lines_end_as_they_are_given(tmp_path):
    path = tmp_path / "lines"
    with text_output(path) as file:
        file.write("Größe\r\n")
        file.writelines(["one\n", "two"])
    assert path.read_bytes() == "Größe\r\none\ntwo".encode()


@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_full_disk_names_the_file(is_flushed):
    """Also if it is noticed as late as at the end."""
    with pytest.raises(OSError) as raised, text_output(Path("/dev/full")) as file:
        file.write("line\n")
        if is_flushed:
            file.flush()
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/dev/full")
