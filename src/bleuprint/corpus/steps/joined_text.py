"""A training text that consists of several texts, which a stage reads as if they were one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bleuprint.text.parallel import Block, Pair, TextFolder


@dataclass(frozen=True)
class JoinedText(TextFolder):
    """A folder whose training text is joined with the training texts of other folders.

    Validation and test sets are those of the folder itself. A subclass overrides
    `training_folders`. `with_path` returns an ordinary folder, whose training text is not joined.
    """

    @property
    def training_folders(self) -> list[Path]:
        """The folders of the training text, in the order in which they are read."""
        return [self.path]

    def texts(self, name: str) -> list[TextFolder]:
        """Return the texts that make up a data set, in the order in which they are read.

        Args:
            name: Data set, such as `train`.
        """
        folders = self.training_folders if name == "train" else [self.path]
        texts = []
        for folder in folders:
            texts.append(TextFolder(folder, self.source, self.target, indexes=self.indexes))
        return texts

    def count(self, name: str) -> int:
        """Return the number of sentence pairs in a data set, over all its texts.

        Args:
            name: Data set, such as `train`.
        """
        return sum(text.count(name) for text in self.texts(name))

    def pairs(self, name: str) -> Iterator[Pair]:
        """Yield the sentence pairs of a data set.

        Args:
            name: Data set, such as `train`.
        """
        for block in self.blocks(name):
            yield from block.pairs()

    def blocks(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the sentence pairs of a data set in blocks, as if all its texts were one text.

        The training set may consist of several texts. If they have 100 and 50 pairs, the pairs 90
        to 120 are 10 of the first and 20 of the second.

        Args:
            name: Data set, such as `train`.
            start: Index of the first pair to read, counted from 0 over all texts.
            stop: Index after the last pair to read; None reads to the end.
        """
        # The indices of this text's first pair, and of the pair after its last, over all texts.
        text_start = 0
        for text in self.texts(name):
            text_stop = text_start + text.count(name)
            # If the text ends before `start`, this is behind its end, and it yields nothing.
            start_in_text = max(0, start - text_start)
            # None reads this text to its end, and checks that its source and target end together.
            stop_in_text = None
            if stop is not None and stop < text_stop:
                stop_in_text = max(0, stop - text_start)
            for block in text.blocks(name, start_in_text, stop_in_text):
                # `first` numbers the pairs within this text; the caller wants it over all texts.
                yield replace(block, first=text_start + block.first)
            text_start = text_stop
