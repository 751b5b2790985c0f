"""A file that is written line by line: its bytes, and the name in its errors."""

import errno
from pathlib import Path

import pytest

from bleuprint.runtime.streams import text_output


def test_text_is_written_as_utf_8_with_unchanged_line_ends(tmp_path):
    path = tmp_path / "lines"

    with text_output(path) as file:
        file.write("Größe\r\n")
        file.writelines(["one\n", "two"])

    assert path.read_bytes() == "Größe\r\none\ntwo".encode()


@pytest.mark.parametrize("is_flushed", [True, False], ids=["while writing", "when closing"])
def test_the_error_of_a_full_disk_names_the_file(is_flushed):
    """Every write to the device /dev/full fails, as on a full disk.

    A short text waits in a buffer, so the error arises only when the file is flushed or closed.
    """
    with pytest.raises(OSError) as raised, text_output(Path("/dev/full")) as file:
        file.write("line\n")
        if is_flushed:
            file.flush()

    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == "/dev/full"
