"""The search engine that `decode` names, and the one of this project."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from bleuprint.config.system import Decode, Model
from bleuprint.dataset.batch import pad
from bleuprint.dataset.batching import Indices, batch_by_size
from bleuprint.dataset.binarized import BinaryCorpus, Lengths
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, UNK
from bleuprint.decoding.beam_search import (
    BATCH_TOKENS,
    NBest,
    Reorderable,
    SpecialTokens,
    beam_search,
    max_output_lengths,
)
from bleuprint.decoding.ctranslate2_engine import CTranslate2Engine
from bleuprint.decoding.engine_base import Engine, Sources
from bleuprint.model.linear import pack_weights
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError

State = TypeVar("State", bound=Reorderable)

SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, unk=UNK)


class Decoder(Protocol[State]):
    """A model or an ensemble that `TorchEngine` can decode with."""

    settings: Model

    @property
    def device(self) -> torch.device: ...

    def init_cache(self, source: Tensor) -> State: ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]: ...


def create_engine(model: Transformer, corpus: BinaryCorpus, decode: Decode) -> Engine:
    """The engine that `decode` names, for a model trained on the vocabularies of `corpus`."""
    check_beam(decode, model)
    if decode.engine == "pytorch":
        pack_weights(model)
        return TorchEngine(model, decode)
    return CTranslate2Engine(model, corpus, decode)


def check_beam(decode: Decode, model: Transformer) -> None:
    """Raise UserError if the beam is wider than the vocabulary."""
    if decode.beam > (size := model.projection.out_features):
        raise UserError(f"a beam of {decode.beam} is wider than the vocabulary of {size} tokens")


class TorchEngine(Engine):
    """Beam search with torch, in batches of sentences of similar length."""

    def __init__(self, decoder: Decoder[State], decode: Decode) -> None:
        super().__init__(decode, decoder.settings.max_positions)
        self._decoder = decoder

    def _search(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        order = rows[np.argsort(-lengths[rows], kind="stable")]
        batches = batch_by_size(lengths, lengths, order, self._batch_tokens(lengths))

        def search(batch: Indices) -> NBest:
            ids = pad([sources[row] for row in batch.tolist()]).to(self._decoder.device)
            return self._search_batch(ids, lengths[batch], best)

        outputs = _map_in_threads(search, batches, self._decoder.device)
        for batch, batch_outputs in zip(batches, outputs, strict=True):
            yield batch.tolist(), batch_outputs

    def _batch_tokens(self, lengths: Lengths) -> int:
        """Source positions of a batch: chosen so that threads get equally many equal batches."""
        longest, total = int(lengths.max(initial=1)), int(lengths.sum())
        most = max(BATCH_TOKENS // self.decode.beam, longest)
        threads = _threads(self._decoder.device)
        batches = -(-max(1, total) // (most * threads)) * threads
        return min(most, -(-total // batches) + longest)

    @torch.inference_mode()
    def _search_batch(self, source: Tensor, lengths: Lengths, best: int) -> NBest:
        limits = max_output_lengths(lengths, self.decode, self.max_source_length)
        return beam_search(
            self._decoder.step,
            self._decoder.init_cache(source),
            torch.from_numpy(limits).to(source.device),
            SPECIAL_TOKENS,
            self.decode,
            best,
        )


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
