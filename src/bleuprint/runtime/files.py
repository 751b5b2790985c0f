"""Files and folders that are written completely or not at all, and their hashes."""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bleuprint.runtime.errors import UserError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, renamed to `path` if the block raises nothing."""
    partial = _partial(path)
    try:
        yield partial
        _sync(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder beside `path`; it replaces `path` unless the block raises."""
    partial = _partial(path)
    partial.mkdir()
    try:
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                _sync(file)
        if path.is_symlink():
            path.unlink()  # what it leads to stays as it is
        if path.exists():
            # renamed first, so that no reader finds it partly removed
            path.rename(old := partial.with_name(f"{partial.name}.old"))
            partial.replace(path)
            shutil.rmtree(old)
        else:
            partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
    """A JSON object; raises UserError if the file is damaged or lacks one of `names`.

    Raises FileNotFoundError if there is no file.
    """
    try:
        content = read_json(path)
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


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _partial(path: Path) -> Path:
    """A free temporary name beside `path`; removes what killed processes left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        number = left.name.rpartition("-")[2].removesuffix(".old")
        if not number.isdecimal() or len(number) > 10:
            continue  # an editor's
        process = int(number)
        if process == os.getpid() or not psutil.pid_exists(process):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return path.with_name(f".{path.name}.partial-{os.getpid()}")


def _sync(path: Path) -> None:
    """Flush the file to disk, so that a full disk fails here and not later."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
