"""C++ versions of loops that are slow in Python, built at set-up where there is a compiler.

Without them, Python versions give the same results, only slower; tests compare the two. `library`
loads the compiled functions; `c_arguments` converts the arguments of a call.
"""

import ctypes
import multiprocessing
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.regular_files import read_bytes, sha256_of

# The number that native_version() in version.cpp returns. Both are raised when a C++ function
# changes, so that a library built from older sources is not used.
VERSION = 4


@cache
def library() -> ctypes.CDLL | None:
    """Return the library of compiled C++ functions; None if it was not built or cannot be used.

    Callers that get None use Python code instead, which is slower. If the library exists but cannot
    be used, a note says why.
    """
    path = _library_path()
    if path is None:
        return None
    try:
        return _load(path)
    except _UnusableLibraryError as error:
        # Only the main process prints the note; its worker processes would repeat it.
        if multiprocessing.parent_process() is None:
            print_message(
                f"{error}. Python code replaces it, which is slower. Run: make setup",
                "note",
            )
        return None


def unavailable_reason() -> str:
    """Return why the compiled C++ functions cannot be used; an empty text if they can be used.

    `make setup` prints this line at its end, since pip does not report that a compiler is missing.
    """
    path = _library_path()
    if path is None:
        return (
            "the C++ functions were not built: the compiler is missing or has failed. Python code "
            "replaces them, with the same results, but slower. To build them, install g++, "
            "then run: rm .venv/.ready; make setup"
        )
    try:
        _load(path)
    except _UnusableLibraryError as error:
        return f"{error}. Python code replaces it, which is slower"
    return ""


class _UnusableLibraryError(Exception):
    """A library cannot be used; the message is a sentence that names it and says why."""


def _library_path() -> Path | None:
    """Return the path of the library that was built at set-up; None if there is none.

    The library is the top-level module `_bleuprint_native`, next to the package instead of in it. A
    stage may run in a copy of the project without compiled files, which `dvc exp run --temp` makes.
    Python then finds the library of the original project.
    """
    spec = find_spec("_bleuprint_native")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin)


def _load(path: Path) -> ctypes.CDLL:
    """Load the library, after checking that it is the file that was built at set-up.

    Loading a damaged file would end the process by a signal (SIGBUS). So the SHA-256 of the file is
    compared with the one that setup.py wrote next to it. setup.py of older versions wrote none.

    Args:
        path: The file of the library.

    Raises:
        _UnusableLibraryError: The file is damaged, does not load, or is of another version.
    """
    checksum_file = path.with_name(f"{path.name}.sha256")
    try:
        if checksum_file.exists():
            expected_sha256 = read_bytes(checksum_file).strip().decode("ascii", "replace")
            if sha256_of(path) != expected_sha256:
                raise _UnusableLibraryError(
                    f"{path} differs from the library that was built here: it is damaged or a copy"
                )
        loaded = ctypes.CDLL(str(path))
        version = loaded.native_version()
    # AttributeError: the library is so old that it has no function native_version.
    except (OSError, AttributeError, UserError) as error:
        raise _UnusableLibraryError(f"{path} does not load ({error})") from None
    if version != VERSION:
        raise _UnusableLibraryError(f"{path} was built from the sources of another version")
    return loaded


def c_arguments(*values: Any) -> Iterator[Any]:
    """Convert Python values into the arguments of a C++ function.

    An int becomes a 64-bit integer. For a NumPy array or a tensor, the address of its data is
    passed, so the function can also write into it; the caller must keep the array or tensor in a
    variable until the function has returned. Bytes are passed unchanged, and so is None, which
    becomes a null pointer.
    """
    for value in values:
        if isinstance(value, int):
            yield ctypes.c_int64(value)
        elif isinstance(value, bytes | None):
            yield value
        elif isinstance(value, np.ndarray):
            yield ctypes.c_void_p(value.ctypes.data)
        else:  # A tensor.
            yield ctypes.c_void_p(value.data_ptr())
