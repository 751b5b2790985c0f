"""Writing a corpus as arrays of ids; binary.py says how they lie on disk, and reads them."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.ledger import Ledger
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import shard_blocks
from bleuprint.dataset.binarized import (
    END_TYPE,
    ENDS,
    ID_TYPES,
    IDS,
    SEGMENTATION,
    Ids,
    Lengths,
    SetSize,
    write_header,
)
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import EOS, UNK
from bleuprint.rules.rule import Edits
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, whole_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, TextFolder
from bleuprint.text.tokenizers import Tokenize

_BLOCK = 1 << 18

Types = tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Binarizing:
    """The stage for one corpus.

    `edits` and `tokenize` are what made its `tokens`: they are recorded, so that a sentence can be
    made ready for a model from the folder `binary` alone.
    """

    corpus: str
    tokenize: Tokenize
    edits: Edits
    tokens: TextFolder
    segmentation: Path
    binary: Path
    ledger: Path

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage as its settings and the layout have it."""
        return cls(
            name,
            corpus.tokenize,
            corpus.clean,
            TextFolder(paths.folder(name, "tokens", root), corpus.source, corpus.target),
            paths.folder(name, "bpe", root),
            paths.folder(name, "binary", root),
            paths.ledger(name, "binarize", root),
        )

    def sift(self, shard: Shard, part: Path, workers: int) -> None:
        """Encode a shard of train."""
        blocks, pairs = shard_blocks(self.tokens, shard)
        progress = Progress(f"binarize {self.corpus} train", pairs, "pairs")
        self._encode(part, "train", blocks, progress, workers)

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards, encode the other sets, and describe it all."""
        with whole_folder(self.binary) as folder:
            sizes = {"train": self._join(parts, folder)}
            for name in self.tokens.held_out():
                progress = Progress(f"binarize {self.corpus} {name}", None, "pairs")
                blocks = self.tokens.blocks(name)
                sizes[name] = self._encode(folder, name, blocks, progress, workers)
            hidden = shutil.ignore_patterns(".*")
            shutil.copytree(self.segmentation, folder / SEGMENTATION, ignore=hidden)
            write_header(folder, self._about(sizes))
            self._account(sizes)

    def _encode(
        self, folder: Path, name: str, blocks: Iterable[Block], progress: Progress, workers: int
    ) -> SetSize:
        """Write what blocks hold as the set `name`."""
        prepare = partial(_Blocks, self.segmentation, self._languages, self._types)
        with _SetWriter(folder, name, self._languages, self._types) as writer, progress:
            for sides in map_parts(prepare, blocks, workers):
                writer.write(sides)
                progress.advance(len(sides[0].lengths))
        return writer.size

    def _join(self, parts: Iterable[Path], folder: Path) -> SetSize:
        """Write one after the other what shards of train left."""
        with _SetWriter(folder, "train", self._languages, self._types) as writer:
            for part in parts:
                writer.append(part)
        if writer.size.pairs != (pairs := self.tokens.count("train")):
            raise UserError(
                f"{folder}: shards of {writer.size.pairs} pairs, but there are {pairs}: "
                "remove those in work/shards"
            )
        return writer.size

    @property
    def _languages(self) -> tuple[str, str]:
        return self.tokens.source, self.tokens.target

    @cached_property
    def _types(self) -> Types:
        """What the ids of each language are stored as: the smallest type that holds all of them."""
        sizes = [
            len(Segmentation.read(self.segmentation, language).vocabulary)
            for language in self._languages
        ]
        return tuple(
            next(kind for kind in ID_TYPES if size - 1 <= np.iinfo(kind).max) for size in sizes
        )

    def _about(self, sizes: dict[str, SetSize]) -> dict[str, Any]:
        return {
            "source": self.tokens.source,
            "target": self.tokens.target,
            "joint": read_json(self.segmentation / "segmentation.json")["joint"],
            "clean": {edit.name(): asdict(edit) for edit in self.edits},
            "tokenize": asdict(self.tokenize),
            "sets": {name: asdict(size) for name, size in sizes.items()},
        }

    def _account(self, sizes: dict[str, SetSize]) -> None:
        ledger = Ledger("binarize", self.corpus, ())
        for name, size in sizes.items():
            ledger.open(name).keep(size.pairs)
        ledger.write(self.ledger)


class _Side(NamedTuple):
    """One side of a block: the ids of its sentences, each ended by EOS, and how many each has."""

    ids: Ids
    lengths: Lengths


class _Blocks:
    """Turns blocks into ids, in whichever process."""

    def __init__(self, folder: Path, languages: Iterable[str], types: Types) -> None:
        self._segmentations = [Segmentation.read(folder, language) for language in languages]
        self._types = types

    def __call__(self, block: Block) -> tuple[_Side, ...]:
        sides = zip(*block.pairs(), strict=True)
        return tuple(map(_encoded, sides, self._segmentations, self._types))


def _encoded(lines: Iterable[str], segmentation: Segmentation, kind: np.dtype[Any]) -> _Side:
    ids = np.fromiter(segmentation.encode(lines), kind)
    # No text makes an EOS: there is one for each line.
    ends = np.flatnonzero(ids == EOS) + 1
    return _Side(ids, np.diff(ends, prepend=0))


class _SetWriter:
    """Writes both sides of a set bit by bit; use as a context manager.

    Its `size` is known when all is written.
    """

    def __init__(self, folder: Path, name: str, languages: Iterable[str], types: Types) -> None:
        self._name, self._languages = name, tuple(languages)
        with ExitStack() as opening:
            self._sides = [
                tuple(
                    opening.enter_context(_ArrayWriter(folder / f"{name}.{language}.{array}", of))
                    for array, of in ((IDS, kind), (ENDS, END_TYPE))
                )
                for language, kind in zip(self._languages, types, strict=True)
            ]
            self._open = opening.pop_all()
        self._unknown = 0

    def __enter__(self) -> "_SetWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(self, sides: Sequence[_Side]) -> None:
        """Write the pairs of a block."""
        for (ids, ends), side in zip(self._sides, sides, strict=True):
            ends.write(ids.length + np.cumsum(side.lengths))
            self._write_ids(ids, side.ids)

    def append(self, part: Path) -> None:
        """Write the pairs of the set of this name in the folder `part`."""
        for (ids, ends), language in zip(self._sides, self._languages, strict=True):
            before = ids.length
            for block in _read_array(part / f"{self._name}.{language}.{IDS}"):
                self._write_ids(ids, block)
            for block in _read_array(part / f"{self._name}.{language}.{ENDS}"):
                ends.write(before + block)

    def _write_ids(self, writer: "_ArrayWriter", ids: Ids) -> None:
        writer.write(ids)
        self._unknown += int(np.count_nonzero(ids == UNK))

    @property
    def size(self) -> SetSize:
        (source, ends), (target, _) = self._sides
        return SetSize(ends.length, source.length, target.length, self._unknown)


class _ArrayWriter:
    """Writes a .npy file of one dimension bit by bit; use as a context manager."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._dtype, self.length = dtype, 0
        self._file = path.open("wb")

    def __enter__(self) -> "_ArrayWriter":
        self._write_header()
        return self

    def write(self, values: npt.NDArray[Any]) -> None:
        self._file.write(values.astype(self._dtype, copy=False).data)
        self.length += len(values)

    def __exit__(self, *_: object) -> None:
        with self._file:
            # numpy leaves room in the header for the length to grow.
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        shape = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False}
        npy.write_array_header_1_0(self._file, {**shape, "shape": (self.length,)})


def _read_array(path: Path) -> Iterator[npt.NDArray[Any]]:
    """A .npy file of one dimension, many numbers at a time."""
    with path.open("rb") as file:
        npy.read_magic(file)
        _, _, dtype = npy.read_array_header_1_0(file)
        while len(block := np.fromfile(file, dtype, _BLOCK)):
            yield block
