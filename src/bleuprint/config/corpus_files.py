"""The settings of a corpus's texts: files, URLs, formats and licenses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Interval, MinLen

from bleuprint.config.embedded_texts import EMBEDDED
from bleuprint.config.pair_name import PairName
from bleuprint.config.text_formats import (
    TABLES,
    TABLES_OF_RECORDS,
    TWO_SIDED,
    Column,
    Format,
    PairScore,
    format_of_name,
)
from bleuprint.config.url_scheme import valid_scheme
from bleuprint.rules import CHECKS, EDITS, FOUND_NAMES, find_check, find_edit
from bleuprint.rules.rule import Check, Edit, Rule
from bleuprint.runtime.environment import NETRC_ADVICE
from bleuprint.runtime.named_entries import NamedEntries
from bleuprint.runtime.schema import Md5, MemoryLanguage, Name, Sha256
from bleuprint.runtime.secrets import has_secret
from bleuprint.runtime.wording import join_with_and

# The keys of a text under which its files stand.
SIDES = ("source", "target", "both")
# The keys by which a text has a name in place of files; named_texts.py replaces them.
NAMES_OF_TEXTS = ("sacrebleu", "opus", "huggingface")
# The rules that a part of a corpus may have itself: the edits and the checks.
PART_RULES = ("clean", "filter")


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
            archive too, the name in it follows, and so on. A name that ends in .gz, .bz2, .xz or
            .zst is decompressed.
        sha256: The SHA-256 of the downloaded file. Without it, the first download records it in
            downloads.lock, and later downloads must have the same.
        size: The size of the downloaded file in bytes.
        md5: The MD5 of the downloaded file, for files whose publishers give no SHA-256.
        line_ends: With `cr`, the lines of the file end in CR, as on old Macs; by default in LF.
    """

    url: str | None = None
    mirrors: tuple[str, ...] = ()
    path: str | None = None
    archive_member: tuple[str, ...] = ()
    sha256: Sha256 | None = None
    size: Annotated[int, Ge(0)] | None = None
    md5: Md5 | None = None
    line_ends: Literal["cr"] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless exactly one of `url` and `path` is set, and it can be used.

        A URL must not contain a password: params.yaml is committed, and everyone could read it.
        """
        for address in (self.url, *self.mirrors, self.path):
            if address and has_secret(address):
                raise ValueError(f"the URL contains a user name, password or key. {NETRC_ADVICE}")
        has_url = self.url is not None
        has_path = self.path is not None
        if has_url == has_path:  # Both are set, or none.
            raise ValueError("needs either url or path")
        if self.mirrors and self.url is None:
            raise ValueError("mirrors needs url")
        if self.path is not None:
            self._check_path(self.path)
        if self.url is not None:
            self._check_url(self.url)
        for url in self.mirrors:
            valid_scheme("mirrors", url)

    def _check_path(self, path: str) -> None:
        """Raise ValueError unless a path is in the folder `inputs/`, as local files must be."""
        parts = Path(path).parts
        if len(parts) < 2 or parts[0] != "inputs" or ".." in parts:
            raise ValueError(f"path is {path!r}, but local files must be below inputs/")

    def _check_url(self, url: str) -> None:
        """Raise ValueError unless the URL of a file is valid.

        It is an http, https or file URL; or the name of a text that this package contains, such as
        `phrasebook:train.en`.
        """
        prefix = url.partition(":")[0]
        # The texts of this package whose names begin like the URL; most URLs begin differently.
        embedded_texts = [name for name in EMBEDDED if name.startswith(f"{prefix}:")]
        if embedded_texts:
            if url not in embedded_texts:
                raise ValueError(
                    f"url is {url!r}, but no such text exists. Write one of "
                    f"{', '.join(embedded_texts)}"
                )
            return
        scheme = valid_scheme("url", url)
        if scheme == "file" and self.sha256 is None:
            raise ValueError(
                f"url is {url!r} without sha256, so changes of the file would go unnoticed. Add "
                "sha256"
            )

    @property
    def name(self) -> str:
        """How messages name the file: `inputs/train.en`, or `https://example.org/news.tgz!train.en`.

        In the second example, the `!` separates an archive from the name of a file in it.
        """
        return "!".join((self.address, *self.archive_member))

    @property
    def address(self) -> str:
        """The URL or path of the file; its extension says how the file is packed."""
        return self.url or self.path or ""

    @property
    def last_name(self) -> str:
        """The name of the text itself: the name in the archive, or the URL or path."""
        return (self.address, *self.archive_member)[-1]


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
        columns: The columns of source and target in a table (tsv, csv, jsonl or parquet): their
            numbers, from 1, or their names. Names of a tsv or csv file are in its first line, which
            then is not a pair. `translation.de` is a nested column of jsonl or parquet. Without
            columns, those that are named after the languages are used; a tsv file needs columns.
        languages: The language codes of source and target in a tmx file if one of them is a
            variant, such as [en-GB, de].
        pairs: How many pairs of a training text are taken; all by default.
        pairs_seed: The seed by which these pairs are drawn; without it, the first pairs are taken.
            Pairs stay in their order.
        tag: A word that is put before each source of a text that a system translates.
        repeat: How many times a training text is taken.
        score: A column of a table with a score of each pair; pairs of a training text with a lower
            score than its `min` are dropped.
        reference: The translator whose references are taken from a wmt-xml file. It may be omitted
            if the file has one translator.
        separate: Whether the training text is a part, which is prepared by itself; the top-level
            key `parts` sets it.
        clean: The rules that change the sentences of a part; by default those of the corpus.
        filter: The rules that drop pairs of a part; by default those of the corpus.
    """

    license_and_citation: str
    format: Format = "plain"
    source: File | None = None
    target: File | None = None
    both: File | None = None
    columns: tuple[Column, Column] | None = None
    languages: tuple[MemoryLanguage, MemoryLanguage] | None = None
    pairs: Annotated[int, Ge(1)] | None = None
    pairs_seed: Annotated[int, Interval(ge=0, le=2**32 - 1)] | None = None
    tag: str | None = None
    repeat: Annotated[int, Ge(1)] | None = None
    reference: str | None = None
    score: PairScore | None = None
    separate: bool | None = None
    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS, find_edit, FOUND_NAMES)] | None = None
    filter: Annotated[tuple[Check, ...], NamedEntries(CHECKS, find_check, FOUND_NAMES)] | None = (
        None
    )

    def __post_init__(self) -> None:
        """Raise ValueError if the files or settings of the text do not fit its format.

        For example, the format tsv has both sides in one file, and needs the setting `columns`.
        """
        # The seed samples a number of pairs, which only `pairs` can say.
        if self.pairs_seed is not None and self.pairs is None:
            raise ValueError(
                f"pairs_seed {self.pairs_seed} has no effect without pairs. Add pairs, or remove "
                "pairs_seed"
            )
        if self.format in TWO_SIDED:
            self._check_one_file()
        else:
            self._check_two_files()
            self._check_names()
        self._check_columns()
        if self.languages is not None and self.format != "tmx":
            raise ValueError(
                f"languages is {list(self.languages)} and format is {self.format}, but only a tmx "
                "file has language codes. Remove languages, or set format: tmx"
            )
        if self.reference is not None and self.format != "wmt-xml":
            raise ValueError(
                f"reference is {self.reference!r}, but only a test set in format wmt-xml contains "
                "several references. Remove it"
            )
        if self.tag is not None and self.synthetic_side is None:
            raise ValueError(
                f"tag {self.tag!r} is only for a text that a system translates. Remove it"
            )
        if self.separate and self.synthetic_side is not None:
            raise ValueError(
                f"the {self.synthetic_side} file is missing. A text that a system translates "
                "cannot be a part. Remove its name from parts"
            )

    def _check_one_file(self) -> None:
        """Raise ValueError unless the text has one file with both sides."""
        if self.both is None or self.source is not None or self.target is not None:
            raise ValueError(
                f"format {self.format} has both sides in one file. Name this file under both, "
                "without source and target"
            )
        if self.format == "parquet" and self.both.line_ends is not None:
            raise ValueError(
                f"line_ends is {self.both.line_ends}, but a parquet file has no lines. Remove "
                "line_ends"
            )

    def _check_two_files(self) -> None:
        """Raise ValueError unless the text has the files of a format with one file per side.

        It needs a source and a target file. In plain format, one of them is enough: a system of the
        experiment then translates it, and the translation becomes the other side.
        """
        has_file_for_both = self.both is not None
        has_no_file = not self.files
        is_incomplete = self.synthetic_side is not None and self.format != "plain"
        if has_file_for_both or has_no_file or is_incomplete:
            raise ValueError(
                f"format {self.format} needs two files, source and target. For both sides in one "
                f"file, set both, and format: {' or '.join(sorted(TWO_SIDED))}"
            )

    def _check_names(self) -> None:
        """Raise ValueError if the name of a file says that it is not of a format of two files.

        A table such as a.jsonl would otherwise be read as plain text, and its markup trained on.
        """
        for file in self.files:
            file_format = format_of_name(file.last_name)
            if file_format is not None:
                raise ValueError(
                    f"{file.name}: by its name, the file is of format {file_format}, not "
                    f"{self.format}. Set format: {file_format}, and both: the one file with "
                    "source and target. If it is plain text, rename it"
                )

    def _check_columns(self) -> None:
        """Raise ValueError unless `columns` fits the format.

        The two columns must differ, and be both named or both numbered. A text that is not a table
        must not have the setting.
        """
        if self.score is not None:
            self.score.check_format(self.format)
        if self.columns is None:
            if self.format == "tsv":
                raise ValueError("format tsv needs columns. Name the source and the target column")
            return
        if self.format not in TABLES:
            raise ValueError(
                f"columns are only for formats {join_with_and(sorted(TABLES))}, but format is "
                f"{self.format}. Remove columns"
            )
        source_column, target_column = self.columns
        if source_column == target_column:
            raise ValueError(
                f"columns {list(self.columns)}: source and target are the same. Name two columns"
            )
        if type(source_column) is not type(target_column):
            raise ValueError(
                f"columns {list(self.columns)}: one has a name, the other a number. Name both, or "
                "number both"
            )
        if self.format in TABLES_OF_RECORDS and self.named_columns is None:
            raise ValueError(
                f"columns {list(self.columns)}: the columns of format {self.format} have names, "
                "not numbers. Name both"
            )

    @property
    def named_columns(self) -> tuple[str, str] | None:
        """The names of the source and the target column; None for numbers, or if they are unset."""
        if self.columns is None:
            return None
        source_column, target_column = self.columns
        if isinstance(source_column, str) and isinstance(target_column, str):
            return source_column, target_column
        return None

    @property
    def synthetic_side(self) -> Literal["source", "target"] | None:
        """The side without a file, which a system translates; None if both sides are in files."""
        is_in_files = self.both is not None or (self.source and self.target)
        if is_in_files:
            return None
        return "target" if self.source else "source"

    @property
    def selection(self) -> dict[str, float | str | None]:
        """The settings that decide which pairs of the text are used, how often, and with which tag.

        MLflow shows them for each training text.
        """
        return {
            "pairs": self.pairs,
            "pairs_seed": self.pairs_seed,
            "tag": self.tag,
            "repeat": self.repeat,
            "min_score": self.score.min if self.score is not None else None,
        }

    @property
    def files(self) -> tuple[File, ...]:
        """The two files, source first, or the one file with both sides."""
        return tuple(file for file in (self.source, self.target, self.both) if file is not None)


