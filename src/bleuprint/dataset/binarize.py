"""Writing a corpus as arrays of ids; binarized.py documents the format and reads it."""

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

IdTypes = tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Binarizing:
    """The stage binarize for one corpus.

    `edits` and `tokenize` are the settings that made `tokens`. They are recorded, so that the
    folder `binary` suffices to prepare a sentence for a model.
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
        """The stage with the corpus's settings and the project's folders."""
        return cls(
            name,
            corpus.tokenize,
            corpus.clean,
            TextFolder(paths.folder(name, "tokens", root), corpus.source, corpus.target),
            paths.folder(name, "bpe", root),
            paths.folder(name, "binary", root),
            paths.ledger(name, "binarize", root),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Encode a shard of train."""
        blocks, pairs = shard_blocks(self.tokens, shard)
        progress = Progress(f"binarize {self.corpus} train", pairs, "pairs")
        self._encode(part, "train", blocks, progress, workers)

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards, encode the other sets, and write the header and the ledger."""
        with whole_folder(self.binary) as folder:
            sizes = {"train": self._join(parts, folder)}
            for name in self.tokens.held_out():
                progress = Progress(f"binarize {self.corpus} {name}", None, "pairs")
                blocks = self.tokens.blocks(name)
                sizes[name] = self._encode(folder, name, blocks, progress, workers)
            hidden = shutil.ignore_patterns(".*")
            shutil.copytree(self.segmentation, folder / SEGMENTATION, ignore=hidden)
            write_header(folder, self._header(sizes))
            self._write_ledger(sizes)

    def _encode(
        self, folder: Path, name: str, blocks: Iterable[Block], progress: Progress, workers: int
    ) -> SetSize:
        """Encode blocks of pairs into the set `name`."""
        prepare = partial(_BlockEncoder, self.segmentation, self._languages, self._types)
        with _SetWriter(folder, name, self._languages, self._types) as writer, progress:
            for sides in map_parts(prepare, blocks, workers):
                writer.write(sides)
                progress.advance(len(sides[0].lengths))
        return writer.size

    def _join(self, parts: Iterable[Path], folder: Path) -> SetSize:
        """Concatenate the shards of train."""
        with _SetWriter(folder, "train", self._languages, self._types) as writer:
            for part in parts:
                writer.append(part)
        if writer.size.pairs != (pairs := self.tokens.count("train")):
            raise UserError(
                f"{folder}: the shards have {writer.size.pairs} pairs instead of {pairs}: "
                "remove work/shards"
            )
        return writer.size

    @property
    def _languages(self) -> tuple[str, str]:
        return self.tokens.source, self.tokens.target

    @cached_property
    def _types(self) -> IdTypes:
        """The smallest type that holds all ids, for each language."""
        sizes = [
            len(Segmentation.read(self.segmentation, language).vocabulary)
            for language in self._languages
        ]
        return tuple(
            next(kind for kind in ID_TYPES if size - 1 <= np.iinfo(kind).max) for size in sizes
        )

    def _header(self, sizes: dict[str, SetSize]) -> dict[str, Any]:
        return {
            "source": self.tokens.source,
            "target": self.tokens.target,
            "joint": read_json(self.segmentation / "segmentation.json")["joint"],
            "clean": {edit.name(): asdict(edit) for edit in self.edits},
            "tokenize": asdict(self.tokenize),
            "sets": {name: asdict(size) for name, size in sizes.items()},
        }

    def _write_ledger(self, sizes: dict[str, SetSize]) -> None:
        ledger = Ledger("binarize", self.corpus, ())
        for name, size in sizes.items():
            ledger.open(name).keep(size.pairs)
        ledger.write(self.ledger)


class _EncodedSide(NamedTuple):
    """One side of a block: the ids of all sentences with EOS, and the length of each."""

    ids: Ids
    lengths: Lengths


class _BlockEncoder:
    """Encodes blocks to ids, in a worker process."""

    def __init__(self, folder: Path, languages: Iterable[str], types: IdTypes) -> None:
        self._segmentations = [Segmentation.read(folder, language) for language in languages]
        self._types = types

    def __call__(self, block: Block) -> tuple[_EncodedSide, ...]:
        sides = zip(*block.pairs(), strict=True)
        return tuple(map(_encode_side, sides, self._segmentations, self._types))


def _encode_side(
    lines: Iterable[str], segmentation: Segmentation, kind: np.dtype[Any]
) -> _EncodedSide:
    ids = np.fromiter(segmentation.encode(lines), kind)
    # Text never encodes to EOS: there is exactly one a line.
    ends = np.flatnonzero(ids == EOS) + 1
    return _EncodedSide(ids, np.diff(ends, prepend=0))


class _SetWriter:
    """Writes both sides of a set incrementally; a context manager.

    `size` is valid once everything is written.
    """

    def __init__(self, folder: Path, name: str, languages: Iterable[str], types: IdTypes) -> None:
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

    def write(self, sides: Sequence[_EncodedSide]) -> None:
        """Append the pairs of a block."""
        for (ids, ends), side in zip(self._sides, sides, strict=True):
            ends.write(ids.length + np.cumsum(side.lengths))
            self._write_ids(ids, side.ids)

    def append(self, part: Path) -> None:
        """Append the set of the same name from the folder `part`."""
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
    """Writes a one-dimensional .npy file incrementally; a context manager."""

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
            # numpy pads the header so that the length can grow.
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        shape = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False}
        npy.write_array_header_1_0(self._file, {**shape, "shape": (self.length,)})


def _read_array(path: Path) -> Iterator[npt.NDArray[Any]]:
    """Yield blocks of a one-dimensional .npy file."""
    with path.open("rb") as file:
        npy.read_magic(file)
        _, _, dtype = npy.read_array_header_1_0(file)
        while len(block := np.fromfile(file, dtype, _BLOCK)):
            yield block
