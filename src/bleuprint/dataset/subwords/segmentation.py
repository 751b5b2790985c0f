"""The segmentation of one language: words to token ids and back.

Tokens are subwords of BPE, pieces of SentencePiece, or whole words. "Words" are what the tokenizer
separated by spaces. Memory grows with the number of distinct words.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
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

# The file that describes a segmentation.
SEGMENTATION_FILE = "segmentation.json"
# The name of a SentencePiece model, before the language.
MODEL = "sentencepiece"
# Marks the end of a line among words; a line feed cannot occur in a word.
_LINE_END = "\n"
# The mark at the beginning of a word in the pieces of SentencePiece.
_WORD_START = "\u2581"


class Segmentation:
    """Maps the words of one language to token ids and back, by BPE or as whole words.

    Attributes:
        language: The language.
        vocabulary: Its tokens and their ids.
    """

    def __init__(self, language: str, vocabulary: Vocabulary, codes: Bpe | None) -> None:
        """Create a segmentation; `codes` is None if tokens are whole words."""
        self.language = language
        self.vocabulary = vocabulary
        self._bpe = codes
        # Words repeat, so their tokens and ids are kept.
        self._subwords = BoundedCache(self._split)
        self._ids = BoundedCache(self._word_ids)
        # Whether the word goes on after a token, by token id. A whole word may end in the mark of a
        # continued subword, if the text had already been segmented: it is a word nevertheless.
        self._is_continued: list[bool] = []
        # The characters of each token, by token id.
        self._texts: list[str] = []
        for token in vocabulary.tokens:
            self._is_continued.append(codes is not None and token.endswith(CONTINUED))
            self._texts.append(token.removesuffix(CONTINUED))
        self._is_word_end = ~np.array(self._is_continued)

    @classmethod
    def read(cls, folder: Path, language: str) -> "Segmentation":
        """Read the segmentation of a language from a folder that `learn_segmentation` wrote."""
        vocabulary = Vocabulary.read(folder / f"vocabulary.{language}")
        kind = read_segmentation_file(folder)["kind"]
        if kind == "sentencepiece":
            return PieceSegmentation(language, vocabulary, folder / f"{MODEL}.{language}")
        if kind == "words":
            return cls(language, vocabulary, None)
        return cls(language, vocabulary, read_bpe(folder, language))

    def segment(self, words: Sequence[str]) -> list[str]:
        """Split words into tokens."""
        # map and chain run in C: every word of the text passes here.
        return list(chain.from_iterable(map(self._subwords.__getitem__, words)))

    def join(self, tokens: Iterable[str]) -> list[str]:
        """Join tokens to words; the last word ends with the last token, whatever its mark."""
        return list(tokens) if self._bpe is None else bpe.join(tokens)

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.uint32]:
        """Return the ids of lines, with EOS after each line.

        Args:
            lines: Lines of words separated by spaces.

        Returns:
            The ids of all lines in one array.
        """
        # The lines are joined to one text in which _LINE_END is a word, whose id is EOS. An empty
        # line at the end puts a _LINE_END after the last line. Ids are joined as bytes: this takes
        # a fraction of the time of a loop over lines.
        words = f" {_LINE_END} ".join(chain(lines, [""])).split(" ")
        return np.frombuffer(b"".join(map(self._ids.__getitem__, words)), np.uint32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of ids without PAD, BOS and EOS; UNK becomes "<unk>"."""
        return self.join(self.vocabulary.decode(ids))

    def ends_word(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return for each token whether it is the last one of its word.

        Args:
            ids: The token ids of one or more lines, each of which ends in EOS.
        """
        is_word_end: npt.NDArray[np.bool_] = self._is_word_end[ids]
        return is_word_end

    def resegment(self, ids: Sequence[int], dropout: float, random: Random) -> list[int]:
        """Segment words again with BPE-dropout, which skips merges at random.

        No UNK is added: a word keeps its ids if a subword that is drawn for it is not in the
        vocabulary, or if UNK is or may be part of it. Without BPE, ids stay the same.

        Args:
            ids: The token ids of a sentence without EOS.
            dropout: The probability with which each possible merge is skipped.
            random: The generator to draw from.

        Returns:
            The new token ids, without EOS.
        """
        if self._bpe is None or not dropout:
            return list(ids)
        new_ids: list[int] = []
        word: list[int] = []
        keeps_ids = False
        for token_id in ids:
            word.append(token_id)
            if self._is_continued[token_id]:
                continue
            # An unknown subword looks like the end of a word, but the tokens after UNK may belong
            # to the same word: so the next word keeps its ids, too.
            is_unknown = token_id == UNK
            if keeps_ids or is_unknown:
                new_ids += word
            else:
                new_ids += self._draw_word(self._bpe, word, dropout, random)
            word = []
            keeps_ids = is_unknown
        # A last word whose last token is marked as continued keeps its ids.
        return new_ids + word

    def _draw_word(self, codes: Bpe, word: list[int], dropout: float, random: Random) -> list[int]:
        """Return the ids of a word's subwords with BPE-dropout; its old ids to avoid UNK."""
        text = "".join([self._texts[token_id] for token_id in word])
        subwords = codes.split(text, dropout, random)
        new_ids = self.vocabulary.encode(subwords)
        return word if UNK in new_ids else new_ids

    def _split(self, word: str) -> list[str]:
        """Return the tokens of a word; none for the empty word, which an empty line contains."""
        if not word:
            return []
        if self._bpe is None:
            return [word]
        return self._bpe.split(word)

    def _word_ids(self, word: str) -> bytes:
        """Return the token ids of a word as the bytes of 32-bit numbers; EOS for a line's end."""
        ids = [EOS] if word == _LINE_END else self.vocabulary.encode(self._split(word))
        return array("I", ids).tobytes()


class PieceSegmentation(Segmentation):
    """The segmentation of SentencePiece (Kudo and Richardson 2018), which splits whole lines.

    Ids are those of its model, which contains the special tokens. A piece that begins a word begins
    with ▁ (U+2581), which stands for the space before the word; a ▁ in the text becomes a space.
    With byte fallback, pieces may be decoded to any characters, so all characters that are not
    printed separate words.
    """

    def __init__(self, language: str, vocabulary: Vocabulary, model: Path) -> None:
        """Read the model of a language."""
        super().__init__(language, vocabulary, None)
        # Imported here, since an exported system without it does not need the package.
        from sentencepiece import SentencePieceProcessor

        self._pieces = SentencePieceProcessor(model_file=str(model))
        is_word_start = [token.startswith(_WORD_START) for token in vocabulary.tokens]
        # EOS is like a word of its own: the token before it ends a word.
        is_word_start[EOS] = True
        self._is_word_start = np.array(is_word_start)

    def segment(self, words: Sequence[str]) -> list[str]:
        """Split words into pieces."""
        pieces: list[str] = self._pieces.encode(" ".join(words), out_type=str)
        return pieces

    def join(self, tokens: Iterable[str]) -> list[str]:
        """Join pieces to words."""
        return replace_white_space(self._pieces.decode(list(tokens))).split()

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.uint32]:
        """Return the ids of lines, with EOS after each line."""
        return np.fromiter(self._line_ids(lines), np.uint32)

    def _line_ids(self, lines: Iterable[str]) -> Iterator[int]:
        """Yield the ids of the pieces of lines, with EOS after each line."""
        for line in lines:
            yield from self._pieces.encode(line)
            yield EOS

    def ends_word(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return for each piece whether it is the last one of its word.

        A piece ends a word if the next one begins a word; the last one of all is EOS.
        """
        next_is_word_start = self._is_word_start[ids[1:]]
        return np.append(next_is_word_start, True)


def read_segmentation_file(folder: Path) -> dict[str, Any]:
    """Read segmentation.json.

    It is checked by hand, since exported systems contain this module and need no pydantic.

    Returns:
        The `kind` of the tokens, and whether the vocabularies of both languages are `joint`.

    Raises:
        UserError: The file is missing or damaged.
    """
    path = folder / SEGMENTATION_FILE
    content = read_json_object(path, ("kind", "joint"))
    if content["kind"] not in ("bpe", "words", "sentencepiece"):
        raise DamagedFile(
            path, f"field kind: {content['kind']!r} is not bpe, words or sentencepiece"
        )
    if not isinstance(content["joint"], bool):
        raise DamagedFile(path, f"field joint: {content['joint']!r} is not true or false")
    return content


def read_bpe(folder: Path, language: str) -> Bpe:
    """Read the codes of a language, and the subwords that it may use if there is a threshold."""
    allowed = folder / f"allowed.{language}"
    return Bpe(folder / f"codes.{language}", allowed if allowed.exists() else None)
