"""params.yaml as frozen dataclasses: the one place where settings are read.

Every setting is spelled out in params.yaml: there are no defaults here, so that what DVC
tracks is the whole of what a stage computes from. What does not change a result (workers,
GPUs, mirrors) is never a setting; see `environment.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from bleuprint.errors import UserError, run
from bleuprint.schema import Range, build, load_yaml

T = TypeVar("T")

_PHRASEBOOK = [
    f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de", "fr")
]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

Count = Annotated[int, Range(1)]
Share = Annotated[float, Range(0, 1, open_high=True)]


@dataclass(frozen=True)
class File:
    """One file of a corpus: fetched from `url`, or lying at `path` below `inputs/`.

    A URL is http, https or file, or `phrasebook:SPLIT.LANGUAGE` for the embedded corpus.
    A name that ends in .gz is unpacked. `sha256` and `size` (bytes) are of the file as fetched.
    """

    url: str | None = None
    path: str | None = None
    sha256: str | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if (self.url is None) == (self.path is None):
            raise ValueError("needs either url or path")
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ValueError(f"sha256 is {self.sha256!r}: 64 hexadecimal digits, lower case")
        if self.path is not None and not _below_inputs(self.path):
            raise ValueError(f"path is {self.path!r}: local files lie below inputs/")
        scheme, _, rest = (self.url or "").partition(":")
        if scheme == "phrasebook" and rest not in _PHRASEBOOK:
            known = ", ".join(_PHRASEBOOK)
            raise ValueError(f"url is {self.url!r}: phrasebook: and one of {known}")
        if scheme == "file" and self.sha256 is None:
            raise ValueError(f"url is {self.url!r}: needs sha256, or its changes go unnoticed")


@dataclass(frozen=True)
class FilePair:
    """The two sides of one parallel text."""

    source: File
    target: File


@dataclass(frozen=True)
class Files:
    """What a corpus is made of; parts of `train` and of `valid` are joined in this order."""

    train: dict[str, FilePair]
    valid: dict[str, FilePair]
    tests: dict[str, FilePair]

    def __post_init__(self) -> None:
        if not self.train:
            raise ValueError("train names no files")
        for kind, parts in (("train", self.train), ("valid", self.valid), ("tests", self.tests)):
            _check_names(kind, parts)


@dataclass(frozen=True)
class About:
    """Where a text comes from, and on what terms."""

    name: str
    licence: str
    citation: str


@dataclass(frozen=True)
class Clean:
    """`unicode`: the normalisation form training text is brought to."""

    unicode: Literal["NFC", "NFKC", "none"]


@dataclass(frozen=True)
class Filter:
    """Bounds on training pairs, in words between spaces."""

    min_words: Annotated[int, Range(1)]
    max_words: Annotated[int, Range(1)]
    max_ratio: Annotated[float, Range(1)]

    def __post_init__(self) -> None:
        if self.max_words < self.min_words:
            raise ValueError(f"max_words {self.max_words} is below min_words {self.min_words}")


@dataclass(frozen=True)
class Split:
    """Shares of the pairs that become validation and test sets where a corpus has none."""

    valid: Share
    test: Share
    seed: Annotated[int, Range(0)]

    def __post_init__(self) -> None:
        if self.valid + self.test >= 1:
            raise ValueError(f"valid {self.valid} and test {self.test} leave nothing to train on")


@dataclass(frozen=True)
class Tokenize:
    """Moses tokenisation, after these normalisations."""

    punctuation: bool
    lowercase: bool


@dataclass(frozen=True)
class LearnBpe:
    """Joint byte-pair encoding of both languages."""

    merges: Annotated[int, Range(0)]


@dataclass(frozen=True)
class Corpus:
    """One column of the table: a language pair with its texts and their preparation."""

    source: str
    target: str
    about: tuple[About, ...]
    files: Files
    clean: Clean
    filter: Filter
    split: Split
    tokenize: Tokenize
    learn_bpe: LearnBpe

    def __post_init__(self) -> None:
        for side in (self.source, self.target):
            if not re.fullmatch("[a-z]{2,3}", side):
                raise ValueError(
                    f"language {side!r}: two or three lower-case letters, such as 'de'"
                )
        if self.source == self.target:
            raise ValueError(f"source and target are both {self.source!r}")


@dataclass(frozen=True)
class Model:
    """The Transformer's shape, in the paper's names."""

    encoder_layers: Count
    decoder_layers: Count
    d_model: Count
    d_ff: Count
    heads: Count
    dropout: Share
    norm: Literal["post", "pre"]
    tie: Literal["all", "decoder", "none"]

    def __post_init__(self) -> None:
        if self.d_model % self.heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by heads {self.heads}")
        if self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} is odd: sinusoidal positions come in pairs")


@dataclass(frozen=True)
class Train:
    """How a model is trained.

    `tokens_per_update` counts target tokens over all processes; an update is made of batches
    of at most `batch_tokens` tokens, padding included, which the processes share out.
    """

    tokens_per_update: Count
    batch_tokens: Count
    updates: Count
    learning_rate: Annotated[float, Range(0, open_low=True)]
    warmup: Count
    betas: tuple[Share, Share]
    epsilon: Annotated[float, Range(0, open_low=True)]
    clip_norm: Annotated[float, Range(0)]
    label_smoothing: Share
    precision: Literal["float32", "bfloat16"]
    validate_every: Count
    checkpoint_every: Count
    keep_last: Count

    def __post_init__(self) -> None:
        if self.batch_tokens > self.tokens_per_update:
            raise ValueError(
                f"batch_tokens {self.batch_tokens} is beyond tokens_per_update "
                f"{self.tokens_per_update}: updates would be larger than they say"
            )


@dataclass(frozen=True)
class Average:
    """`last`: how many of the newest checkpoints are averaged."""

    last: Count


@dataclass(frozen=True)
class Decode:
    """Beam search: scores are divided by ((5 + length) / 6)^alpha; see search.py."""

    beam: Count
    alpha: Annotated[float, Range(0)]
    max_extra: Annotated[int, Range(0)]


@dataclass(frozen=True)
class System:
    """One row of the table: a model, how it is trained and how it translates."""

    model: Model
    train: Train
    average: Average
    decode: Decode

    def __post_init__(self) -> None:
        kept = min(self.train.keep_last, self.train.updates // self.train.checkpoint_every)
        if self.train.updates % self.train.checkpoint_every:
            raise ValueError(
                f"train.updates {self.train.updates} is no multiple of "
                f"train.checkpoint_every {self.train.checkpoint_every}"
            )
        if self.average.last > kept:
            raise ValueError(f"average.last {self.average.last}: training keeps {kept} checkpoints")


@dataclass(frozen=True)
class Settings:
    """The whole experiment."""

    experiment: str
    seeds: tuple[Annotated[int, Range(0, 2**63 - 1)], ...]
    corpora: dict[str, Corpus]
    systems: dict[str, System]

    def __post_init__(self) -> None:
        for kind, entries in (("corpora", self.corpora), ("systems", self.systems)):
            if not entries:
                raise ValueError(f"{kind} is empty")
            _check_names(kind, entries)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds {list(self.seeds)}: one or more, each once")
        cells = [f"{system}-{corpus}" for system in self.systems for corpus in self.corpora]
        if twice := {cell for cell in cells if cells.count(cell) > 1}:
            raise ValueError(f"two cells are called {min(twice)}: rename a system or a corpus")

    def corpus(self, name: str) -> Corpus:
        return _entry("corpora", self.corpora, name)

    def system(self, name: str) -> System:
        return _entry("systems", self.systems, name)


def load(path: Path = Path("params.yaml")) -> Settings:
    """Read and check the experiment; raises UserError naming file, line, key and value."""
    return build(Settings, load_yaml(path), path)


def _check_names(kind: str, entries: Mapping[str, object]) -> None:
    for name in entries:
        if not NAME.fullmatch(name):
            raise ValueError(f"{kind}.{name}: a name is of letters, digits, '-' and '_'")


def _entry(kind: str, entries: Mapping[str, T], name: str) -> T:
    if name not in entries:
        raise UserError(f"params.yaml: no {kind} entry {name!r}; there are: {', '.join(entries)}")
    return entries[name]


def _below_inputs(path: str) -> bool:
    parts = Path(path).parts
    return len(parts) > 1 and parts[0] == "inputs" and ".." not in parts


if __name__ == "__main__":
    run(lambda: print(f"{load().experiment}: params.yaml is sound"))
