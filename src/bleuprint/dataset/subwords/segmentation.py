"""Segmentation of one language: words to token ids and back, by BPE, SentencePiece, or whole words.

"Words" are what the tokenizer separated. Memory grows with the number of distinct words.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bleuprint.dataset.subwords import bpe
from bleuprint.dataset.subwords.bpe import CONTINUED, Bpe
from bleuprint.dataset.subwords.vocabulary import EOS, UNK, Vocabulary
from bleuprint.runtime.files import DamagedFile, read_json_object
from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.unicode import replace_white_space

ABOUT = "segmentation.json"
# The name of a model of SentencePiece, before the language.
MODEL = "sentencepiece"
# Cannot occur in a word.
_LINE_END = "\n"


class Segmentation:
    """The BPE codes and the vocabulary of one language, as written by `learn_segmentation`."""

    def __init__(self, language: str, vocabulary: Vocabulary, codes: Bpe | None) -> None:
        """`codes`: None if tokens are whole words."""
        self.language, self.vocabulary = language, vocabulary
        self._bpe = codes
        self._subwords = BoundedCache(self._split)
        self._ids = BoundedCache(self._ids_of)
        # a whole word may end like a part of one, in text that was segmented before
        self._continued = [codes is not None and t.endswith(CONTINUED) for t in vocabulary.tokens]
        self._ends_word = ~np.array(self._continued)
        self._texts = [token.removesuffix(CONTINUED) for token in vocabulary.tokens]

    @classmethod
    def read(cls, folder: Path, language: str) -> "Segmentation":
        """Read the files of `language`."""
        vocabulary = Vocabulary.read(folder / f"vocabulary.{language}")
        match read_about(folder)["kind"]:
            case "sentencepiece":
                return PieceSegmentation(language, vocabulary, folder / f"{MODEL}.{language}")
            case "words":
                return cls(language, vocabulary, None)
        return cls(language, vocabulary, read_bpe(folder, language))

    def segment(self, words: Sequence[str]) -> list[str]:
        """Split words into tokens."""
        return list(chain.from_iterable(map(self._subwords.__getitem__, words)))

    def join(self, tokens: Iterable[str]) -> list[str]:
        """Join tokens to words; the last word ends with the last token, whatever its mark."""
        return list(tokens) if self._bpe is None else bpe.join(tokens)

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.uint32]:
        """The ids of lines of words separated by spaces, with EOS after each line."""
        words = f" {_LINE_END} ".join(chain(lines, [""])).split(" ")
        return np.frombuffer(b"".join(map(self._ids.__getitem__, words)), np.uint32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words of `ids` without PAD, BOS and EOS; UNK becomes "<unk>"."""
        return self.join(self.vocabulary.decode(ids))

    def ends_word(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Whether each token is the last of its word, of lines of ids that each end in EOS."""
        ends: npt.NDArray[np.bool_] = self._ends_word[ids]
        return ends

    def resegment(self, ids: Sequence[int], dropout: float, random: Random) -> list[int]:
        """Segment the words of `ids` again with BPE-dropout; returns ids without EOS.

        Each possible merge is skipped with probability `dropout`. Adds no UNK: a word keeps its
        ids if a subword drawn for it is not in the vocabulary, or if UNK is or may be part of it.
        Without BPE, ids stay the same.
        """
        if self._bpe is None or not dropout:
            return list(ids)
        result: list[int] = []
        word: list[int] = []
        keep = False
        for i in ids:
            word.append(i)
            if self._continued[i]:
                continue
            # the tokens after UNK may belong to the same word
            keep_next = i == UNK
            keep |= keep_next
            result += word if keep else self._draw(self._bpe, word, dropout, random)
            word, keep = [], keep_next
        return result + word

    def _draw(self, codes: Bpe, word: list[int], dropout: float, random: Random) -> list[int]:
        text = "".join([self._texts[i] for i in word])
        drawn = self.vocabulary.encode(codes.split(text, dropout, random))
        return word if UNK in drawn else drawn

    def _split(self, word: str) -> list[str]:
        """The tokens of a word; none for the empty word, which an empty line contains."""
        if self._bpe is None or not word:
            return [word] if word else []
        return self._bpe.split(word)

    def _ids_of(self, word: str) -> bytes:
        ids = [EOS] if word == _LINE_END else self.vocabulary.encode(self._split(word))
        return array("I", ids).tobytes()


class PieceSegmentation(Segmentation):
    """The segmentation of SentencePiece (Kudo and Richardson 2018), which splits a line as a whole.

    Ids are those of its model, special tokens among them. A piece that begins a word begins with ▁
    (U+2581), which stands for the space before it: a ▁ of the text is a space. With a model of
    bytes a line may be decoded to any characters: words are separated by all that do not print.
    """

    def __init__(self, language: str, vocabulary: Vocabulary, model: Path) -> None:
        super().__init__(language, vocabulary, None)
        # imported here: an exported system without it does not need the package
        from sentencepiece import SentencePieceProcessor

        self._pieces = SentencePieceProcessor(model_file=str(model))
        starts = [token.startswith("\u2581") for token in vocabulary.tokens]
        starts[EOS] = True
        self._starts_word = np.array(starts)

    def segment(self, words: Sequence[str]) -> list[str]:
        pieces: list[str] = self._pieces.encode(" ".join(words), out_type=str)
        return pieces

    def join(self, tokens: Iterable[str]) -> list[str]:
        return replace_white_space(self._pieces.decode(list(tokens))).split()

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.uint32]:
        ids = chain.from_iterable([*self._pieces.encode(line), EOS] for line in lines)
        return np.fromiter(ids, np.uint32)

    def ends_word(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        return np.append(self._starts_word[ids[1:]], True)


def read_about(folder: Path) -> dict[str, Any]:
    """Read segmentation.json: `kind` of the tokens, and whether both languages are `joint`.

    By hand, since exported systems contain this module and need no pydantic. Raises UserError.
    """
    path = folder / ABOUT
    about = read_json_object(path, ("kind", "joint"))
    if about["kind"] not in ("bpe", "words", "sentencepiece"):
        raise DamagedFile(path, f"field kind: {about['kind']!r} is not bpe, words or sentencepiece")
    if not isinstance(about["joint"], bool):
        raise DamagedFile(path, f"field joint: {about['joint']!r} is not true or false")
    return about


def read_bpe(folder: Path, language: str) -> Bpe:
    allowed = folder / f"allowed.{language}"
    return Bpe(folder / f"codes.{language}", allowed if allowed.exists() else None)
