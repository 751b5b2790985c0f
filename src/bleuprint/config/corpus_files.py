"""The settings of a corpus's texts: files, URLs, formats and licenses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Interval, MinLen
from pydantic import StringConstraints

from bleuprint.config.pair_name import PairName
from bleuprint.runtime.environment import NETRC_ADVICE
from bleuprint.runtime.schema import LANGUAGE_TAG, Name, Sha256
from bleuprint.runtime.secrets import has_secret

Format = Literal["plain", "documents", "tsv", "tmx", "ted-tags", "ted-xml", "sgml"]
# The formats with both sides in one file.
TWO_SIDED = frozenset({"tsv", "tmx"})
# The keys of a text under which its files stand.
SIDES = ("source", "target", "both")

# A column of a table: its number from 1, or its name in the first line of the file.
Column = Annotated[int, Ge(1)] | Annotated[str, StringConstraints(min_length=1)]
# The language code of a translation memory, perhaps with a script or a region: zh-Hant, en-GB.
LanguageTag = Annotated[str, StringConstraints(pattern=LANGUAGE_TAG)]


def _embedded_texts() -> list[str]:
    """Return the URLs of all texts that the package contains."""
    urls = []
    for text in ("train", "valid", "test", "noisy"):
        for language in ("en", "de", "fr"):
            urls.append(f"phrasebook:{text}.{language}")
    for text in ("train", "valid", "test"):
        for side in ("src", "tgt"):
            urls.append(f"copy:{text}.{side}")
    for text in ("sentence", "sentences"):
        for language in ("de", "en"):
            urls.append(f"toy:{text}.{language}")
    return urls


EMBEDDED = tuple(_embedded_texts())


@dataclass(frozen=True)
class File:
    """A file with text: either downloaded or local.

    Attributes:
        url: Where to download it: an http, https or file URL, or the name of an embedded text:
            `phrasebook:SPLIT.LANGUAGE` (`noisy`: train with faults), `copy:SPLIT.SIDE`,
            `toy:sentence.LANGUAGE` (`sentences`: 54).
        mirrors: Other URLs of the file, tried in this order if `url` fails.
        path: The path of a local file, below `inputs/`.
        archive_member: The name of the file in an archive (.tar, .tgz, .zip, ...). If this is an
            archive too, the name in it follows, and so on. A name that ends in .gz is decompressed.
        sha256: The SHA-256 of the downloaded file. Without it, the first download records it in
            downloads.lock, and later downloads must have the same.
        size: The size of the downloaded file in bytes.
    """

    url: str | None = None
    mirrors: tuple[str, ...] = ()
    path: str | None = None
    archive_member: tuple[str, ...] = ()
    sha256: Sha256 | None = None
    size: Annotated[int, Ge(0)] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError at URLs and paths that cannot be used."""
        for address in (self.url, *self.mirrors, self.path):
            if address and has_secret(address):
                raise ValueError(f"a URL with a user name, password or key: {NETRC_ADVICE}")
        if (self.url is None) == (self.path is None):
            raise ValueError("needs either url or path")
        if self.mirrors and self.url is None:
            raise ValueError("mirrors needs url")
        if self.path is not None:
            self._check_path(self.path)
        if self.url is not None:
            self._check_url(self.url)
        for url in self.mirrors:
            _scheme("mirrors", url)

    def _check_path(self, path: str) -> None:
        """Raise ValueError unless a path is below `inputs/`."""
        parts = Path(path).parts
        if len(parts) < 2 or parts[0] != "inputs" or ".." in parts:
            raise ValueError(f"path is {path!r}: local files must be below inputs/")

    def _check_url(self, url: str) -> None:
        """Raise ValueError unless a URL is valid, or names an embedded text."""
        corpus_name = url.partition(":")[0]
        texts_of_corpus = [name for name in EMBEDDED if name.startswith(f"{corpus_name}:")]
        if texts_of_corpus:
            if url not in texts_of_corpus:
                raise ValueError(f"url is {url!r}: one of {', '.join(texts_of_corpus)}")
            return
        if _scheme("url", url) == "file" and self.sha256 is None:
            raise ValueError(f"url is {url!r}: needs sha256, or changes of the file go unnoticed")

    @property
    def name(self) -> str:
        """The file's name in messages: the URL or path, then archive members after `!`."""
        return "!".join((self.url or self.path or "", *self.archive_member))