# The texts of a set by name; the set is their concatenation.
Parts = dict[Name, Text]


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
        """Check the texts of validation and test sets, for which not all settings are allowed.

        Raises:
            ValueError: Such a text is shortened or repeated, or a system translates one of its
                sides.
        """
        for name, text in self.texts().items():
            if name.startswith("train."):
                continue  # A training text may have all settings.
            if text.score is not None:
                raise ValueError(f"{name}: score is only for training texts. Remove it")
            for key in ("pairs", "repeat"):
                value = getattr(text, key)
                if value is not None:
                    raise ValueError(f"{name}: {key} {value} is only for training texts. Remove it")
            for key in PART_RULES:
                if getattr(text, key) is not None:
                    raise ValueError(f"{name}: {key} is only for training texts. Remove it")
            if text.synthetic_side:
                raise ValueError(
                    f"{name}: the {text.synthetic_side} file is missing. Add it: only a training "
                    "text may have one file, which a system then translates"
                )
            # Sentence alignment drops some sentences of a document; a test set must keep them all.
            if text.format == "documents":
                raise ValueError(
                    f"{name}: format documents is only for training texts. Use format: plain"
                )

    def sets(self) -> dict[str, Parts]:
        """Return the texts of each set by name; the sets are `train`, `valid` and each `test.NAME`.

        A set consists of one or more texts, called its parts. The stage `download` concatenates
        them.
        """
        tests = {f"test.{name}": parts for name, parts in self.tests.items()}
        return {"train": self.train, "valid": self.valid, **tests}

    def set_names(self) -> list[str]:
        """Return the names of the sets that have texts; missing sets are drawn from train."""
        return [name for name, parts in self.sets().items() if parts]

    def parallel_sets(self) -> dict[str, Parts]:
        """Return the texts of each set whose source and target are both in files.

        Synthetic texts are excluded: a system translates one of their sides.

        Returns:
            The texts by set, such as `train`, then by their name in the set.
        """
        parallel_sets: dict[str, Parts] = {}
        for set_name, parts in self.sets().items():
            parallel_parts = {}
            for part_name, text in parts.items():
                if text.synthetic_side is None:
                    parallel_parts[part_name] = text
            parallel_sets[set_name] = parallel_parts
        return parallel_sets

    def parallel_texts(self) -> dict[str, Text]:
        """Return all texts that have both sides in files, by a name such as `train.news`."""
        return _texts_by_name(self.parallel_sets())

    def synthetic_texts(self) -> dict[str, Text]:
        """Return the training texts with one side that a system translates, by name."""
        return {name: text for name, text in self.train.items() if text.synthetic_side}

    def parts(self) -> dict[str, Text]:
        """Return the training texts that are prepared by themselves, by name, in their order."""
        return {name: text for name, text in self.train.items() if text.separate}

    def prepared_together(self) -> "Files":
        """Return the same sets without the training texts that are prepared by themselves."""
        others = {name: text for name, text in self.train.items() if not text.separate}
        return replace(self, train=others)

    def rules(self) -> list[Rule]:
        """Return the rules that training texts have themselves, besides those of the corpus."""
        rules: list[Rule] = []
        for text in self.train.values():
            rules += text.clean or ()
            rules += text.filter or ()
        return rules

    def only_training(self) -> "Files":
        """Return the training texts without the validation and test sets."""
        return replace(self, valid={}, tests={})

    def texts(self) -> dict[str, Text]:
        """Return all texts of all sets by a name such as `train.news`."""
        return _texts_by_name(self.sets())

    def files_by_name(self) -> dict[str, File]:
        """Return the files of all texts by set, text and side, such as `train.news.source`."""
        files = {}
        for name, text in self.texts().items():
            for side in SIDES:
                file = getattr(text, side)
                if file is not None:
                    files[f"{name}.{side}"] = file
        return files


