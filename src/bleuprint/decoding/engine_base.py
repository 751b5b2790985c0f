"""The interface of search engines, which translate many sentences."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from bleuprint.config.system import Decode
from bleuprint.dataset.batch import Sentence
from bleuprint.dataset.batching import Indices
from bleuprint.dataset.binarized import Lengths, Sentences
from bleuprint.decoding.beam_search import Hypothesis, NBest
from bleuprint.runtime.progress import Progress

Sources = Sequence[Sentence] | Sentences


class Engine(ABC):
    """Searches with the settings `decode`.

    `max_source_length`: the maximum length of a source in tokens, EOS included.
    """

    def __init__(self, decode: Decode, max_source_length: int) -> None:
        self.decode, self.max_source_length = decode, max_source_length

    def search(
        self, sources: Sources, lengths: Lengths, best: int = 1, progress: str | None = None
    ) -> NBest:
        """The `best` outputs of each sentence (ids with EOS, of these lengths), in their order.

        An empty sentence has one output, which is empty. `progress`: the title of a progress bar.
        """
        outputs: NBest = [[Hypothesis([], 0.0, 0.0)] for _ in lengths]
        bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
        rows = np.flatnonzero(lengths > 1)  # others have only EOS
        bar.advance(len(lengths) - len(rows))
        for batch, batch_outputs in self._search(sources, lengths, rows, best):
            for row, hypotheses in zip(batch, batch_outputs, strict=True):
                outputs[row] = hypotheses
            bar.advance(len(batch))
        return outputs

    @abstractmethod
    def _search(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        """The outputs of the sentences `rows`, some rows at a time."""
