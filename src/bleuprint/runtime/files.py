"""Files and folders that are written completely or not at all, and their hashes."""

import errno
import glob
import hashlib
import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError

# In errors of the system, of Rust and of torch.
_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)|^unable to open file .* \((\d+)\)$")
_OLD = ".old"  # the end of a replaced folder's temporary name


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, renamed to `path` if the block raises nothing."""
    with system_errors(path):
        partial = _partial(path)
        try:
            yield partial
            _sync(partial)
            partial.replace(path)
            _sync(path.parent)
        finally:
            _remove(partial)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder beside `path`; it replaces `path` unless the block raises.

    A symbolic link at `path` is replaced, and what it points to is kept. A process that is killed
    between the two renames leaves the old folder to `_partial`, which puts it back.
    """
    with system_errors(path):
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
def system_errors(path: Path) -> Iterator[None]:
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
            raise UserError(f"{path}: damaged: {error}") from None
        if found is None or os.sep in str(getattr(error, "filename", "")):
            raise
        number = int(found[found.lastindex or 0])
        raise OSError(number, os.strerror(number), str(path)) from None


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, in the order given; the same value gives the same bytes."""
    with whole_file(path) as partial:
        partial.write_text(json_text(value), encoding="utf-8", newline="\n")


def json_text(value: Any) -> str:
    """What `write_json` writes."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_object(path: Path, names: Iterable[str] = ()) -> dict[str, Any]:
    """A JSON object; raises UserError if the file is missing, damaged or lacks one of `names`."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run: make reproduce") from None
    except ValueError as error:
        raise UserError(f"{path}: damaged: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: damaged: no JSON object")
    if missing := [name for name in names if name not in content]:
        raise UserError(f"{path}: holds no {missing[0]!r}: damaged, or of another version")
    return content


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise UserError, naming the file, at a value in it that is missing or of a wrong type."""
    try:
        yield
    except KeyError as error:
        raise UserError(f"{path}: damaged: no {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: damaged: {error}") from None


def not_a_file(path: Path) -> str:
    """Why a path is no regular file, for a message."""
    if path.is_dir():
        return "a folder"
    return "a pipe or device: copy what it gives into a file" if path.exists() else "no such file"


def found_path(path: Path) -> Path:
    """Return a path under the name that it has on disk.

    Letters with accents have a composed and a decomposed form in Unicode (`ü`, and `u` with U+0308,
    which macOS writes). A file whose name differs from `path` by nothing else is found.

    Returns:
        `path` itself if it exists, or if no name or several names are equal to it.
    """
    if path.exists() or path.name == "" or str(path).isascii():
        return path
    folder = found_path(path.parent)
    wanted = unicodedata.normalize("NFC", path.name)
    with suppress(OSError):
        names = [each.name for each in folder.iterdir()]
        same = [name for name in names if unicodedata.normalize("NFC", name) == wanted]
        if len(same) == 1:
            return folder / same[0]
    return path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
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
