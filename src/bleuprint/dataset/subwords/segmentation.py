"""The way of one language from tokens to ids and back: in units of BPE, or in whole words.

Memory grows with the number of different words.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

from bleuprint.dataset.subwords import bpe
from bleuprint.dataset.subwords.bpe import CONTINUED, Bpe
from bleuprint.dataset.subwords.vocabulary import EOS, UNK, Vocabulary
from bleuprint.runtime.files import read_json
from bleuprint.runtime.memoize import Remembered

ABOUT = "segmentation.json"
# No token holds it.
_LINE_END = "\n"


class Segmentation:
    """How one language is segmented and numbered, as `learn_segmentation` found."""

    def __init__(self, language: str, vocabulary: Vocabulary, codes: Bpe | None) -> None:
        """`codes`: None where words are the units."""
        self.language, self.vocabulary = language, vocabulary
        self._bpe = codes
        self._units = Remembered(self._split)
        self._ids = Remembered(self._ids_of)
        self._continued = [unit.endswith(CONTINUED) for unit in vocabulary.units]
        self._texts = [unit.removesuffix(CONTINUED) for unit in vocabulary.units]

    @classmethod
    def read(cls, folder: Path, language: str) -> "Segmentation":
        """Read what belongs to `language`; raises UserError at a file that is not sound."""
        vocabulary = Vocabulary.read(folder / f"vocabulary.{language}")
        in_words = read_json(folder / ABOUT)["kind"] == "words"
        return cls(language, vocabulary, None if in_words else read_bpe(folder, language))

    def segment(self, tokens: Sequence[str]) -> list[str]:
        """The units of these tokens."""
        return list(chain.from_iterable(map(self._units.__getitem__, tokens)))

    def join(self, units: Iterable[str]) -> list[str]:
        """The tokens that these units make; the last one ends wherever the units do."""
        return list(units) if self._bpe is None else bpe.join(units)

    def encode(self, lines: Iterable[str]) -> Iterator[int]:
        """The ids of lines of tokens between spaces, EOS after each; UNK for units not known."""
        words = f" {_LINE_END} ".join(chain(lines, [""])).split(" ")
        return chain.from_iterable(map(self._ids.__getitem__, words))

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of `ids` without padding, BOS and EOS; UNK reads "<unk>"."""
        return self.join(self.vocabulary.decode(ids))

    def resegment(self, ids: Sequence[int], dropout: float, random: Random) -> list[int]:
        """The ids (without EOS) of the same tokens, segmented anew with BPE-dropout.

        Each merge is left out with probability `dropout` each time it could be made. No UNK comes
        of it: a word stays as it is if a unit drawn for it is not in the vocabulary, or if UNK
        is, or may be, a part of it. Whole words stay as they are.
        """
        if self._bpe is None or not dropout:
            return list(ids)
        found: list[int] = []
        word: list[int] = []
        keep = False
        for i in ids:
            word.append(i)
            if self._continued[i]:
                continue
            # What follows UNK may be the rest of one word with it.
            keep_next = i == UNK
            keep |= keep_next
            found += word if keep else self._drawn(self._bpe, word, dropout, random)
            word, keep = [], keep_next
        return found + word

    def _drawn(self, codes: Bpe, word: list[int], dropout: float, random: Random) -> list[int]:
        text = "".join([self._texts[i] for i in word])
        drawn = self.vocabulary.encode(codes.split_at_random(text, dropout, random))
        return word if UNK in drawn else drawn

    def _split(self, word: str) -> list[str]:
        """The units of a word; none of an empty one, which a line without tokens holds."""
        if self._bpe is None or not word:
            return [word] if word else []
        return self._bpe.split(word)

    def _ids_of(self, word: str) -> tuple[int, ...]:
        if word == _LINE_END:
            return (EOS,)
        return tuple(self.vocabulary.encode(self._split(word)))


def read_bpe(folder: Path, language: str) -> Bpe:
    allowed = folder / f"allowed.{language}"
    return Bpe(folder / f"codes.{language}", allowed if allowed.exists() else None)
