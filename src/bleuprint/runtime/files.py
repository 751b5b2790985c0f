"""Files and folders that are written completely or not at all, and their hashes."""

import errno
import glob
import hashlib
import json
import math
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError

# In errors of the system, of Rust and of torch.
_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)|^unable to open file .* \((\d+)\)$")
_OLD = ".old"  # the end of a replaced folder's temporary name
# What to do about a damaged output of the pipeline: DVC sees that it differs, and makes it again.
RERUN = "run: make reproduce"
# The files of this program have at most ten levels; Python itself fails at about a thousand.
_DEEPEST = 100
_TOO_DEEP = f"its lists and objects are nested more than {_DEEPEST} deep"
_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotRegular(UserError):
    """A folder, pipe, socket or device stands where a regular file is needed."""


class DamagedFile(UserError):
    """A file does not contain what this program writes there."""

    def __init__(self, path: Path, problem: str, remedy: str = RERUN) -> None:
        """`problem`: what is wrong, such as "field seeds is missing"; `remedy`: what to do."""
        in_one_line = " ".join(problem.split())  # libraries end theirs with a line break
        super().__init__(f"{path} is damaged: {in_one_line}; {remedy}")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, renamed to `path` if the block raises nothing."""
    with name_in_errors(path):
        partial = _partial(path)
        try:
            yield partial
            _sync(partial)
            partial.replace(path)
            _sync(path.parent)
        finally:
            _remove(partial)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder beside `path`; it replaces `path` unless the block raises.

    A symbolic link at `path` is replaced, and what it points to is kept. A process that is killed
    between the two renames leaves the old folder to `_partial`, which puts it back.
    """
    with name_in_errors(path):
        partial = _partial(path)
        old = partial.with_name(partial.name + _OLD)
        try:
            partial.mkdir()
            yield partial
            for place in (partial, *partial.rglob("*")):
                _sync(place)
            if os.path.lexists(path):  # rename() does not replace folders with files in them
                path.rename(old)
            partial.rename(path)
            _remove(old)
            _sync(path.parent)
        finally:
            if os.path.lexists(old) and not os.path.lexists(path):
                old.rename(path)
            _remove(partial)


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Raise what a library or a call reports about `path` as an error that names it.

    safetensors, torch and shutil raise errors of their own; read() and write() name no file, and
    shutil.rmtree one in the folder that it removes.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if (found := _NUMBER.search(str(error))) is None and "deserializing" in str(error):
            remedy = "get an intact copy, or run: make reproduce"
            raise DamagedFile(path, str(error), remedy) from None
        if found is None or os.sep in str(getattr(error, "filename", "")):
            raise
        number = int(found[found.lastindex or 0])
        raise OSError(number, os.strerror(number), str(path)) from None


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, in the order given; the same value gives the same bytes."""
    with atomic_file(path) as partial:
        partial.write_text(format_json(value), encoding="utf-8", newline="\n")


def format_json(value: Any) -> str:
    """What `write_json` writes."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_json(path: Path, remedy: str = RERUN) -> Any:
    """Read the value in a JSON file.

    Args:
        path: the file.
        remedy: what a message tells the user to do about a damaged file.

    Raises:
        FileNotFoundError: if there is no such file.
        NotRegular: if the path is a folder, pipe, socket or device.
        DamagedFile: if the file is not UTF-8 or not JSON, if it repeats a key, or if it is nested
            more deeply than any file of this program.
    """
    try:
        return _parsed_json(read_bytes(path).decode())
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is {error.object[error.start]:#04x}, not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno} is not JSON: {error.msg}"
    except RecursionError:
        problem = _TOO_DEEP
    except ValueError as error:
        problem = str(error)
    raise DamagedFile(path, problem, remedy)


def read_json_object(path: Path, names: Iterable[str] = (), remedy: str = RERUN) -> dict[str, Any]:
    """Read a JSON object; its values are not checked (`schema.read_record` does that).

    Raises UserError if the file is missing, damaged or lacks one of `names`.
    """
    try:
        content = read_json(path, remedy)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {remedy}") from None
    if not isinstance(content, dict):
        raise DamagedFile(path, "it contains no JSON object", remedy)
    for name in names:
        if name not in content:
            raise DamagedFile(path, f"field {name} is missing", remedy)
    return content


def _parsed_json(text: str) -> Any:
    """Parse JSON more strictly than Python does; raises ValueError that says what is wrong."""
    content = json.loads(
        text,
        object_pairs_hook=_without_repeats,
        parse_constant=_refuse_constant,
        parse_float=_finite,
    )
    if _LONE_SURROGATE.search(text):
        # a pair of surrogates is a character; half a pair cannot be written to any file
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it contains half a character, a lone surrogate") from None
    level = [content]
    for _ in range(_DEEPEST):
        level = [inner for value in level for inner in _containers_in(value)]
        if not level:
            return content
    raise ValueError(_TOO_DEEP)


def _containers_in(value: Any) -> list[Any]:
    """The lists and objects directly inside a JSON value."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [inner for inner in value if isinstance(inner, dict | list)]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises ValueError at a key that it contains twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {repeated} occurs twice")
    return content


def _finite(digits: str) -> float:
    """A number of JSON; raises ValueError at one that is too large, such as 1e999."""
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return number


def _refuse_constant(name: str) -> Any:
    """Raise ValueError at NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not a number of JSON")


@contextmanager
def report_as_damage(path: Path, remedy: str = RERUN) -> Iterator[None]:
    """Raise UserError, naming the file, at a value in it that is missing or of a wrong type."""
    try:
        yield
    except KeyError as error:
        raise DamagedFile(path, f"field {error} is missing", remedy) from None
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
        raise DamagedFile(path, str(error) or type(error).__name__, remedy) from None


def open_regular_file(path: Path) -> BufferedReader:
    """Open a regular file to read its bytes.

    A pipe waits for a writer, possibly for ever, and a device may never end.

    Raises:
        FileNotFoundError: if there is no such file.
        NotRegular: if it is a folder, pipe, socket or device.
    """
    check_regular_file(path)
    return path.open("rb")


def check_regular_file(path: Path) -> None:
    """Raise NotRegular at a folder, pipe, socket or device, and FileNotFoundError at nothing.

    To be called before a library opens a file by its name.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotRegular(f"{path}: {describe_non_file(path)}")


def read_bytes(path: Path) -> bytes:
    """Read a regular file; raises as `open_regular_file`, and OSError that names the file."""
    with name_in_errors(path), open_regular_file(path) as file:
        return file.read()


def describe_non_file(path: Path) -> str:
    """Why a path is no regular file, for a message."""
    if path.is_dir():
        return "a folder"
    return "a pipe or device: copy what it gives into a file" if path.exists() else "no such file"


def path_on_disk(path: Path) -> Path:
    """Return a path under the name that it has on disk.

    Letters with accents have a composed and a decomposed form in Unicode (`ü`, and `u` with U+0308,
    which macOS writes). A file whose name differs from `path` by nothing else is found.

    Returns:
        `path` itself if it exists, or if no name or several names are equal to it.
    """
    if path.exists() or path.name == "" or str(path).isascii():
        return path
    folder = path_on_disk(path.parent)
    wanted = unicodedata.normalize("NFC", path.name)
    with suppress(OSError):
        names = [each.name for each in folder.iterdir()]
        same = [name for name in names if unicodedata.normalize("NFC", name) == wanted]
        if len(same) == 1:
            return folder / same[0]
    return path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with name_in_errors(path), open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _partial(path: Path) -> Path:
    """A free temporary name beside `path`; removes or puts back what killed processes left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        number = re.fullmatch(rf".*\.partial-(\d{{1,10}})(?:{re.escape(_OLD)})?", left.name)
        if number is None:  # an editor's
            continue
        import psutil  # imported here: hardly ever needed, and all stages import this module

        if int(number[1]) == os.getpid() or not psutil.pid_exists(int(number[1])):
            if left.name.endswith(_OLD) and not path.exists():
                left.rename(path)
            else:
                _remove(left)
    return path.with_name(f".{path.name}.partial-{os.getpid()}")


def _remove(path: Path) -> None:
    """Remove a file, link or folder if there is one; `_partial` tries again what fails here."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _sync(path: Path) -> None:
    """Flush a file or folder to disk: a full disk fails here, and a power failure loses nothing."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems refuse it for folders
        if error.errno not in (errno.EINVAL, errno.EBADF) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)
