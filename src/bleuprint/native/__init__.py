"""C++ versions of loops that are slow in Python, built at set-up where there is a compiler.

Without them Python versions give the same results, slower; tests compare the two.
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
from bleuprint.runtime.files import read_bytes, sha256_of

# In step with native/version.cpp: a library built from other sources is not used.
VERSION = 4


@cache
def library() -> ctypes.CDLL | None:
    """Return the compiled functions; None if they were not built.

    The module lies beside the package, not in it, so that a stage finds it as well that runs in a
    copy of the project, as `dvc exp run --temp` makes one. One that cannot be used is left out,
    with a note.
    """
    path = _path()
    if path is None:
        return None
    try:
        return _loaded(path)
    except _Unusable as error:
        # worker processes would say the same
        if multiprocessing.parent_process() is None:
            print_message(
                f"{path}: {error}; Python code takes its place, slower. Run: make setup", "note"
            )
        return None


def unavailable_reason() -> str:
    """Say in one line why there are no compiled functions; empty if there are."""
    path = _path()
    if path is None:
        return (
            "no C++ functions were built, since there is no compiler or it failed; Python code "
            "takes their place, with the same results, but slower. To build them, install g++, "
            "then run: rm .venv/.ready; make setup"
        )
    try:
        _loaded(path)
    except _Unusable as error:
        return f"{path}: {error}; Python code takes its place, slower"
    return ""


class _Unusable(Exception):
    """A library cannot be used, for the reason that this says."""


def _path() -> Path | None:
    """The library that was built at set-up."""
    spec = find_spec("_bleuprint_native")
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _loaded(path: Path) -> ctypes.CDLL:
    """Load a library; raises _Unusable if it is not the one that was built.

    setup.py writes its SHA-256 beside it. It is compared first: to load a file that was cut short
    ends the process (SIGBUS). A library without one, as older versions built it, is not compared.
    """
    checksum = path.with_name(f"{path.name}.sha256")
    try:
        if checksum.exists() and read_bytes(checksum).strip() != sha256_of(path).encode():
            raise _Unusable("is not the library that was built here; it is damaged or a copy")
        found = ctypes.CDLL(str(path))
        version = found.native_version()
    except (OSError, AttributeError, UserError) as error:
        raise _Unusable(f"does not load ({error})") from None
    if version != VERSION:
        raise _Unusable("was built from the sources of another version")
    return found


def c_arguments(*values: Any) -> Iterator[Any]:
    """`values` as C takes them: numbers in 64 bits, arrays and tensors by their address.

    Bytes and None (null) stay as they are.
    """
    for value in values:
        if isinstance(value, int):
            yield ctypes.c_int64(value)
        elif isinstance(value, bytes | None):
            yield value
        else:
            array = isinstance(value, np.ndarray)
            yield ctypes.c_void_p(value.ctypes.data if array else value.data_ptr())
