"""Writing a corpus as arrays of ids; binarized.py documents the format and reads it."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus, Units
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import Step, step_files
from bleuprint.dataset.binarized import (
    END_TYPE,
    ENDS,
    ID_TYPES,
    IDS,
    SEGMENTATION,
    SetSize,
    write_header,
)
from bleuprint.dataset.subwords.segmentation import Segmentation, read_about
from bleuprint.dataset.subwords.vocabulary import EOS, UNK
from bleuprint.rules.rule import Edits
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, count_lines
from bleuprint.text.tokenizers import Tokenize

_BLOCK = 1 << 18

IdTypes = tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Binarizing(Step):
    """The stage binarize for one corpus.

    The output records `tokenize` and `edits`, the settings of the stages before, so that it
    suffices to prepare a sentence for a model. `vocabulary`: of the stage learn_vocabulary;
    `pairs_header`: what the header says of the language pairs, if anything.
    """

    stage = "binarize"
    segmentation: Path
    tokenize: Tokenize
    edits: Edits
    vocabulary: Units
    pairs_header: dict[str, Any] | None = None

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="tokens",
            output_folder="binary",
        )
        segmentation = paths.vocabulary(name, corpus.vocabulary.of, root)
        return cls(
            *files,
            segmentation=segmentation,
            tokenize=corpus.tokenize,
            edits=corpus.clean,
            vocabulary=corpus.vocabulary,
            pairs_header=corpus.header_of_pairs(),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Encode a shard of train."""
        self._encode(part, "train", *self.shard_blocks(shard), workers)

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards, encode the other sets, and write the header and the statistics."""
        filter_stats = self.new_filter_stats()
        with atomic_folder(self.output) as folder:
            sizes = {"train": self._join(parts, folder, "train")}
            with TemporaryDirectory(dir=folder) as scratch:
                for name in self.input_text.held_out():
                    self._encode(Path(scratch), name, self.input_text.blocks(name), None, workers)
                    sizes[name] = self._join([Path(scratch)], folder, name)
            hidden = shutil.ignore_patterns(".*")
            shutil.copytree(self.segmentation, folder / SEGMENTATION, ignore=hidden)
            write_header(folder, self._header(sizes))
            for name, size in sizes.items():
                filter_stats.add_set(name).count_kept(size.pairs)
            filter_stats.write(self.filter_stats_path)

    def _encode(
        self, part: Path, name: str, blocks: Iterable[Block], pairs: int | None, workers: int
    ) -> None:
        """Write the ids and the lengths of the sentences of a set, each side as plain numbers."""
        prepare = partial(_BlockEncoder, self.segmentation, self.input_text.languages, self._types)
        with ExitStack() as opened:
            progress = opened.enter_context(
                Progress(f"binarize {self.corpus} {name}", pairs, "pairs")
            )
            files = [
                opened.enter_context(path.open("wb"))
                for language in self.input_text.languages
                for path in _part_files(part, name, language)
            ]
            for arrays in map_parts(prepare, blocks, workers):
                for array, file in zip(arrays, files, strict=True):
                    file.write(array.data)
                progress.advance(len(arrays[-1]))

    def _join(self, parts: Sequence[Path], folder: Path, name: str) -> SetSize:
        """Write the arrays of a set from its parts."""
        sizes = []
        for language, kind in zip(self.input_text.languages, self._types, strict=True):
            ids, lengths = zip(*(_part_files(part, name, language) for part in parts), strict=True)
            tokens = unknown = end = 0
            with _array_file(folder / f"{name}.{language}.{IDS}", kind, ids) as file:
                for block in _read_blocks(ids, kind):
                    file.write(block.data)
                    tokens += len(block)
                    unknown += int(np.count_nonzero(block == UNK))
            pairs = 0
            with _array_file(folder / f"{name}.{language}.{ENDS}", END_TYPE, lengths) as file:
                for block in _read_blocks(lengths, END_TYPE):
                    ends = end + np.cumsum(block)
                    file.write(ends.data)
                    pairs, end = pairs + len(block), int(ends[-1])
            sizes.append((pairs, tokens, unknown))
        (pairs, source, unknown), (_, target, more) = sizes
        return SetSize(pairs, source, target, unknown + more)

    @cached_property
    def _types(self) -> IdTypes:
        """The smallest type that holds all ids, for each language."""
        files = (self.segmentation / f"vocabulary.{each}" for each in self.input_text.languages)
        sizes = [*map(count_lines, files)]
        return tuple(
            next(kind for kind in ID_TYPES if size - 1 <= np.iinfo(kind).max) for size in sizes
        )

    def _header(self, sizes: dict[str, SetSize]) -> dict[str, Any]:
        header = {
            "source": self.input_text.source,
            "target": self.input_text.target,
            "joint": read_about(self.segmentation)["joint"],
            "clean": {edit.name(): asdict(edit) for edit in self.edits},
            "tokenize": asdict(self.tokenize),
            "sets": {name: asdict(size) for name, size in sizes.items()},
        }
        header.update(self.pairs_header or {})
        return header


class _BlockEncoder:
    """Returns for both sides of a block the ids of all sentences, and the length of each."""

    def __init__(self, folder: Path, languages: Iterable[str], types: IdTypes) -> None:
        self._segmentations = [Segmentation.read(folder, language) for language in languages]
        self._types = types

    def __call__(self, block: Block) -> list[npt.NDArray[Any]]:
        arrays: list[npt.NDArray[Any]] = []
        sides = zip(block.sides(), self._segmentations, self._types, strict=True)
        for lines, segmentation, kind in sides:
            ids = segmentation.encode(lines).astype(kind)
            # Text never encodes to EOS: there is exactly one a line.
            ends = np.flatnonzero(ids == EOS) + 1
            arrays += [ids, np.diff(ends, prepend=0)]
        return arrays


def _part_files(part: Path, name: str, language: str) -> tuple[Path, Path]:
    """The files of a set's ids and lengths in a part."""
    return part / f"{name}.{language}.ids", part / f"{name}.{language}.lengths"


@contextmanager
def _array_file(path: Path, kind: np.dtype[Any], parts: Iterable[Path]) -> Iterator[BinaryIO]:
    """A .npy file with the header of a one-dimensional array of the numbers in `parts`."""
    length = sum(part.stat().st_size for part in parts) // kind.itemsize
    header = {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": (length,)}
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, header)
        yield file


def _read_blocks(paths: Iterable[Path], kind: np.dtype[Any]) -> Iterator[npt.NDArray[Any]]:
    for path in paths:
        with path.open("rb") as file:
            while len(block := np.fromfile(file, kind, _BLOCK)):
                yield block
