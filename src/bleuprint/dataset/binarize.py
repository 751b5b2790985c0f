"""The stage binarize: writes a corpus as arrays of token ids.

binarized.py documents the format and reads it. Shards of the training text are encoded
independently into plain files of numbers; at the end, these are joined to .npy files.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple, Self

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
from bleuprint.dataset.subwords.segmentation import Segmentation, read_segmentation_file
from bleuprint.dataset.subwords.vocabulary import EOS, UNK
from bleuprint.rules.rule import Edits
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, count_lines
from bleuprint.text.tokenizers import Tokenize

# The number of array elements that are read from a file at once.
_BLOCK_ELEMENTS = 1 << 18

# The types of the token ids of the source and the target language.
IdTypes = tuple[np.dtype[Any], ...]


class _PartFiles(NamedTuple):
    """The files of one side of a set in one part, each a sequence of plain numbers.

    Attributes:
        ids: The token ids of all sentences.
        lengths: The number of token ids of each sentence.
    """

    ids: Path
    lengths: Path


class _SideSize(NamedTuple):
    """The size of one side of a set.

    Attributes:
        sentences: The number of sentences.
        tokens: The number of token ids, EOS included.
        unknown: How many of them are UNK.
    """

    sentences: int
    tokens: int
    unknown: int


@dataclass(frozen=True)
class Binarizing(Step):
    """The stage binarize for one corpus.

    The output records `tokenize` and `edits`, the settings of earlier stages, so that the folder
    alone suffices to prepare a sentence for a model.

    Attributes:
        segmentation: The folder that the stage learn_vocabulary wrote.
        tokenize: The settings of the tokenizer.
        edits: The edits of the stage clean.
        vocabulary: The settings of the stage learn_vocabulary.
        pairs_header: What the header records about the language pairs, if there are several.
    """

    stage = "binarize"
    segmentation: Path
    tokenize: Tokenize
    edits: Edits
    vocabulary: Units
    pairs_header: dict[str, Any] | None = None

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Create the stage for a corpus, with the settings and paths that it needs.

        Args:
            name: The name of the corpus in params.yaml.
            corpus: Its settings.
            root: The folder of the project.
        """
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="tokens",
            output_folder="binary",
        )
        segmentation = paths.vocabulary_folder(name, corpus.vocabulary.shared_from, root)
        return cls(
            *files,
            segmentation=segmentation,
            tokenize=corpus.tokenize,
            edits=corpus.clean,
            vocabulary=corpus.vocabulary,
            pairs_header=corpus.header_of_pairs(),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Encode one shard of the training text as token ids.

        Args:
            shard: The part of the training text to encode.
            part: The folder to write into.
            workers: The number of processes that encode.
        """
        blocks, pair_count = self.shard_blocks(shard)
        self._encode(part, "train", blocks, pair_count, workers)

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Write the binary corpus, after all shards of the training text were encoded.

        Joins the shards to one file, encodes the validation and test sets, copies the vocabularies,
        and writes the header and the filtering statistics of this stage.

        Args:
            parts: The folders of the encoded shards, in their order.
            workers: The number of processes that encode.
        """
        with atomic_folder(self.output) as folder:
            sizes = {"train": self._join(parts, folder, "train")}
            with TemporaryDirectory(dir=folder) as scratch:
                # The validation and test sets are small, so each is encoded as a single part.
                part = Path(scratch)
                for name in self.input_text.held_out():
                    blocks = self.input_text.blocks(name)
                    self._encode(part, name, blocks, pair_count=None, workers=workers)
                    sizes[name] = self._join([part], folder, name)
            # Hidden files, such as those of an editor, do not belong to the vocabularies.
            hidden_files = shutil.ignore_patterns(".*")
            shutil.copytree(self.segmentation, folder / SEGMENTATION, ignore=hidden_files)
            write_header(folder, self._header(sizes))
            self._write_filter_stats(sizes)

    def _write_filter_stats(self, sizes: dict[str, SetSize]) -> None:
        """Write how many sentence pairs of each set this stage kept: all of them.

        Every stage of the corpus writes such a file, and the report shows them together.

        Args:
            sizes: The size of each set, by the name of the set.
        """
        filter_stats = self.new_filter_stats()
        for name, size in sizes.items():
            filter_stats.add_set(name).count_kept(size.pairs)
        filter_stats.write(self.filter_stats_path)

    def _encode(
        self, part: Path, name: str, blocks: Iterable[Block], pair_count: int | None, workers: int
    ) -> None:
        """Encode sentence pairs of a set as token ids, and write the numbers into four files.

        For each language, there is a file of token ids and a file of sentence lengths. They contain
        only the numbers, without a header, so that the files of several shards can be joined.

        Args:
            part: The folder to write into.
            name: The name of the set, such as `train`.
            blocks: The sentence pairs, in blocks.
            pair_count: The number of pairs, for the progress bar; None if it is not known.
            workers: The number of processes that encode.
        """
        # Each process calls this function once, to create its own encoder.
        create_encoder = partial(
            _BlockEncoder, self.segmentation, self.input_text.languages, self._id_types
        )
        progress_name = f"binarize {self.corpus} {name}"
        with ExitStack() as stack:
            progress = stack.enter_context(Progress(progress_name, pair_count, "pairs"))
            files = []
            for language in self.input_text.languages:
                for path in _part_files(part, name, language):
                    files.append(stack.enter_context(path.open("wb")))
            # An encoder returns four arrays for a block, in the order of the files.
            for arrays in map_parts(create_encoder, blocks, workers):
                for array, file in zip(arrays, files, strict=True):
                    file.write(array.data)
                target_lengths = arrays[-1]
                progress.advance(len(target_lengths))

    def _join(self, parts: Sequence[Path], folder: Path, name: str) -> SetSize:
        """Join the plain files of a set to arrays in numpy's format, for both languages.

        Args:
            parts: The folders with the files, in the order of the text.
            folder: The folder of the binary corpus, to write into.
            name: The name of the set, such as `train`.

        Returns:
            The size of the set.
        """
        sizes = []
        for language, id_type in zip(self.input_text.languages, self._id_types, strict=True):
            id_parts = []
            length_parts = []
            for part in parts:
                files = _part_files(part, name, language)
                id_parts.append(files.ids)
                length_parts.append(files.lengths)
            ids = _join_ids(id_parts, folder / f"{name}.{language}.{IDS}", id_type)
            sentences = _join_lengths(length_parts, folder / f"{name}.{language}.{ENDS}")
            sizes.append(_SideSize(sentences, ids.total, ids.unknown))
        source, target = sizes
        return SetSize(
            pairs=target.sentences,
            source_tokens=source.tokens,
            target_tokens=target.tokens,
            unknown=source.unknown + target.unknown,
        )

    @cached_property
    def _id_types(self) -> IdTypes:
        """Return the integer type of each language's token ids: the smallest that is large enough.

        With 16 bits instead of 32, the files of a corpus are half as large.
        """
        id_types = []
        for language in self.input_text.languages:
            # The file has one line for each token of the vocabulary.
            vocabulary_size = count_lines(self.segmentation / f"vocabulary.{language}")
            id_types.append(_smallest_id_type(vocabulary_size))
        return tuple(id_types)

    def _header(self, sizes: dict[str, SetSize]) -> dict[str, Any]:
        """Return the content of the header, corpus.json, except the hashes of files.

        It includes the settings of earlier stages, with which a sentence can be prepared for a
        model later.

        Args:
            sizes: The size of each set, by the name of the set.
        """
        edit_settings = {}
        for edit in self.edits:
            edit_settings[edit.key()] = asdict(edit)
        header = {
            "source": self.input_text.source,
            "target": self.input_text.target,
            "joint": read_segmentation_file(self.segmentation)["joint"],
            "clean": edit_settings,
            "tokenize": asdict(self.tokenize),
            "sets": {name: asdict(size) for name, size in sizes.items()},
        }
        header.update(self.pairs_header or {})
        return header


class _BlockEncoder:
    """Encodes blocks of sentence pairs as token ids; each process has one encoder."""

    def __init__(self, folder: Path, languages: Iterable[str], id_types: IdTypes) -> None:
        """Read how words of both languages are split into tokens, and their vocabularies.

        Args:
            folder: The folder that the stage learn_vocabulary wrote.
            languages: The source and the target language.
            id_types: The types of the token ids of both languages.
        """
        self._segmentations = [Segmentation.read(folder, language) for language in languages]
        self._id_types = id_types

    def __call__(self, block: Block) -> list[npt.NDArray[Any]]:
        """Encode the sentences of a block of pairs as token ids.

        Returns:
            Four arrays: the ids of all source sentences one after the other, the length of each of
            these sentences, and the same for the target; EOS included.
        """
        arrays: list[npt.NDArray[Any]] = []
        sides = zip(block.sentences(), self._segmentations, self._id_types, strict=True)
        for lines, segmentation, id_type in sides:
            ids = segmentation.encode(lines).astype(id_type)
            # No text is encoded as EOS, so the only EOS of a line is at its end.
            ends = np.flatnonzero(ids == EOS) + 1  # The index after each EOS.
            lengths = np.diff(ends, prepend=0)
            arrays.append(ids)
            arrays.append(lengths)
        return arrays


def _smallest_id_type(vocabulary_size: int) -> np.dtype[Any]:
    """Return the smallest integer type for the ids of a vocabulary: 16 or 32 bits.

    Raises:
        OverflowError: The vocabulary is too large for 32 bits.
    """
    highest_id = vocabulary_size - 1
    for id_type in ID_TYPES:
        if highest_id <= np.iinfo(id_type).max:
            return id_type
    raise OverflowError(f"no type holds {vocabulary_size} ids")


def _part_files(part: Path, name: str, language: str) -> _PartFiles:
    """Return the paths of the two files that contain the encoded sentences of a set.

    Args:
        part: The folder of a shard of the training text, or of a whole validation or test set.
        name: The name of the set, such as `train`.
        language: The source or the target language.
    """
    return _PartFiles(
        ids=part / f"{name}.{language}.ids",
        lengths=part / f"{name}.{language}.lengths",
    )


class _IdCounts(NamedTuple):
    """How many token ids some sentences have.

    Attributes:
        total: All, EOS included.
        unknown: How many of them are UNK.
    """

    total: int
    unknown: int


def _join_ids(parts: Sequence[Path], path: Path, id_type: np.dtype[Any]) -> _IdCounts:
    """Join files of token ids to one array in numpy's format, and count the ids.

    Args:
        parts: The files of plain numbers, in their order.
        path: The .npy file to write.
        id_type: The type of the numbers.
    """
    total = 0
    unknown = 0
    with _array_file(path, id_type, parts) as file:
        for ids in _read_blocks(parts, id_type):
            file.write(ids.data)
            total += len(ids)
            unknown += int(np.count_nonzero(ids == UNK))
    return _IdCounts(total, unknown)


def _join_lengths(parts: Sequence[Path], path: Path) -> int:
    """Turn files of sentence lengths into one array in numpy's format: the ends of the sentences.

    The end of a sentence is the index after its last token id in the array of all ids. So ends are
    running sums: the lengths 3, 2 and 4 become the ends 3, 5 and 9.

    Args:
        parts: The files of plain numbers, in their order.
        path: The .npy file to write.

    Returns:
        The number of sentences.
    """
    sentences = 0
    last_end = 0
    with _array_file(path, END_TYPE, parts) as file:
        for lengths in _read_blocks(parts, END_TYPE):
            ends = last_end + np.cumsum(lengths)
            file.write(ends.data)
            sentences += len(lengths)
            last_end = int(ends[-1])
    return sentences


@contextmanager
def _array_file(
    path: Path, element_type: np.dtype[Any], parts: Iterable[Path]
) -> Iterator[BinaryIO]:
    """Create a .npy file for the numbers of several files, and write its header.

    The caller then writes the numbers behind the header. The header records how many there are, so
    the sizes of the files are added up first.

    Args:
        path: The file to write.
        element_type: The type of the numbers.
        parts: The files of plain numbers; only their sizes are used.

    Yields:
        The file, open for writing.
    """
    total_bytes = sum(part.stat().st_size for part in parts)
    length = total_bytes // element_type.itemsize
    header = {
        "descr": npy.dtype_to_descr(element_type),
        "fortran_order": False,
        "shape": (length,),
    }
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, header)
        yield file


def _read_blocks(paths: Iterable[Path], element_type: np.dtype[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the numbers of files in blocks, so that memory does not grow with the files.

    A block ends at the end of its file at the latest.

    Args:
        paths: The files of plain numbers, in their order.
        element_type: The type of the numbers.
    """
    for path in paths:
        with path.open("rb") as file:
            # At the end of the file, `fromfile` returns an empty array.
            while len(block := np.fromfile(file, element_type, _BLOCK_ELEMENTS)):
                yield block
