"""The index of a training text, with which each shard's process reads only its own bytes.

Without an index, the process of a shard counts the lines of the whole text, and reads all lines
before its own. `write_text_index` reads the text once; the processes of all shards then use the
index that it has written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import read_record, to_json_value
from bleuprint.text.line_index import LineIndex, index_lines
from bleuprint.text.parallel import TextFolder

_INDEX_FILE = "index.json"

Text = TypeVar("Text", bound=TextFolder)


@dataclass(frozen=True)
class _TextIndex:
    """The content of the file with the index of a training text.

    Attributes:
        files: The index of each file of the text, by its path.
    """

    files: Mapping[str, LineIndex]


def write_text_index(text: TextFolder, folder: Path) -> None:
    """Read a training text once, and write where its lines begin.

    Args:
        text: The folder of the text.
        folder: The folder to write to.

    Raises:
        UserError: A file of the text is missing.
    """
    files = {}
    for path in _training_files(text):
        try:
            files[str(path)] = index_lines(path)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
    write_json(folder / _INDEX_FILE, to_json_value(_TextIndex(files)))


def with_text_index(text: Text, folder: Path, remedy: str) -> Text:
    """Return a text that finds its lines by an index.

    Args:
        text: The folder of the text.
        folder: The folder that `write_text_index` has written; if it does not exist, the text is
            returned as it is.
        remedy: What to do if the index does not belong to the text, for the message.

    Raises:
        UserError: A file of the text has changed since the index was written.
    """
    if not folder.is_dir():
        return text
    indexes = {}
    for path_text, index in read_record(_TextIndex, folder / _INDEX_FILE, remedy).files.items():
        indexes[Path(path_text)] = index
    for path in _training_files(text):
        if path not in indexes or not path.is_file() or not indexes[path].describes(path):
            raise UserError(f"{path}: this file has changed since it was indexed. {remedy}")
    return replace(text, indexes=indexes)


def training_text_sha256(text: TextFolder) -> Iterator[str]:
    """Yield the SHA-256 of each file of a training text.

    A text with an index is not read: `with_text_index` has checked that the index belongs to it.
    """
    for path in _training_files(text):
        index = text.indexes.get(path)
        yield sha256_of(path) if index is None else index.sha256


def _training_files(text: TextFolder) -> list[Path]:
    """Return the files of a training text, each once, in the order in which they are read."""
    files: list[Path] = []
    for folder in text.texts("train"):
        files.extend(folder.files("train"))
    return list(dict.fromkeys(files))
