"""What a corpus is made of: its files, where they are had, their formats, on what terms.

A part of `settings.py`, which says how these are read and checked.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from bleuprint.runtime.schema import Range

Format = Literal["plain", "tsv", "tmx", "ted-tags", "ted-xml", "sgml", "wmt-xml"]
# Those of which one file holds both sides.
TWO_SIDED = frozenset({"tsv", "tmx", "wmt-xml"})

_PHRASEBOOK = [
    f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de", "fr")
]


@dataclass(frozen=True)
class File:
    """One file: fetched from `url`, or from one of `also_at`, or lying at `path` below `inputs/`.

    A URL is http, https or file, or `phrasebook:SPLIT.LANGUAGE` for the embedded corpus.
    `member` leads into an archive (.tar, .tgz, .zip, ...): the name of the member, and where that
    is an archive too, the name in there, and so on. What is named .gz in the end is unpacked.
    `sha256` and `size` (bytes) are of the file as fetched; without a sum, the first download
    records it in downloads.lock, and later ones must agree.
    """

    url: str | None = None
    also_at: tuple[str, ...] = ()
    path: str | None = None
    member: tuple[str, ...] = ()
    sha256: str | None = None
    size: Annotated[int, Range(0)] | None = None

    def __post_init__(self) -> None:
        if (self.url is None) == (self.path is None):
            raise ValueError("needs either url or path")
        if self.also_at and self.url is None:
            raise ValueError("also_at goes with url")
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            found = f"{self.sha256!r}, {len(self.sha256)} characters"
            raise ValueError(f"sha256 is {found}: 64 hexadecimal digits, lower case")
        if self.path is not None and not _below_inputs(self.path):
            raise ValueError(f"path is {self.path!r}: local files lie below inputs/")
        for name in self.member:
            if not name or name.startswith("/") or ".." in name.split("/"):
                raise ValueError(f"member is {name!r}: a path inside the archive, without '..'")
        if self.url is not None:
            self._check_url(self.url)
        for url in self.also_at:
            _scheme("also_at", url)

    def _check_url(self, url: str) -> None:
        begin, _, rest = url.partition(":")
        if begin == "phrasebook":
            if rest not in _PHRASEBOOK:
                known = ", ".join(_PHRASEBOOK)
                raise ValueError(f"url is {url!r}: phrasebook: and one of {known}")
        elif _scheme("url", url) == "file" and self.sha256 is None:
            raise ValueError(f"url is {url!r}: needs sha256, or its changes go unnoticed")

    @property
    def name(self) -> str:
        """What the file is called in messages."""
        return "!".join((self.url or self.path or "", *self.member))


@dataclass(frozen=True)
class Text:
    """One parallel text in two files, `source` and `target`, or in one, `both`.

    `about` names the entry that says where it comes from. `columns` (from 1) are those of source
    and target in a tsv file.
    """

    about: str
    format: Format = "plain"
    source: File | None = None
    target: File | None = None
    both: File | None = None
    columns: tuple[Annotated[int, Range(1)], Annotated[int, Range(1)]] | None = None

    def __post_init__(self) -> None:
        if self.format in TWO_SIDED:
            if self.both is None or self.source is not None or self.target is not None:
                raise ValueError(f"format {self.format} has both sides in one file: both")
        elif self.source is None or self.target is None or self.both is not None:
            raise ValueError(f"format {self.format} needs two files: source and target")
        if (self.format == "tsv") != (self.columns is not None):
            raise ValueError("columns go with format tsv, which needs them")
        if self.columns is not None and len(set(self.columns)) == 1:
            raise ValueError(f"columns {list(self.columns)}: source and target are the same")

    @property
    def files(self) -> tuple[File, ...]:
        """The two files, source first, or the one that holds both sides."""
        return tuple(file for file in (self.source, self.target, self.both) if file is not None)


Parts = dict[str, Text]


@dataclass(frozen=True)
class Files:
    """The sets of a corpus, each of parts that are joined in this order."""

    train: Parts
    valid: Parts
    tests: dict[str, Parts]

    def __post_init__(self) -> None:
        if not self.train:
            raise ValueError("train names no files")
        for name, parts in self.sets().items():
            if not parts and name != "valid":
                raise ValueError(f"{name} names no files")

    def sets(self) -> dict[str, Parts]:
        """The parts of train, valid and test.NAME."""
        tests = {f"test.{name}": parts for name, parts in self.tests.items()}
        return {"train": self.train, "valid": self.valid, **tests}

    def given(self) -> list[str]:
        """The sets that have parts; what is missing of valid and tests is drawn from train."""
        return [name for name, parts in self.sets().items() if parts]

    def texts(self) -> dict[str, Text]:
        """Every text by the name of its set and its part, as SET.PART."""
        return {
            f"{name}.{part}": text
            for name, parts in self.sets().items()
            for part, text in parts.items()
        }


@dataclass(frozen=True)
class About:
    """Where a text comes from, and on what terms; `bibtex` is one entry, or several."""

    licence: str
    bibtex: str

    def __post_init__(self) -> None:
        if not re.match(r"\s*@\w+\s*\{\s*[^\s,{}]+\s*,", self.bibtex):
            raise ValueError(f"bibtex is {self.bibtex[:40]!r}: an entry begins with @type{{key,")


def _scheme(key: str, url: str) -> str:
    """What an address begins with; raises ValueError unless files can be had from such a one."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # one that is no number shows when it is asked for
    except ValueError as error:
        raise ValueError(f"{key} is {url!r}: not a valid address: {error}") from None
    if url != url.strip() or not url.isprintable():
        raise ValueError(f"{key} is {url!r}: spaces around it, or unprinted characters in it")
    if parts.scheme != "file" and not (parts.scheme in ("http", "https") and parts.hostname):
        raise ValueError(f"{key} is {url!r}: not of http, https or file (in inputs/: path)")
    return parts.scheme


def _below_inputs(path: str) -> bool:
    parts = Path(path).parts
    return len(parts) > 1 and parts[0] == "inputs" and ".." not in parts
