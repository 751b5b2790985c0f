"""Files that are written completely or not at all, and files that are checked when they are read.

- `atomic_file` and `atomic_folder` write under a temporary name and rename at the end, so that a
  process that is killed leaves nothing that looks finished.
- `write_json`, `read_json` and `read_json_object` handle the JSON files of this program.
- `open_regular_file`, `read_bytes` and `sha256_of` refuse pipes and devices, which would block.
- `name_in_errors` and `report_as_damage` turn the errors of libraries into messages that name the
  file.
"""

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

# The error number in messages of Python, of libraries in Rust (safetensors), and of torch.
_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)|^unable to open file .* \((\d+)\)$")
# The end of the temporary name of a folder that is being replaced.
_REPLACED_SUFFIX = ".old"
# What to do about a damaged output of the pipeline: DVC sees that it differs, and makes it again.
RERUN = "run: make reproduce"
# The files of this program have at most ten levels; Python itself fails at about a thousand.
_MAX_JSON_DEPTH = 100
# How many digits of a number that is too large are shown.
_SHOWN_DIGITS = 20
_TOO_DEEP = f"its lists and objects are nested more than {_MAX_JSON_DEPTH} deep"
# JSON writes a character beyond U+FFFF as a pair of surrogates, such as \ud83d\ude00.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotRegular(UserError):
    """A folder, pipe, socket or device at a path where a regular file is needed."""


class DamagedFile(UserError):
    """A file that does not contain what this program writes there."""

    def __init__(self, path: Path, problem: str, remedy: str = RERUN) -> None:
        """Write the message.

        Args:
            path: The file.
            problem: What is wrong, such as "field seeds is missing".
            remedy: What the user should do.
        """
        # The messages of libraries may end with a line break.
        problem_line = " ".join(problem.split())
        super().__init__(f"{path} is damaged: {problem_line}; {remedy}")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file so that it appears only when it is complete.

    The `with` block writes to a temporary path. If it succeeds, the temporary file is renamed to
    `path`; if it raises an exception, the temporary file is removed, and `path` stays as it was.

    Yields:
        The temporary path.
    """
    with name_in_errors(path):
        partial_path = _temporary_path(path)
        try:
            yield partial_path
            _flush_to_disk(partial_path)
            partial_path.replace(path)
            # The name of a file is stored in its folder.
            _flush_to_disk(path.parent)
        finally:
            _remove(partial_path)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Write a folder so that it appears only when it is complete.

    The `with` block fills a temporary folder. If it succeeds, the temporary folder replaces what is
    at `path`; if it raises an exception, `path` stays as it was. If `path` is a symbolic link, the
    link is replaced, and the folder to which it points is kept.

    A folder with files cannot be replaced by one rename, so the old folder is renamed first. If the
    process is killed between the two renames, the next call puts the old folder back.

    Yields:
        The temporary folder, which is empty.
    """
    with name_in_errors(path):
        partial_folder = _temporary_path(path)
        replaced_folder = partial_folder.with_name(partial_folder.name + _REPLACED_SUFFIX)
        try:
            partial_folder.mkdir()
            yield partial_folder
            _flush_to_disk(partial_folder)
            for inner_path in partial_folder.rglob("*"):
                _flush_to_disk(inner_path)
            if os.path.lexists(path):
                path.rename(replaced_folder)
            partial_folder.rename(path)
            _remove(replaced_folder)
            _flush_to_disk(path.parent)
        finally:
            # If the second rename failed, put the old folder back.
            if os.path.lexists(replaced_folder) and not os.path.lexists(path):
                replaced_folder.rename(path)
            _remove(partial_folder)


