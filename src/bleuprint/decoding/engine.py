"""The search engine, which translates many sentences in batches.

`Engine.search` sorts sentences by length and passes each batch to beam_search.py or sampling.py.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

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
    """Translates many sentences by beam search or sampling, in batches of similar length.

    Attributes:
        decode: The settings of the search.
        max_source_length: The maximum length of a source sentence in tokens, EOS included.
    """

    def __init__(
        self, model: ModelOrEnsemble, decode: Decode, sampler: Sampler | None = None
    ) -> None:
        """Create an engine for a model that is ready to translate.

        `create_engine` prepares a model first, such as for the precision in the settings.

        Args:
            model: The model that translates, or an ensemble.
            decode: The settings of the search.
            sampler: Gives random numbers to draw translations; None for beam search.
        """
        self.decode = decode
        self.max_source_length = model.settings.max_positions
        self._model = model
        self._sampler = sampler

    def search(
        self, sources: Sources, lengths: Lengths, best: int = 1, progress: str | None = None
    ) -> NBest:
        """Translate sentences, in batches of similar length.

        The model is not asked for sentences of length 1: these consist of EOS alone, and get one
        empty translation.

        Args:
            sources: The token ids of each source sentence, with EOS.
            lengths: The number of tokens of each source sentence, EOS included.
            best: How many translations to return for each sentence.
            progress: The title of a progress bar; None shows none.

        Returns:
            The best translations of each sentence, in the order of the sentences.
        """
        empty_output = Hypothesis(tokens=[], score=0.0, log_prob=0.0)
        outputs: NBest = [[empty_output] for _ in lengths]
        bar = Progress(progress or "", len(lengths), "sentences", is_silent=progress is None)
        nonempty_rows = np.flatnonzero(lengths > 1)
        bar.advance(len(lengths) - len(nonempty_rows))
        for batch, batch_outputs in self._search_batches(sources, lengths, nonempty_rows, best):
            for row, hypotheses in zip(batch, batch_outputs, strict=True):
                outputs[row] = hypotheses
            bar.advance(len(batch))
        return outputs

    def _search_batches(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        """Divide sentences into batches of similar length, and translate them, longest first.

        Args:
            sources: The token ids of all source sentences, with EOS.
            lengths: The number of tokens of all source sentences, EOS included.
            rows: The sentences to translate, as indices into `sources`.
            best: How many translations to return for each sentence.

        Yields:
            For each batch, its sentences, as indices into `sources`, and their translations.
        """
        # Each sentence of the text has its own random number generator, so that its translation
        # does not depend on the batch it is in. Beam search needs none.
        randoms = self._sampler.randoms(len(lengths)) if self._sampler else []
        longest_first = rows[np.argsort(-lengths[rows], kind="stable")]
        # Target lengths are not known yet, so the source lengths also take their place.
        batches = batch_by_size(lengths, lengths, longest_first, self._batch_tokens(lengths))
        search_batch = partial(
            self._search_batch,
            sources=sources,
            lengths=lengths,
            best=best,
            randoms=randoms,
        )
        batch_outputs = _map_in_threads(search_batch, batches, self._model.device)
        for batch, outputs in zip(batches, batch_outputs, strict=True):
            yield batch.tolist(), outputs

    @torch.inference_mode()
    def _search_batch(
        self,
        batch: Indices,
        sources: Sources,
        lengths: Lengths,
        best: int,
        randoms: Sequence[Random],
    ) -> NBest:
        """Translate the sentences in one batch, by beam search or by sampling.

        Args:
            batch: The sentences of the batch, as indices into `sources`.
            sources: The token ids of all source sentences, with EOS.
            lengths: The number of tokens of all source sentences, EOS included.
            best: How many translations beam search returns for each sentence.
            randoms: For sampling, the random number generators of all sentences.
        """
        batch_rows = batch.tolist()
        ids = pad([sources[row] for row in batch_rows]).to(self._model.device)
        limits = max_output_lengths(lengths[batch], self.decode, self.max_source_length)
        max_lengths = torch.from_numpy(limits).to(self._model.device)
        step = self._model.step
        state = self._model.init_cache(ids)
        # mypy cannot know that `state` has the type that `step` takes.
        if self._sampler is None:
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
            self._sampler.top_k,
            [randoms[row] for row in batch_rows],
        )

    def _batch_tokens(self, lengths: Lengths) -> int:
        """Return how many source positions a batch may have.

        The largest batches that fit into memory may leave threads without work: with 5 batches, one
        of 4 threads translates two. So all threads get equally many batches, which are smaller.

        Args:
            lengths: The number of tokens of all source sentences.
        """
        longest = int(lengths.max(initial=1))
        total = int(lengths.sum())
        # The largest batch that fits into memory; it must hold the longest sentence in any case.
        max_positions = max(BATCH_TOKENS // self.decode.beam, longest)
        threads = _batches_at_once(self._model.device)
        batches_per_thread = math.ceil(max(1, total) / (max_positions * threads))
        mean_positions = math.ceil(total / (batches_per_thread * threads))
        # A batch ends before the sentence that would exceed its limit, so it may lack almost one
        # sentence. Without this extra room, there could be more batches than planned.
        return min(max_positions, mean_positions + longest)


def _batches_at_once(device: torch.device) -> int:
    """Return how many batches are translated at once: on CPUs, one for each thread; on a GPU, 1."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def _map_in_threads(
    search_batch: Callable[[Indices], NBest], batches: Sequence[Indices], device: torch.device
) -> Iterator[NBest]:
    """Translate batches; on a CPU, several at the same time, each in its own thread.

    Two threads that translate a batch each are faster than two threads that share one batch, whose
    matrix products are too small to keep both busy. Only if there are fewer batches than threads,
    several threads share a batch.

    Args:
        search_batch: Translates the sentences in one batch.
        batches: The batches.
        device: The device that computes.

    Yields:
        The translations of each batch, in the order of the batches.
    """
    threads = _batches_at_once(device)
    workers = min(threads, len(batches))  # Each translates one batch at a time.
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
            # If the caller stops early, the remaining batches are not translated.
            pool.shutdown(cancel_futures=True)
            # The workers' number of torch threads would also apply to threads that start later.
            torch.set_num_threads(threads)
