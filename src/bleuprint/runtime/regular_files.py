"""Read regular files, and refuse pipes and devices, for which a program would wait for ever."""

import hashlib
import stat
from io import BufferedReader
from pathlib import Path

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import name_in_errors


class NotRegular(UserError):
    """A folder, pipe, socket or device at a path where a regular file is needed."""


def open_regular_file(path: Path) -> BufferedReader:
    """Open a regular file to read its bytes.

    Unlike `open`, this function refuses a pipe, for which the program might wait for ever.

    Raises:
        FileNotFoundError: There is no such file.
        NotRegular: The path is a folder, pipe, socket or device.
    """
    check_regular_file(path)
    return path.open("rb")


def check_regular_file(path: Path) -> None:
    """Raise an error unless a path is a regular file, before the file is read.

    Reading a pipe waits for another program, possibly for ever, and a device may have no end.

    Raises:
        FileNotFoundError: There is no such file.
        NotRegular: The path is a folder, pipe, socket or device.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotRegular(f"{path}: {describe_non_file(path)}")


def describe_non_file(path: Path) -> str:
    """Describe what is at a path where a regular file is expected, for a message.

    It is a folder, a pipe or device, or nothing.
    """
    if path.is_dir():
        return "a folder"
    if path.exists():
        return "a pipe or device. Copy its output into a file"
    return "no such file"


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        FileNotFoundError: There is no such file.
        NotRegular: The path is a folder, pipe, socket or device.
        OSError: The file cannot be read; the error names it.
    """
    with name_in_errors(path), open_regular_file(path) as file:
        return file.read()


def md5_of(path: Path) -> str:
    """Return the MD5 of a file's bytes as hexadecimal digits."""
    with name_in_errors(path), open_regular_file(path) as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as hexadecimal digits."""
    with name_in_errors(path), open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