@dataclass(frozen=True)
class Text:
    """A parallel text in two files, `source` and `target`, or in one file, `both`.

    A training text in plain format may have only one of `source` and `target`: a system translates
    the other side (synthetic.py).

    Attributes:
        license_and_citation: The name of its license in the corpus.
        format: The format of the files.
        source: The file with the source sentences.
        target: The file with the target sentences.
        both: The file with both sides.
        columns: The columns of source and target in a tsv file: their numbers, from 1, or their
            names in the first line, which then is not a pair.
        languages: The language codes of source and target in a tmx file if one of them is a
            variant, such as [en-GB, de].
        pairs: How many pairs of a training text are taken; all by default.
        pairs_seed: The seed by which these pairs are drawn; without it, the first pairs are taken.
            Pairs stay in their order.
        tag: A word that is put before each source of a text that a system translates.
        repeat: How many times a training text is taken.
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
        """Raise ValueError at files and settings that do not fit the format."""
        if self.pairs_seed is not None and self.pairs is None:
            raise ValueError(f"pairs_seed {self.pairs_seed} needs pairs")
        if self.format in TWO_SIDED:
            self._check_one_file()
        else:
            self._check_two_files()
        self._check_columns()
        if self.languages is not None and self.format != "tmx":
            raise ValueError(
                f"languages {list(self.languages)}: only a tmx file has language codes, and "
                f"format is {self.format}: remove languages, or set format: tmx"
            )
        if self.tag is not None and self.synthetic_side is None:
            raise ValueError(f"tag {self.tag!r} is for a text that a system translates")

    def _check_one_file(self) -> None:
        """Raise ValueError unless the text has one file with both sides."""
        if self.both is None or self.source is not None or self.target is not None:
            raise ValueError(f"format {self.format} has both sides in one file: needs both")

    def _check_two_files(self) -> None:
        """Raise ValueError unless the text has a source and a target file, or is synthetic."""
        has_other_files = self.both is not None or not self.files
        lacks_a_side = self.synthetic_side is not None and self.format != "plain"
        if has_other_files or lacks_a_side:
            raise ValueError(
                f"format {self.format} needs two files, source and target; for both sides in one "
                f"file, set both, and format: {' or '.join(sorted(TWO_SIDED))}"
            )

    def _check_columns(self) -> None:
        """Raise ValueError unless a tsv file, and no other, has two columns of one kind."""
        if (self.format == "tsv") != (self.columns is not None):
            raise ValueError("format tsv needs columns, and no other format has them")
        if self.columns is None:
            return
        source_column, target_column = self.columns
        if source_column == target_column:
            raise ValueError(f"columns {list(self.columns)}: source and target are the same")
        if type(source_column) is not type(target_column):
            raise ValueError(f"columns {list(self.columns)}: name both, or number both")

    @property
    def synthetic_side(self) -> Literal["source", "target"] | None:
        """The side that a system translates; None if files have both sides."""
        has_both_sides = self.both is not None or (self.source and self.target)
        if has_both_sides:
            return None
        return "target" if self.source else "source"

    @property
    def selection(self) -> dict[str, int | str | None]:
        """Which pairs of the text are taken, and how often."""
        return {
            "pairs": self.pairs,
            "pairs_seed": self.pairs_seed,
            "tag": self.tag,
            "repeat": self.repeat,
        }

    @property
    def files(self) -> tuple[File, ...]:
        """The two files, source first, or the one file with both sides."""
        return tuple(file for file in (self.source, self.target, self.both) if file is not None)


# The texts of a set by name; the set is their concatenation.
Parts = dict[Name, Text]


@dataclass(frozen=True)
class TextSide:
    """Where one side of a text comes from, for the report.

    Attributes:
        text: The name of the text, SET.PART.
        side: source, target, or both.
        origin: The file, or the system that translated the side.
        sha256: The SHA-256 of the file; empty if params.yaml does not have it.
    """

    text: str
    side: str
    origin: str
    sha256: str = ""


@dataclass(frozen=True)
class Files:
    """The sets of a corpus; each is the concatenation of its texts in this order.

    A text is called SET.PART, where SET is train, valid or test.NAME.

    Attributes:
        train: The training texts.
        valid: The validation texts; if there are none, the set is drawn from the training text.
        tests: The texts of each test set; if there are none, one is drawn from the training text.
    """

    train: Annotated[Parts, MinLen(1)]
    valid: Parts = field(default_factory=dict)
    tests: dict[Name, Annotated[Parts, MinLen(1)]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError at settings of training texts in a validation or test text."""
        for name, text in self.texts().items():
            if name.startswith("train."):
                continue
            for key in ("pairs", "repeat"):
                value = getattr(text, key)
                if value is not None:
                    raise ValueError(f"{name}: {key} {value} is for training texts: remove it")
            if text.synthetic_side:
                raise ValueError(
                    f"{name}: needs two files, source and target: add {text.synthetic_side} "
                    "(systems translate training texts only)"
                )
            if text.format == "documents":  # Aligning documents leaves sentences out.
                raise ValueError(f"{name}: format documents is for training texts")

    def sets(self) -> dict[str, Parts]:
        """Return the texts of train, valid and test.NAME, by set and part."""
        tests = {f"test.{name}": parts for name, parts in self.tests.items()}
        return {"train": self.train, "valid": self.valid, **tests}

    def set_names(self) -> list[str]:
        """Return the names of the sets that have texts; missing sets are drawn from train."""
        return [name for name, parts in self.sets().items() if parts]

    def parallel_sets(self) -> dict[str, Parts]:
        """Return the texts of which files have both sides, by set and part."""
        parallel_sets: dict[str, Parts] = {}
        for name, parts in self.sets().items():
            parallel_sets[name] = {}
            for part, text in parts.items():
                if text.synthetic_side is None:
                    parallel_sets[name][part] = text
        return parallel_sets

    def parallel_texts(self) -> dict[str, Text]:
        """Return the texts of which files have both sides, by SET.PART."""
        return _texts_by_name(self.parallel_sets())

    def synthetic_texts(self) -> dict[str, Text]:
        """Return the training texts of which a system translates one side, by part."""
        return {part: text for part, text in self.train.items() if text.synthetic_side}

    def texts(self) -> dict[str, Text]:
        """Return all texts by SET.PART."""
        return _texts_by_name(self.sets())

    def files_by_name(self) -> dict[str, File]:
        """Return all files by SET.PART.SIDE."""
        files = {}
        for name, text in self.texts().items():
            for side in SIDES:
                file = getattr(text, side)
                if file is not None:
                    files[f"{name}.{side}"] = file
        return files


def _texts_by_name(sets: Mapping[str, Parts]) -> dict[str, Text]:
    """Return the texts of sets by SET.PART."""
    texts = {}
    for set_name, parts in sets.items():
        for part, text in parts.items():
            texts[f"{set_name}.{part}"] = text
    return texts


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
    """Return the scheme of a URL: http, https or file.

    Args:
        key: The setting that has the URL, for messages.
        url: The URL.

    Raises:
        ValueError: The URL is not valid, or it has another scheme.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises ValueError if the port is not a number.
    except ValueError as error:
        raise ValueError(f"{key} is {url!r}: not a valid URL: {error}") from None
    if " " in url or not url.isprintable():
        raise ValueError(f"{key} is {url!r}: a space or non-printing character in it")
    is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not is_web_address and parts.scheme != "file":
        raise ValueError(f"{key} is {url!r}: not http, https or file (files in inputs/: path)")
    return parts.scheme
