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
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.json_files import read_json_object
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
        """Create a segmentation, with caches of the tokens and ids of words.

        Args:
            language: The code of the language.
            vocabulary: Its tokens and their ids.
            codes: The merge operations of BPE; None if tokens are whole words.
        """
        self.language = language
        self.vocabulary = vocabulary
        self._bpe = codes
        # Words repeat, so their tokens and ids are kept.
        self._subwords = BoundedCache(self._split)
        self._ids = BoundedCache(self._word_ids)
        # For each token id: whether the word goes on after the token (Hal@@ before lo). A whole
        # word may also end in @@, if the text had already been segmented: then it does not go on.
        self._is_continued: list[bool] = []
        # For each token id: the characters of the token, without @@.
        self._token_texts: list[str] = []
        for token in vocabulary.tokens:
            self._is_continued.append(codes is not None and token.endswith(CONTINUED))
            self._token_texts.append(token.removesuffix(CONTINUED))
        self._is_word_end = ~np.array(self._is_continued)

    @classmethod
    def read(cls, folder: Path, language: str) -> "Segmentation":
        """Read how words of a language are split, from the folder that `learn_segmentation` wrote.

        segmentation.json in the folder names the kind of tokens: BPE, SentencePiece or whole words.

        Args:
            folder: The folder of the corpus's segmentation.
            language: The language of the words.
        """
        vocabulary = Vocabulary.read(folder / f"vocabulary.{language}")
        kind = read_segmentation_file(folder)["kind"]
        if kind == "sentencepiece":
            return PieceSegmentation(language, vocabulary, folder / f"{MODEL}.{language}")
        if kind == "words":
            return cls(language, vocabulary, codes=None)
        return cls(language, vocabulary, read_bpe(folder, language))

    def segment(self, words: Sequence[str]) -> list[str]:
        """Split words into tokens: "Hallo" into "Hal@@" and "lo"."""
        # The cache splits each different word only once. `map` and `chain` run in C, which matters
        # since every word of the text passes here.
        return list(chain.from_iterable(map(self._subwords.__getitem__, words)))

    def join(self, tokens: Iterable[str]) -> list[str]:
        """Join tokens to words: "Hal@@" and "lo" to "Hallo".

        The last word ends with the last token, even if it ends in @@.
        """
        return list(tokens) if self._bpe is None else bpe.join(tokens)

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.uint32]:
        """Return the token ids of lines, with EOS after each line.

        Args:
            lines: Lines of words separated by spaces.

        Returns:
            The ids of all lines in one array.
        """
        # For speed, there is no loop over lines. All lines become one list of words, in which the
        # mark _LINE_END counts as a word with the id EOS: `a b` and `c` become `a b _LINE_END c
        # _LINE_END` and an empty word, which has no ids. The mark behind the last line is there
        # because an empty line is appended before joining.
        lines_and_empty_line = chain(lines, [""])
        words = f" {_LINE_END} ".join(lines_and_empty_line).split(" ")
        # The cache returns the ids of a word as bytes.
        encoded = b"".join(map(self._ids.__getitem__, words))
        return np.frombuffer(encoded, np.uint32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of ids without PAD, BOS and EOS; UNK becomes "<unk>"."""
        return self.join(self.vocabulary.decode(ids))

    def ends_word(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return for each token whether it is the last token of its word.

        Args:
            ids: The token ids of one or more lines, each of which ends in EOS.
        """
        is_word_end: npt.NDArray[np.bool_] = self._is_word_end[ids]
        return is_word_end

    def resegment(self, ids: Sequence[int], dropout: float, random: Random) -> list[int]:
        """Split the words of a sentence again, into other subwords, with BPE-dropout.

        BPE-dropout skips merge operations at random, so that a model sees several ways to split a
        word in training. A word keeps its ids if the new ones would contain UNK, the token for
        unknown subwords; or if it contains UNK already, which does not tell its characters. Without
        BPE, all ids stay the same.

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
        word_ids: list[int] = []
        follows_unknown = False
        for token_id in ids:
            word_ids.append(token_id)
            if self._is_continued[token_id]:
                continue
            # The word is complete, or its last token is UNK. UNK has no mark @@, so the word may go
            # on after it: the tokens up to the next word end keep their ids, too.
            is_unknown = token_id == UNK
            if follows_unknown or is_unknown:
                new_ids += word_ids
            else:
                new_ids += self._resegment_word(self._bpe, word_ids, dropout, random)
            word_ids = []
            follows_unknown = is_unknown
        # If the sentence ends within a word (its last token has the mark @@), the word keeps its
        # ids. Otherwise `word_ids` is empty.
        return new_ids + word_ids

    def _resegment_word(
        self, codes: Bpe, word_ids: list[int], dropout: float, random: Random
    ) -> list[int]:
        """Split a word again with BPE-dropout, which skips merge operations at random.

        Args:
            codes: The merge operations.
            word_ids: The token ids of the word.
            dropout: The probability with which each possible merge is skipped.
            random: The generator to draw from.

        Returns:
            The ids of the new subwords. If one of these is not in the vocabulary, the old ids.
        """
        text = "".join([self._token_texts[token_id] for token_id in word_ids])
        subwords = codes.split(text, dropout, random)
        new_ids = self.vocabulary.encode(subwords)
        return word_ids if UNK in new_ids else new_ids

    def _split(self, word: str) -> list[str]:
        """Split a word into its tokens: subwords if there is BPE, otherwise the word itself.

        The empty word, which an empty line contains, has no tokens.
        """
        if not word:
            return []
        if self._bpe is None:
            return [word]
        return self._bpe.split(word)

    def _word_ids(self, word: str) -> bytes:
        """Return the token ids of a word as bytes, four for each id, which `encode` can join.

        The word may be the mark that `encode` puts at the end of a line; its id is EOS.
        """
        ids = [EOS] if word == _LINE_END else self.vocabulary.encode(self._split(word))
        return array("I", ids).tobytes()


class PieceSegmentation(Segmentation):
    """The segmentation of SentencePiece (Kudo and Richardson 2018), which splits whole lines.

    A vocabulary that was learned here has the ids of its SentencePiece model, which contains the
    special tokens. The vocabulary of a pretrained model may have other ids: one vocabulary for two
    SentencePiece models. Then a piece gets the id that the vocabulary gives to it.

    A piece at the start of a word begins with ▁ (U+2581), which represents the space before the
    word: `Hallo Welt` may become `▁Hal lo ▁Welt`. A ▁ in the text becomes a space. With byte
    fallback, pieces may be decoded to any characters, so all characters that are not printed
    separate words.
    """

    def __init__(self, language: str, vocabulary: Vocabulary, model: Path) -> None:
        """Read the SentencePiece model of a language, and note which of its pieces begin a word.

        Args:
            language: The code of the language.
            vocabulary: The pieces of the model and their ids.
            model: The file of the model.
        """
        super().__init__(language, vocabulary, codes=None)
        # Imported here, since an exported system without it does not need the package.
        from sentencepiece import SentencePieceProcessor

        self._model = SentencePieceProcessor(model_file=str(model))
        pieces_of_model = self._model.id_to_piece(list(range(len(self._model))))
        self._has_ids_of_model = pieces_of_model == vocabulary.tokens
        is_word_start = [token.startswith(_WORD_START) for token in vocabulary.tokens]
        # EOS counts as the start of a word, so that the piece before it counts as the end of one.
        is_word_start[EOS] = True
        self._is_word_start = np.array(is_word_start)

    def segment(self, words: Sequence[str]) -> list[str]:
        """Split words into pieces: "Hallo" into "▁Hal" and "lo"."""
        pieces: list[str] = self._model.encode(" ".join(words), out_type=str)
        return pieces

    def join(self, tokens: Iterable[str]) -> list[str]:
        """Join pieces to words: "▁Hal" and "lo" to "Hallo"."""
        text = self._model.decode(list(tokens))
        if not self._has_ids_of_model:
            # The SentencePiece model keeps the mark of pieces that only the other language's has.
            text = text.replace(_WORD_START, " ")
        return replace_white_space(text).split()

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.uint32]:
        """Return the ids of lines, with EOS after each line."""
        return np.fromiter(self._line_ids(lines), np.uint32)

    def _line_ids(self, lines: Iterable[str]) -> Iterator[int]:
        """Yield the ids of the pieces of lines, with EOS after each line."""
        for line in lines:
            if self._has_ids_of_model:
                yield from self._model.encode(line)
            else:
                yield from self.vocabulary.encode(self._model.encode(line, out_type=str))
            yield EOS

    def ends_word(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return for each piece whether it is the last piece of its word.

        A piece ends a word if the next piece begins one: for `▁Hal lo ▁Welt EOS`, the result is
        [False, True, True, True].

        Args:
            ids: The piece ids of one or more lines, each of which ends in EOS.
        """
        next_is_word_start = self._is_word_start[ids[1:]]
        # The last piece is EOS. No piece follows it, and it counts as the end of a word.
        return np.append(next_is_word_start, True)


def read_segmentation_file(folder: Path) -> dict[str, Any]:
    """Read segmentation.json, which describes the tokens of a corpus, and check its fields.

    It does not use the library pydantic for the checks, because exported systems contain this
    module and should run without that library.

    Returns:
        The field `kind`: bpe, words or sentencepiece; and the field `joint`: whether both languages
        share one vocabulary.

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
    """Read the merge operations of BPE for a language, and the subwords that it may use.

    The folder lists the allowed subwords only if the setting `threshold` excludes rare ones.

    Args:
        folder: The folder of the corpus's segmentation.
        language: The language of the words.
    """
    codes = folder / f"codes.{language}"
    allowed = folder / f"allowed.{language}"
    return Bpe(codes, allowed if allowed.exists() else None)