def _texts_by_name(sets: Mapping[str, Parts]) -> dict[str, Text]:
    """Collect the texts of all sets in one mapping, by names such as `train.news`.

    Args:
        sets: The texts by set, such as `train`, then by their name in the set, such as `news`.

    Returns:
        The texts by set and name, such as `train.news`.
    """
    texts = {}
    for set_name, parts in sets.items():
        for part_name, text in parts.items():
            texts[f"{set_name}.{part_name}"] = text
    return texts


def settings_key(corpus: str, text: str) -> str:
    """Return the key under which params.yaml describes a text, for messages.

    For the text `test.test2016.all` of the corpus `multi30k`, the key is
    `corpora.multi30k.files.tests.test2016.all`. For the text `train.news` of `many/en-de`, one
    language pair of the corpus `many`, it is `corpora.many.files.train.en-de-news`.

    Args:
        corpus: The name of a corpus or of one of its language pairs.
        text: A set (`train`, `valid` or `test.NAME`), a text of a set (`train.NAME`), or one side
            of a text (`train.NAME.source`).
    """
    pair_name = PairName.parse(corpus)
    set_name, *names = text.split(".")
    if names:
        # The name in the whole corpus: `news` of the pair en-de is called `en-de-news` there.
        names[0] = pair_name.text_name(names[0])
    # params.yaml has all test sets under the key `tests`.
    set_key = "tests" if set_name == "test" else set_name
    return ".".join(["corpora", pair_name.corpus, "files", set_key, *names])
