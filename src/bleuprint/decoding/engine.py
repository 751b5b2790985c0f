"""The search engine, which translates many sentences in batches."""

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

# The token ids of sentences, EOS included.
Sources = Sequence[Sentence] | Sentences


class Engine:
    """Beam search, or sampling, in batches of sentences of similar length.

    Attributes:
        decode: The settings of the search.
        max_source_length: The maximum length of a source in tokens, EOS included.
    """

    def __init__(
        self, model: ModelOrEnsemble, decode: Decode, sampler: Sampler | None = None
    ) -> None:
        """Create an engine; `create_engine` prepares the model first.

        Args:
            model: The model that translates.
            decode: The settings of the search.
            sampler: Draws outputs, instead of beam search.
        """
        self.decode = decode
        self.max_source_length = model.settings.max_positions
        self._model = model
        self._sampler = sampler

    def search(
        self, sources: Sources, lengths: Lengths, best: int = 1, progress: str | None = None
    ) -> NBest:
        """Translate sentences.

        Args:
            sources: The token ids of each sentence, with EOS. A sentence without other tokens has
                one output, which is empty.
            lengths: Their lengths, EOS included.
            best: How many outputs to return for each sentence.
            progress: The title of a progress bar; None shows none.

        Returns:
            The best outputs of each sentence, in the order of the sentences.
        """
        empty_output = Hypothesis(tokens=[], score=0.0, log_prob=0.0)
        outputs: NBest = [[empty_output] for _ in lengths]
        bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
        rows = np.flatnonzero(lengths > 1)  # The others have only EOS.
        bar.advance(len(lengths) - len(rows))
        for batch, batch_outputs in self._search_batches(sources, lengths, rows, best):
            for row, hypotheses in zip(batch, batch_outputs, strict=True):
                outputs[row] = hypotheses
            bar.advance(len(batch))
        return outputs

    def _search_batches(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        """Yield the rows and the outputs of each batch of the sentences `rows`, longest first."""
        device = self._model.device
        sampler = self._sampler
        # For all sentences of the text, so that a sentence's numbers do not depend on batches.
        randoms = sampler.randoms(len(lengths)) if sampler else []
        longest_first = rows[np.argsort(-lengths[rows], kind="stable")]
        batches = batch_by_size(lengths, lengths, longest_first, self._batch_tokens(lengths))

        @torch.inference_mode()
        def search_batch(batch: Indices) -> NBest:
            """Return the outputs of the sentences in one batch."""
            batch_rows = batch.tolist()
            ids = pad([sources[row] for row in batch_rows]).to(device)
            limits = max_output_lengths(lengths[batch], self.decode, self.max_source_length)
            max_lengths = torch.from_numpy(limits).to(device)
            step = self._model.step
            state = self._model.init_cache(ids)
            # mypy cannot know that the state is of the kind that the step takes.
            if sampler is None:
                return beam_search(
                    step,  # type: ignore[arg-type]
                    state,
                    max_lengths,
                    SPECIAL_TOKENS,
                    self.decode,
                    best,
                )
            return sample(
                step,  # type: ignore[arg-type]
                state,
                max_lengths,
                SPECIAL_TOKENS,
                self.decode,
                sampler.top_k,
                [randoms[row] for row in batch_rows],
            )

        batch_outputs = _map_in_threads(search_batch, batches, device)
        for batch, outputs in zip(batches, batch_outputs, strict=True):
            yield batch.tolist(), outputs

    def _batch_tokens(self, lengths: Lengths) -> int:
        """Return how many source positions a batch may have.

        So few that each thread gets as many batches as the others, all of about the same size.
        """
        longest = int(lengths.max(initial=1))
        total = int(lengths.sum())
        max_positions = max(BATCH_TOKENS // self.decode.beam, longest)
        threads = _batches_at_once(self._model.device)
        batches_per_thread = math.ceil(max(1, total) / (max_positions * threads))
        mean_positions = math.ceil(total / (batches_per_thread * threads))
        # A batch ends before the sentence that exceeds the limit; without room for one more, there
        # would be more batches than planned.
        return min(max_positions, mean_positions + longest)


def _batches_at_once(device: torch.device) -> int:
    """Return how many batches are searched at once: one for each thread; one on a GPU."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def _map_in_threads(
    search_batch: Callable[[Indices], NBest], batches: Sequence[Indices], device: torch.device
) -> Iterator[NBest]:
    """Yield the outputs of each batch, in order; on CPUs, batches are searched in parallel.

    Matrix products of few rows gain little from a second thread; a second batch uses all of it. So
    each batch has one thread of torch, or more where there are fewer batches than threads.
    """
    threads = _batches_at_once(device)
    workers = min(threads, len(batches))
    if workers <= 1:
        for batch in batches:
            yield search_batch(batch)
        return
    pool = ThreadPoolExecutor(
        max_workers=workers,
        thread_name_prefix="search",
        initializer=torch.set_num_threads,
        initargs=(threads // workers,),
    )
    with pool:
        try:
            yield from pool.map(search_batch, batches)
        finally:
            pool.shutdown(cancel_futures=True)
            # The pool's setting applies to threads started later, too.
            torch.set_num_threads(threads)
