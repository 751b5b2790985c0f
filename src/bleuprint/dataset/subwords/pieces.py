"""SentencePiece (Kudo and Richardson 2018): lines to pieces and ids, and pieces to lines.

A piece that begins a word begins with ▁ (U+2581), which stands for the space before it: a ▁ of the
text is a space, as to SentencePiece everywhere. Its ids are ours, special tokens among them.
"""

from collections.abc import Sequence
from pathlib import Path

# The name of a model's file, before the language.
MODEL = "sentencepiece"
WORD_START = "\u2581"


class Pieces:
    """A model that `learn_sentencepiece` wrote."""

    def __init__(self, path: Path) -> None:
        # imported here: an exported system without it does not need the package
        from sentencepiece import SentencePieceProcessor

        self._processor = SentencePieceProcessor(model_file=str(path))

    def pieces(self) -> list[str]:
        """All pieces, in the order of their ids."""
        return list(map(self._processor.id_to_piece, range(len(self._processor))))

    def split(self, line: str) -> list[str]:
        """The pieces of a line; an unknown one is the text that it stands for."""
        pieces: list[str] = self._processor.encode(line, out_type=str)
        return pieces

    def encode(self, line: str) -> list[int]:
        """The ids of a line, without EOS."""
        ids: list[int] = self._processor.encode(line)
        return ids

    def join(self, pieces: Sequence[str]) -> str:
        """The line of these pieces; UNK becomes "<unk>", bytes that are not UTF-8 U+FFFD."""
        line: str = self._processor.decode(list(pieces))
        return line
