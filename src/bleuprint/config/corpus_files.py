"""The texts of a corpus in params.yaml: files, addresses, formats, licenses.

Part of the settings in `experiment.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Interval, MinLen
from pydantic import StringConstraints

from bleuprint.config.directions import PairName
from bleuprint.runtime.environment import NETRC_ADVICE
from bleuprint.runtime.schema import LANGUAGE_TAG, Name, Sha256
from bleuprint.runtime.secrets import has_secret

Format = Literal["plain", "documents", "tsv", "tmx", "ted-tags", "ted-xml", "sgml"]
# The formats with both sides in one file.
TWO_SIDED = frozenset({"tsv", "tmx"})
# The keys of a text's files.
SIDES = ("source", "target", "both")

# A column of a table: its number from 1, or its name in the first line of the file.
Column = Annotated[int, Ge(1)] | Annotated[str, StringConstraints(min_length=1)]
# The language code of a translation memory, perhaps with a script or a region: zh-Hant, en-GB.
LanguageTag = Annotated[str, StringConstraints(pattern=LANGUAGE_TAG)]

_SPLITS = ("train", "valid", "test")
# The URLs of embedded corpora.
EMBEDDED = (
    *(f"phrasebook:{text}.{side}" for text in (*_SPLITS, "noisy") for side in ("en", "de", "fr")),
    *(f"copy:{split}.{side}" for split, side in product(_SPLITS, ("src", "tgt"))),
    *(f"toy:{text}.{side}" for text in ("sentence", "sentences") for side in ("de", "en")),
)


@dataclass(frozen=True)
class File:
    """One file: downloaded from `url` or one of `mirrors`, or local at `path` below `inputs/`.

    A URL is http, https or file, or the name of an embedded text: `phrasebook:SPLIT.LANGUAGE`
    (`noisy`: train with faults), `copy:SPLIT.SIDE`, `toy:sentence.LANGUAGE` (`sentences`: 54).
    `archive_member`: the name of the file in an archive (.tar, .tgz, .zip, ...); if that is an
    archive too, the name in it follows, and so on. A name that ends in .gz is decompressed.
    `sha256` and `size` (bytes) are of the downloaded file; without a hash, the first download
    records it in downloads.lock, and later ones must have the same.
    """

    url: str | None = None
    mirrors: tuple[str, ...] = ()
    path: str | None = None
    archive_member: tuple[str, ...] = ()
    sha256: Sha256 | None = None
    size: Annotated[int, Ge(0)] | None = None

    def __post_init__(self) -> None:
        for name in filter(None, (self.url, *self.mirrors, self.path)):
            if has_secret(name):
                raise ValueError(f"a URL with a user name, password or key: {NETRC_ADVICE}")
        if (self.url is None) == (self.path is None):
            raise ValueError("needs either url or path")
        if self.mirrors and self.url is None:
            raise ValueError("mirrors needs url")
        parts = Path(self.path or "inputs/x").parts
        if len(parts) < 2 or parts[0] != "inputs" or ".." in parts:
            raise ValueError(f"path is {self.path!r}: local files must be below inputs/")
        if self.url is not None:
            self._check_url(self.url)
        for url in self.mirrors:
            _scheme("mirrors", url)

    def _check_url(self, url: str) -> None:
        corpus = url.partition(":")[0]
        if known := [name for name in EMBEDDED if name.startswith(f"{corpus}:")]:
            if url not in known:
                raise ValueError(f"url is {url!r}: one of {', '.join(known)}")
        elif _scheme("url", url) == "file" and self.sha256 is None:
            raise ValueError(f"url is {url!r}: needs sha256, or changes of the file go unnoticed")

    @property
    def name(self) -> str:
        """The file's name in messages: the URL or path, then archive members after `!`."""
        return "!".join((self.url or self.path or "", *self.archive_member))


@dataclass(frozen=True)
class Text:
    """One parallel text in two files, `source` and `target`, or in one, `both`.

    A training text in plain format may have one of `source` and `target` alone: a system translates
    the other side, see synthetic.py; `tag` is then put before each source, as a word.
    `license_and_citation`: the corpus's entry for this text. `columns`: the columns of source and
    target in a tsv file: their numbers, from 1, or their names in its first line, which then is not
    a pair. `languages`: the codes of source and target in a tmx file if one of them is a variant,
    such as [en-GB, de]. `pairs`: how many pairs of a training text are taken: the first ones, or
    with `pairs_seed` as many drawn at random; they stay in their order. `repeat`: how many times a
    training text is taken.
    """

    license_and_citation: str
    format: Format = "plain"
    source: File | None = None
    target: File | None = None
    both: File | None = None
    columns: tuple[Column, Column] | None = None
    languages: tuple[LanguageTag, LanguageTag] | None = None
    pairs: Annotated[int, Ge(1)] | None = None
    pairs_seed: Annotated[int, Interval(ge=0, le=2**32 - 1)] | None = None
    tag: str | None = None
    repeat: Annotated[int, Ge(1)] | None = None

    def __post_init__(self) -> None:
        if self.pairs_seed is not None and self.pairs is None:
            raise ValueError(f"pairs_seed {self.pairs_seed} needs pairs")
        if self.format in TWO_SIDED:
            if self.both is None or self.source is not None or self.target is not None:
                raise ValueError(f"format {self.format} has both sides in one file: needs both")
        elif (
            self.both is not None
            or not self.files
            or (self.synthetic_side and self.format != "plain")
        ):
            raise ValueError(
                f"format {self.format} needs two files, source and target; for both sides in one "
                f"file, set both, and format: {' or '.join(sorted(TWO_SIDED))}"
            )
        if (self.format == "tsv") != (self.columns is not None):
            raise ValueError("format tsv needs columns, and no other format has them")
        if self.columns is not None and len(set(self.columns)) == 1:
            raise ValueError(f"columns {list(self.columns)}: source and target are the same")
        if self.columns is not None and len({type(column) for column in self.columns}) > 1:
            raise ValueError(f"columns {list(self.columns)}: name both, or number both")
        if self.languages is not None and self.format != "tmx":
            raise ValueError(
                f"languages {list(self.languages)}: only a tmx file has language codes, and "
                f"format is {self.format}: remove languages, or set format: tmx"
            )
        if self.tag is not None and self.synthetic_side is None:
            raise ValueError(f"tag {self.tag!r} is for a text that a system translates")

    @property
    def synthetic_side(self) -> Literal["source", "target"] | None:
        """The side that a system translates, if any."""
        if self.both is not None or (self.source and self.target):
            return None
        return "target" if self.source else "source"

    @property
    def selection(self) -> dict[str, int | str | None]:
        """What is taken of the text, and how."""
        return {
            "pairs": self.pairs,
            "pairs_seed": self.pairs_seed,
            "tag": self.tag,
            "repeat": self.repeat,
        }

    @property
    def files(self) -> tuple[File, ...]:
        """The two files, source first, or the one file with both sides."""
        files: list[File | None] = [getattr(self, side) for side in SIDES]
        return tuple(file for file in files if file is not None)


