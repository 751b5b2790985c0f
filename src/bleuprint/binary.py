"""Texts as arrays of ids on disk, read through memory mapping.

A folder holds vocabulary.txt, corpus.json and, for each set and language, two arrays:
SET.LANGUAGE.ids.npy, the ids of all sentences one after the other, each ended by EOS, and
SET.LANGUAGE.ends.npy, where each sentence ends in it. Opening one reads no sentence.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bleuprint.errors import UserError
from bleuprint.files import read_json
from bleuprint.vocabulary import Vocabulary

IDS, ENDS, CORPUS, VOCABULARY = "ids.npy", "ends.npy", "corpus.json", "vocabulary.txt"

Ids = npt.NDArray[np.unsignedinteger[Any]]
Lengths = npt.NDArray[np.int64]


class Sentences:
    """One side of one set: item i is the ids of sentence i, EOS included, a view of the file."""

    def __init__(self, ids: Path, ends: Path) -> None:
        self._paths = ids, ends
        self._ids: Ids = _mapped(ids)
        self._ends: Lengths = _mapped(ends)
        last = int(self._ends[-1]) if len(self._ends) else 0
        if last != len(self._ids):
            raise UserError(f"{ids}: holds {len(self._ids)} ids, {ends.name} wants {last}")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Ids:
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        start = self._ends[index - 1] if index else 0
        sentence: Ids = self._ids[start : self._ends[index]]
        return sentence

    @property
    def lengths(self) -> Lengths:
        """The number of ids of each sentence, EOS included."""
        lengths: Lengths = np.diff(self._ends, prepend=0)
        return lengths

    def __reduce__(self) -> tuple[type["Sentences"], tuple[Path, Path]]:
        # Another process maps the files itself: pickled as it is, a mapping is copied.
        return Sentences, self._paths


@dataclass(frozen=True)
class SetSize:
    """How large a set is; tokens count EOS, `unknown` counts UNK on both sides."""

    pairs: int
    source_tokens: int
    target_tokens: int
    unknown: int


class BinaryCorpus:
    """A corpus as `binarize_folder` leaves it."""

    def __init__(self, folder: Path) -> None:
        if not (folder / CORPUS).exists():
            raise UserError(f"{folder / CORPUS}: no such file; is the corpus binarized?")
        about = read_json(folder / CORPUS)
        self.folder = folder
        self.source: str = about["source"]
        self.target: str = about["target"]
        self.sets = {name: SetSize(**size) for name, size in about["sets"].items()}
        self.vocabulary = Vocabulary.read(folder / VOCABULARY)

    def side(self, set_name: str, language: str) -> Sentences:
        """One side of train, valid or test.NAME."""
        base = self.folder / f"{set_name}.{language}"
        return Sentences(Path(f"{base}.{IDS}"), Path(f"{base}.{ENDS}"))


def _mapped(path: Path) -> Any:
    try:
        # A plain array over the mapping: slicing np.memmap itself costs several times as much.
        return np.asarray(np.load(path, mmap_mode="r"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except ValueError as error:
        raise UserError(f"{path}: not a whole array: {error}") from None
