"""Writing texts as arrays of ids; binary.py says how they lie on disk, and reads them.

Memory grows with the number of different words, whose units are counted, and with nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bleuprint.binary import CORPUS, ENDS, IDS, VOCABULARY, Lengths, SetSize
from bleuprint.bpe import Bpe, count_words
from bleuprint.files import whole_folder, write_json
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.progress import track
from bleuprint.sieve import counted
from bleuprint.vocabulary import EOS, UNK, Vocabulary
from bleuprint.workers import chunks, map_chunks


def binarize_folder(
    corpus: str, tokens: TextFolder, codes: Path, binary: Path, ledger_path: Path, workers: int
) -> None:
    """Segment all sets, number the units of train, and write every sentence as ids.

    The same bytes for any number of `workers` (processes).
    """
    ledger = Ledger("binarize", corpus, ())
    with whole_folder(binary) as folder:
        vocabulary = Vocabulary.of(_count_units(corpus, tokens, codes))
        vocabulary.write(folder / VOCABULARY)
        prepare = partial(_Chunks, codes, folder / VOCABULARY)
        sizes = {}
        for name in tokens.names():
            pairs = counted(tokens.pairs(name), name, ledger)
            shown = track(pairs, f"binarize {corpus} {name}", tokens.count(name), "pairs")
            encoded = map_chunks(prepare, chunks(shown), workers)
            sizes[name] = asdict(_write_set(folder, tokens, name, encoded, len(vocabulary)))
        about = {"source": tokens.source, "target": tokens.target, "vocabulary": len(vocabulary)}
        write_json(folder / CORPUS, {**about, "sets": sizes})
        ledger.write(ledger_path)


def _count_units(corpus: str, tokens: TextFolder, codes: Path) -> Counter[str]:
    """How often each unit occurs in train: each different word is segmented once."""
    bpe, counts = Bpe(codes), Counter[str]()
    for word, count in count_words(tokens, corpus).items():
        for unit in bpe.segment([word]):
            counts[unit] += count
    return counts


class _Side(NamedTuple):
    """One side of a chunk: the ids of its sentences, their lengths, and how many ids are UNK."""

    ids: npt.NDArray[np.uint32]
    lengths: Lengths
    unknown: int


class _Chunks:
    """Turns a chunk of pairs into ids, in whichever process."""

    def __init__(self, codes: Path, vocabulary: Path) -> None:
        self._bpe, self._vocabulary = Bpe(codes), Vocabulary.read(vocabulary)

    def __call__(self, pairs: list[Pair]) -> tuple[_Side, _Side]:
        source, target = zip(*pairs, strict=True)
        return self._side(source), self._side(target)

    def _side(self, lines: Iterable[str]) -> _Side:
        segmented = (self._bpe.segment(line.split(" ")) for line in lines)
        sentences = [[*self._vocabulary.encode(units), EOS] for units in segmented]
        ids = np.array([i for sentence in sentences for i in sentence], np.uint32)
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        return _Side(ids, lengths, int((ids == UNK).sum()))


def _write_set(
    folder: Path,
    tokens: TextFolder,
    name: str,
    encoded: Iterator[tuple[_Side, _Side]],
    vocabulary: int,
) -> SetSize:
    """Write both sides of one set as they come, and say how large it is."""
    small = np.dtype("<u2") if vocabulary < 1 << 16 else np.dtype("<u4")
    with ExitStack() as files:
        writers = [
            (
                files.enter_context(_ArrayWriter(folder / f"{name}.{language}.{IDS}", small)),
                files.enter_context(
                    _ArrayWriter(folder / f"{name}.{language}.{ENDS}", np.dtype("<i8"))
                ),
            )
            for language in (tokens.source, tokens.target)
        ]
        unknown = 0
        for chunk in encoded:
            for side, (ids, ends) in zip(chunk, writers, strict=True):
                ends.write(ids.length + np.cumsum(side.lengths))
                ids.write(side.ids)
                unknown += side.unknown
        (source, ends), (target, _) = writers
        return SetSize(ends.length, source.length, target.length, unknown)


class _ArrayWriter:
    """Writes a .npy file of one dimension bit by bit; use as a context manager."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._dtype, self.length = dtype, 0
        self._file = path.open("wb")

    def __enter__(self) -> "_ArrayWriter":
        self._write_header()
        return self

    def write(self, values: npt.NDArray[Any]) -> None:
        self._file.write(values.astype(self._dtype).tobytes())
        self.length += len(values)

    def __exit__(self, *_: object) -> None:
        with self._file:
            # numpy leaves room in the header for the length to grow.
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        shape = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False}
        npy.write_array_header_1_0(self._file, {**shape, "shape": (self.length,)})
