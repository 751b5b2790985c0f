"""Write and read JSON files.

Reading is strict: it refuses what Python's parser accepts although other programs may not read it,
such as NaN or a key that occurs twice.
"""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bleuprint.runtime.atomic_files import write_text
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import RERUN, DamagedFile
from bleuprint.runtime.regular_files import read_bytes

# The files of this program have at most ten levels; Python itself fails at about a thousand.
_MAX_JSON_DEPTH = 100
# How many digits of a number that is too large are shown.
_SHOWN_DIGITS = 20
_TOO_DEEP = f"its lists and objects are nested more than {_MAX_JSON_DEPTH} deep"
# JSON writes a character beyond U+FFFF as a pair of surrogates, such as \ud83d\ude00.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def write_json(path: Path, value: Any) -> None:
    """Write a value to a file as indented JSON.

    Equal values give equal bytes, if their keys have the same order: the order is kept.

    Args:
        path: The file to write.
        value: The value, which JSON can represent.
    """
    write_text(path, format_json(value))


def format_json(value: Any) -> str:
    """Return the text that `write_json` writes."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_json(path: Path, remedy: str = RERUN) -> Any:
    """Read the value in a JSON file.

    Args:
        path: The file.
        remedy: What a message tells the user to do about a damaged file.

    Raises:
        FileNotFoundError: There is no such file.
        NotRegular: The path is a folder, pipe, socket or device.
        DamagedFile: The file is not UTF-8 or not JSON, repeats a key, or is nested more deeply than
            any file of this program.
    """
    try:
        return _parse_json(read_bytes(path).decode())
    except UnicodeDecodeError as error:
        wrong_byte = error.object[error.start]
        problem = f"byte {error.start + 1} is {wrong_byte:#04x}, not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno} is not JSON: {error.msg}"
    except RecursionError:
        problem = _TOO_DEEP
    except ValueError as error:
        problem = str(error)
    raise DamagedFile(path, problem, remedy)


def read_json_object(
    path: Path, required_keys: Iterable[str] = (), remedy: str = RERUN
) -> dict[str, Any]:
    """Read a JSON file that contains an object, and check that it has some keys.

    The values are not checked; `schema.read_record` checks them as well.

    Args:
        path: The file.
        required_keys: The keys that the object must have.
        remedy: What a message tells the user to do about a missing or damaged file.

    Raises:
        UserError: The file does not exist.
        DamagedFile: The file does not contain an object with these keys.
    """
    try:
        content = read_json(path, remedy)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. {remedy}") from None
    if not isinstance(content, dict):
        raise DamagedFile(path, "its content is not a JSON object", remedy)
    for key in required_keys:
        if key not in content:
            raise DamagedFile(path, f"field {key} is missing", remedy)
    return content


def _parse_json(text: str) -> Any:
    """Parse JSON, and refuse what Python's parser accepts but other programs may not read.

    Raises:
        ValueError: The text is not JSON, repeats a key, is nested too deeply, or contains NaN, an
            infinite number, or half of a surrogate pair; the message says which.
    """
    content = json.loads(
        text,
        object_pairs_hook=_object_without_repeats,
        parse_constant=_refuse_constant,
        parse_float=_parse_finite_number,
    )
    if _SURROGATE.search(text):
        # JSON may write a character as a pair of codes, called surrogates. One of them without the
        # other is not a character. Python accepts it, but cannot encode it as UTF-8.
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it contains a lone surrogate, which is half of a character") from None
    _check_depth(content)
    return content


def _object_without_repeats(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dictionary; raise ValueError if it contains a key twice.

    Args:
        entries: The keys and values of the object, as Python's parser has read them.
    """
    content: dict[str, Any] = {}
    for key, value in entries:
        if key in content:
            raise ValueError(f"field {key} occurs twice")
        content[key] = value
    return content


def _parse_finite_number(digits: str) -> float:
    """Convert a number in JSON to a float; raise ValueError if it is too large, such as 1e999.

    Without this check, Python would read 1e999 as infinity.
    """
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:_SHOWN_DIGITS]} is too large for a number")
    return number


def _refuse_constant(name: str) -> Any:
    """Raise ValueError at NaN and Infinity, which Python reads and JSON does not allow."""
    raise ValueError(f"{name} is not a JSON number")


def _check_depth(content: Any) -> None:
    """Raise ValueError if the lists and objects of a JSON value are nested too deeply.

    Recursive functions would fail at such a value. This function itself uses no recursion: it
    visits one level of nesting after another.
    """
    level = [content]
    for _ in range(_MAX_JSON_DEPTH):
        next_level = []
        for value in level:
            next_level.extend(_containers_in(value))
        if not next_level:
            return
        level = next_level
    raise ValueError(_TOO_DEEP)


def _containers_in(value: Any) -> list[Any]:
    """Return the lists and objects that are directly inside a JSON value: its next nesting level.

    A number or a text contains none.
    """
    if isinstance(value, dict):
        inner_values = list(value.values())
    elif isinstance(value, list):
        inner_values = value
    else:
        return []
    return [inner for inner in inner_values if isinstance(inner, dict | list)]
