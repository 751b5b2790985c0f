"""C++ versions of loops that are slow in Python, built at set-up where there is a compiler.

Without them Python versions give the same results, slower; tests compare the two.
"""

import ctypes
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

# In step with native/version.cpp: a library built from other sources is not used.
VERSION = 4


@cache
def library() -> ctypes.CDLL | None:
    """The compiled functions; None if they were not built.

    The module lies beside the package, not in it, so that a stage finds it as well that runs in a
    copy of the project, as `dvc exp run --temp` makes one.
    """
    spec = find_spec("_bleuprint_native")
    if spec is None or spec.origin is None:
        return None
    found = ctypes.CDLL(spec.origin)
    return found if found.native_version() == VERSION else None


def arguments(*values: Any) -> Iterator[Any]:
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