Parts = dict[Name, Text]


@dataclass(frozen=True)
class TextSide:
    """One side of a text, for the report.

    Attributes:
        text: The name of the text, SET.PART.
        side: source, target, or both.
        origin: The file, or what made it.
        sha256: The SHA-256 of the file, if params.yaml has it.
    """

    text: str
    side: str
    origin: str
    sha256: str = ""


@dataclass(frozen=True)
class Files:
    """The sets of a corpus; each is the concatenation of its parts in this order."""

    train: Annotated[Parts, MinLen(1)]
    valid: Parts = field(default_factory=dict)
    tests: dict[Name, Annotated[Parts, MinLen(1)]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text in self.texts().items():
            if name.startswith("train."):
                continue
            for key in ("pairs", "repeat"):
                if (value := getattr(text, key)) is not None:
                    raise ValueError(f"{name}: {key} {value} is for training texts: remove it")
            if text.synthetic_side:
                side = text.synthetic_side
                raise ValueError(
                    f"{name}: needs two files, source and target: add {side} "
                    "(systems translate training texts only)"
                )
            if text.format == "documents":  # aligning them leaves sentences out
                raise ValueError(f"{name}: format documents is for training texts")

    def sets(self) -> dict[str, Parts]:
        """The parts of train, valid and test.NAME."""
        tests = {f"test.{name}": parts for name, parts in self.tests.items()}
        return {"train": self.train, "valid": self.valid, **tests}

    def set_names(self) -> list[str]:
        """The sets that have parts; missing validation and test sets are split from train."""
        return [name for name, parts in self.sets().items() if parts]

    def parallel_sets(self) -> dict[str, Parts]:
        """The parts of train, valid and test.NAME of which both sides are in files."""
        found = {}
        for name, parts in self.sets().items():
            found[name] = {part: text for part, text in parts.items() if not text.synthetic_side}
        return found

    def parallel_texts(self) -> dict[str, Text]:
        """Every text of which both sides are in files, by SET.PART."""
        return _by_set_and_part(self.parallel_sets())

    def synthetic_texts(self) -> dict[str, Text]:
        """The training texts of which a system translates one side."""
        return {part: text for part, text in self.train.items() if text.synthetic_side}

    def texts(self) -> dict[str, Text]:
        """Every text, by SET.PART."""
        return _by_set_and_part(self.sets())

    def files_by_name(self) -> dict[str, File]:
        """Every file, by SET.PART.SIDE."""
        return {
            f"{name}.{side}": file
            for name, text in self.texts().items()
            for side in SIDES
            if (file := getattr(text, side)) is not None
        }


def _by_set_and_part(sets: Mapping[str, Parts]) -> dict[str, Text]:
    """The texts of sets, by SET.PART."""
    found = {}
    for name, parts in sets.items():
        for part, text in parts.items():
            found[f"{name}.{part}"] = text
    return found


def settings_key(corpus: str, text: str) -> str:
    """Return where params.yaml defines a text, for messages.

    Args:
        corpus: The name of the corpus, or of one of its language pairs.
        text: The text as SET, SET.PART or SET.PART.SIDE, where SET is train, valid or test.NAME.

    Returns:
        The key of the setting, such as corpora.multi30k.files.tests.test2016.all for the text
        test.test2016.all of the corpus multi30k.
    """
    pair_name = PairName.parse(corpus)
    set_name, *names = text.split(".")
    if names:
        names[0] = pair_name.text_name(names[0])
    set_key = "tests" if set_name == "test" else set_name
    return ".".join(["corpora", pair_name.corpus, "files", set_key, *names])


def _scheme(key: str, url: str) -> str:
    """The scheme of a URL; raises ValueError unless it is http, https or file."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number
    except ValueError as error:
        raise ValueError(f"{key} is {url!r}: not a valid URL: {error}") from None
    if " " in url or not url.isprintable():
        raise ValueError(f"{key} is {url!r}: a space or non-printing character in it")
    if parts.scheme != "file" and not (parts.scheme in ("http", "https") and parts.hostname):
        raise ValueError(f"{key} is {url!r}: not http, https or file (files in inputs/: path)")
    return parts.scheme
