"""A binarised corpus counted: how long its sentences are, and how its words are made of units.

Words are counted as the model sees them: a word ends with a unit that is not continued, and an
unknown unit is one. Arrays are read a part at a time, so that memory does not grow with the corpus.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.dataset.binarized import BinaryCorpus, Sentences
from bleuprint.dataset.subwords.bpe import CONTINUED
from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.runtime.files import read_object, write_json

# Sentences counted one by one up to this length; the last number of `lengths` is of all beyond.
LONGEST = 200
# Words of one unit, two, three, and of more.
PIECES = 4
_SENTENCES = 1 << 16

_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """One side of a set; ends of sentences are not counted.

    `lengths[n]` sentences have n words (see LONGEST), `pieces[n]` words n + 1 units (see PIECES).
    `longest` is in units, as what a model must be able to take.
    """

    words: int
    units: int
    unknown: int
    longest: int
    lengths: list[int]
    pieces: list[int]

    @property
    def sentences(self) -> int:
        return sum(self.lengths)


@dataclass(frozen=True)
class Units:
    """A language's vocabulary: its size without special symbols, and how many of its units occur
    less than 10 and less than 100 times in the training text (of both languages, if shared).
    """

    size: int
    below_10: int
    below_100: int


@dataclass(frozen=True)
class Census:
    """A corpus: its sets by name and language, its vocabularies by language."""

    joint: bool
    sets: dict[str, dict[str, Side]]
    vocabularies: dict[str, Units]

    @classmethod
    def of(cls, corpus: BinaryCorpus) -> "Census":
        languages = corpus.source, corpus.target
        vocabularies = {}
        for language in languages:
            counts = corpus.segmentation(language).vocabulary.counts[len(SPECIALS) :]
            rare = (sum(count < bound for _, count in counts) for bound in (10, 100))
            vocabularies[language] = Units(len(counts), *rare)
        sets = {
            name: {language: _side(corpus, name, language) for language in languages}
            for name in corpus.sets
        }
        return cls(corpus.joint, sets, vocabularies)

    @classmethod
    def read(cls, path: Path) -> "Census":
        content = read_object(path, ("joint", "sets", "vocabularies"))
        return cls(
            content["joint"],
            {
                name: {language: Side(**side) for language, side in sides.items()}
                for name, sides in content["sets"].items()
            },
            {language: Units(**units) for language, units in content["vocabularies"].items()},
        )

    def write(self, path: Path) -> None:
        write_json(path, dataclasses.asdict(self))


def _side(corpus: BinaryCorpus, name: str, language: str) -> Side:
    sentences = corpus.side(name, language)
    texts = corpus.segmentation(language).vocabulary.units
    complete = np.array([not text.endswith(CONTINUED) for text in texts])
    lengths, pieces = np.zeros(LONGEST + 2, np.int64), np.zeros(PIECES, np.int64)
    unknown = 0
    for ids, stops in _parts(sentences):
        end = np.zeros(len(ids), bool)
        end[stops - 1] = True
        last = complete[ids] & ~end  # of a word
        bounds = np.flatnonzero(last | end)
        units = np.diff(bounds, prepend=-1)[last[bounds]]
        words = np.add.reduceat(last, np.concatenate(([0], stops[:-1])), dtype=np.int64)
        unknown += int((ids == UNK).sum())
        pieces += np.bincount(np.minimum(units, PIECES) - 1, minlength=PIECES)
        lengths += np.bincount(np.minimum(words, LONGEST + 1), minlength=LONGEST + 2)
    return Side(
        words=int(pieces.sum()),
        units=int(sentences.lengths.sum()) - len(sentences),
        unknown=unknown,
        longest=int(sentences.lengths.max(initial=1)) - 1,
        lengths=_trimmed(lengths),
        pieces=pieces.tolist(),
    )


def _parts(sentences: Sentences) -> Iterator[tuple[_Counts, _Counts]]:
    """The ids of some sentences, and where in them each one stops."""
    for start in range(0, len(sentences), _SENTENCES):
        some = [sentences[i] for i in range(start, min(start + _SENTENCES, len(sentences)))]
        yield np.concatenate(some).astype(np.int64), np.cumsum([len(one) for one in some])


def _trimmed(lengths: _Counts) -> list[int]:
    """Without the zeros behind the longest."""
    last = int(np.flatnonzero(lengths).max(initial=0))
    counts: list[int] = lengths[: last + 1].tolist()
    return counts