def _temporary_path(path: Path) -> Path:
    """Return a temporary path next to a file or folder, after removing what others have left.

    The name has the form `.NAME.partial-PROCESS`. A process that was killed may have left files
    under such names, which are removed. If it was killed after it had renamed an old folder, and
    before the new folder took its place, the old folder gets its name back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name_pattern = re.compile(rf".*\.partial-(\d{{1,10}})(?:{re.escape(_REPLACED_SUFFIX)})?")
    for leftover_path in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        match = name_pattern.fullmatch(leftover_path.name)
        if match is None:
            continue  # Another program, such as an editor, made this file.
        if _is_other_running_process(int(match[1])):
            continue
        if leftover_path.name.endswith(_REPLACED_SUFFIX) and not path.exists():
            leftover_path.rename(path)
        else:
            _remove(leftover_path)
    return path.with_name(f".{path.name}.partial-{os.getpid()}")


def _is_other_running_process(process_id: int) -> bool:
    """Return whether another process with this id is running.

    An earlier process may have had the id of this one, so this process itself does not count.
    """
    if process_id == os.getpid():
        return False
    # Imported here, because it is hardly ever needed and all stages import this module.
    import psutil

    return bool(psutil.pid_exists(process_id))


def _remove(path: Path) -> None:
    """Remove a file, link or folder if it exists, and ignore errors.

    What cannot be removed now is removed when the same output is written the next time.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _flush_to_disk(path: Path) -> None:
    """Wait until a file or folder is on the disk, so that a power failure loses nothing.

    A full disk is noticed here at the latest.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems refuse the call for folders.
        is_refused = error.errno in (errno.EINVAL, errno.EBADF) and path.is_dir()
        if not is_refused:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Make errors that reading or writing a file raises in the block name the file.

    The errors of read() and write() name no file. Libraries such as safetensors and torch raise
    errors of their own types, which only have the system's error number in their message.

    Args:
        path: The file.

    Raises:
        OSError: The operating system reports an error, such as a full disk. Its `filename` is
            `path`, or a path that it named before.
        DamagedFile: safetensors cannot read the file's content.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        match = _ERROR_NUMBER.search(str(error))
        if match is None:
            # Errors of safetensors about damaged content contain this word. Blocks that read
            # weights read no other file.
            if "deserializing" in str(error):
                remedy = "get an intact copy, or run: make reproduce"
                raise DamagedFile(path, str(error), remedy) from None
            raise
        # Errors of open() and rename() name the path that they are about. It stays in the message,
        # since it may be another file than `path`, such as an input.
        names_a_path = os.sep in str(getattr(error, "filename", ""))
        if names_a_path:
            raise
        # The pattern has a group for each form of message; the last group is the one that matched.
        error_number = int(match[match.lastindex or 0])
        raise OSError(error_number, os.strerror(error_number), str(path)) from None


@contextmanager
def report_as_damage(path: Path, remedy: str = RERUN) -> Iterator[None]:
    """Raise DamagedFile if the block finds a missing or wrong value in the content of a file.

    Any KeyError, TypeError, ValueError or similar error in the block counts as such.

    Args:
        path: The file whose content the block uses.
        remedy: What the message tells the user to do.
    """
    try:
        yield
    except KeyError as error:
        raise DamagedFile(path, f"field {error} is missing", remedy) from None
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
        problem = str(error) or type(error).__name__
        raise DamagedFile(path, problem, remedy) from None


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON; the same value gives the same bytes.

    Objects keep the order of their keys.
    """
    with atomic_file(path) as partial_path:
        partial_path.write_text(format_json(value), encoding="utf-8", newline="\n")


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
        raise UserError(f"{path}: no such file; {remedy}") from None
    if not isinstance(content, dict):
        raise DamagedFile(path, "it contains no JSON object", remedy)
    for key in required_keys:
        if key not in content:
            raise DamagedFile(path, f"field {key} is missing", remedy)
    return content


def _parse_json(text: str) -> Any:
    """Parse JSON, and refuse what Python's parser accepts but no other program may read.

    Raises:
        ValueError: The text is not JSON, repeats a key, is nested too deeply, or contains NaN, an
            infinite number, or half of a character; the message says which.
    """
    content = json.loads(
        text,
        object_pairs_hook=_object_without_repeats,
        parse_constant=_refuse_constant,
        parse_float=_parse_finite_number,
    )
    if _SURROGATE.search(text):
        # JSON may write a rare character as two codes (surrogates). Only one of the two is not a
        # character, and cannot be encoded as UTF-8.
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it contains half a character, a lone surrogate") from None
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

    Python itself would read it as infinity.
    """
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:_SHOWN_DIGITS]} is too large for a number")
    return number


def _refuse_constant(name: str) -> Any:
    """Raise ValueError at NaN and Infinity, which Python reads and JSON does not allow."""
    raise ValueError(f"{name} is not a number of JSON")


def _check_depth(content: Any) -> None:
    """Raise ValueError if the lists and objects of a JSON value are nested too deeply.

    Recursive functions would fail at them. The levels of nesting are therefore visited one after
    another, without recursion.
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
    """Return the lists and objects that are directly inside a JSON value.

    They are at the next level of nesting. A number or a text contains none.
    """
    if isinstance(value, dict):
        inner_values = list(value.values())
    elif isinstance(value, list):
        inner_values = value
    else:
        return []
    return [inner for inner in inner_values if isinstance(inner, dict | list)]


def open_regular_file(path: Path) -> BufferedReader:
    """Open a regular file to read its bytes.

    Unlike `open`, it refuses a pipe, for which the program would wait, possibly for ever.

    Raises:
        FileNotFoundError: There is no such file.
        NotRegular: The path is a folder, pipe, socket or device.
    """
    check_regular_file(path)
    return path.open("rb")


def check_regular_file(path: Path) -> None:
    """Raise an error unless a path is a regular file, before the file is read.

    Reading a pipe would wait for another program, possibly for ever, and a device may never end.

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
        return "a pipe or device: copy what it gives into a file"
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


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as hexadecimal digits."""
    with name_in_errors(path), open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def path_on_disk(path: Path) -> Path:
    """Find a file whose name on the disk is written with other Unicode characters than the path.

    A letter with an accent has two forms in Unicode: one character (`ü`), or a letter and an accent
    (`u` and U+0308), as macOS writes names. A user who types one form means the file with the
    other.

    Returns:
        The path of the file whose name differs only in these forms. If `path` itself exists, or if
        there is no such file or more than one, `path` is returned.
    """
    if path.exists() or path.name == "" or str(path).isascii():
        return path
    # The names of the folders may be written in the other form, too.
    folder = path_on_disk(path.parent)
    composed_name = unicodedata.normalize("NFC", path.name)
    equal_paths = []
    with suppress(OSError):
        for neighbor in folder.iterdir():
            if unicodedata.normalize("NFC", neighbor.name) == composed_name:
                equal_paths.append(neighbor)
    return equal_paths[0] if len(equal_paths) == 1 else path
