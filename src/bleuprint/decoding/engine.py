"""The search engine, which translates many sentences."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.batch import Sentence, pad
from bleuprint.dataset.batching import Indices, batch_by_size
from bleuprint.dataset.binarized import Lengths, Sentences
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, UNK
from bleuprint.decoding.beam_search import (
    BATCH_TOKENS,
    Hypothesis,
    NBest,
    SpecialTokens,
    beam_search,
    max_output_lengths,
)
from bleuprint.decoding.ensemble import ModelOrEnsemble
from bleuprint.decoding.sampling import Sampler, sample
from bleuprint.runtime.progress import Progress

SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, unk=UNK)

Sources = Sequence[Sentence] | Sentences


class Engine:
    """Beam search with the settings `decode`, or sampling, in batches of sentences of like length.

    `max_source_length`: the maximum length of a source in tokens, EOS included.
    """

    def __init__(
        self, model: ModelOrEnsemble, decode: Decode, sampler: Sampler | None = None
    ) -> None:
        self.decode = decode
        self.max_source_length = model.settings.max_positions
        self._model = model
        self._sampler = sampler

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

    def _search(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        """Yield the outputs of the sentences `rows`, a batch at a time."""
        device, sampler = self._model.device, self._sampler
        randoms = sampler.randoms(len(lengths)) if sampler else []
        order = rows[np.argsort(-lengths[rows], kind="stable")]
        batches = batch_by_size(lengths, lengths, order, self._batch_tokens(lengths))

        @torch.inference_mode()
        def search(batch: Indices) -> NBest:
            ids = pad([sources[row] for row in batch.tolist()]).to(device)
            limits = max_output_lengths(lengths[batch], self.decode, self.max_source_length)
            step, state = self._model.step, self._model.init_cache(ids)
            most = torch.from_numpy(limits).to(device)
            # its cache is of its kind
            if sampler is None:
                return beam_search(step, state, most, SPECIAL_TOKENS, self.decode, best)  # type: ignore[arg-type]
            drawn = sampler.top_k, [randoms[row] for row in batch.tolist()]
            return sample(step, state, most, SPECIAL_TOKENS, self.decode, *drawn)  # type: ignore[arg-type]

        outputs = _map_in_threads(search, batches, device)
        for batch, batch_outputs in zip(batches, outputs, strict=True):
            yield batch.tolist(), batch_outputs

    def _batch_tokens(self, lengths: Lengths) -> int:
        """Return how many source positions a batch may have.

        So few that each thread gets as many batches as the others, all of about the same size.
        """
        longest = int(lengths.max(initial=1))
        total = int(lengths.sum())
        max_positions = max(BATCH_TOKENS // self.decode.beam, longest)
        threads = _threads(self._model.device)
        batches_per_thread = math.ceil(max(1, total) / (max_positions * threads))
        mean_positions = math.ceil(total / (batches_per_thread * threads))
        # A batch ends before the sentence that exceeds the limit; without room for one more, there
        # would be more batches than planned.
        return min(max_positions, mean_positions + longest)


def _threads(device: torch.device) -> int:
    """The number of batches searched at once; one on an accelerator."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def _map_in_threads(
    search: Callable[[Indices], NBest], batches: Sequence[Indices], device: torch.device
) -> Iterator[NBest]:
    """`search` of each batch; on CPUs in parallel, with one thread of torch for each batch.

    Matrix products of few rows gain little from a second thread; a second batch uses all of it.
    """
    threads = _threads(device)
    workers = min(threads, len(batches))
    if workers <= 1:
        yield from map(search, batches)
        return
    with ThreadPoolExecutor(
        workers, "search", torch.set_num_threads, (threads // workers,)
    ) as pool:
        try:
            yield from pool.map(search, batches)
        finally:
            pool.shutdown(cancel_futures=True)
            # the pool's setting applies to threads started later, too
            torch.set_num_threads(threads)
