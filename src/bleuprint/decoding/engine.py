"""Search engines: translate many sentences with torch or CTranslate2."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from bleuprint.config.system import Decode, Model
from bleuprint.dataset.batch import Sentence, pad
from bleuprint.dataset.batching import Indices, batch_by_size
from bleuprint.dataset.binarized import BinaryCorpus, Lengths, Sentences
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, UNK
from bleuprint.decoding.beam_search import (
    BATCH_TOKENS,
    NBest,
    Reorderable,
    SpecialTokens,
    beam_search,
    empty_translations,
    max_output_lengths,
)
from bleuprint.model.linear import pack_weights
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import Progress

State = TypeVar("State", bound=Reorderable)

SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, unk=UNK)


class Engine(Protocol):
    """Searches with the settings `Decode`.

    `max_source_length`: the maximum length of a source in tokens, EOS included.
    """

    @property
    def max_source_length(self) -> int: ...

    def search(
        self,
        sources: Sequence[Sentence] | Sentences,
        lengths: Lengths,
        best: int = 1,
        progress: str | None = None,
    ) -> NBest:
        """The `best` outputs of each sentence (ids with EOS, of these lengths), in their order.

        An empty sentence has one output, which is empty. `progress`: the title of a progress bar.
        """


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
    from bleuprint.decoding.ctranslate2_engine import CTranslate2Engine

    return CTranslate2Engine(model, corpus, decode)


def check_beam(decode: Decode, model: Transformer) -> None:
    """Raise UserError if the beam is wider than the vocabulary."""
    if decode.beam > (size := model.projection.out_features):
        raise UserError(f"a beam of {decode.beam} is wider than the vocabulary of {size} tokens")


class TorchEngine:
    """Beam search with torch, in batches of sentences of similar length."""

    def __init__(self, decoder: Decoder[State], decode: Decode) -> None:
        self._decoder, self._decode = decoder, decode
        self.max_source_length = decoder.settings.max_positions

    def search(
        self,
        sources: Sequence[Sentence] | Sentences,
        lengths: Lengths,
        best: int = 1,
        progress: str | None = None,
    ) -> NBest:
        """See `Engine`."""
        outputs = empty_translations(len(lengths))
        bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 1]  # others have only EOS
        bar.advance(len(lengths) - len(order))
        batches = batch_by_size(lengths, lengths, order, self._batch_tokens(lengths))

        def search(rows: Indices) -> NBest:
            ids = pad([sources[row] for row in rows.tolist()]).to(self._decoder.device)
            return self._search(ids, lengths[rows], best)

        found = _map_in_threads(search, batches, self._decoder.device)
        for rows, batch_outputs in zip(batches, found, strict=True):
            for row, hypotheses in zip(rows.tolist(), batch_outputs, strict=True):
                outputs[row] = hypotheses
            bar.advance(len(rows))
        return outputs

    def _batch_tokens(self, lengths: Lengths) -> int:
        """Source positions of a batch: chosen so that threads get equally many equal batches."""
        longest, total = int(lengths.max(initial=1)), int(lengths.sum())
        most = max(BATCH_TOKENS // self._decode.beam, longest)
        threads = _threads(self._decoder.device)
        batches = -(-max(1, total) // (most * threads)) * threads
        return min(most, -(-total // batches) + longest)

    @torch.inference_mode()
    def _search(self, source: Tensor, lengths: Lengths, best: int) -> NBest:
        limits = max_output_lengths(lengths, self._decode, self.max_source_length)
        return beam_search(
            self._decoder.step,
            self._decoder.init_cache(source),
            torch.from_numpy(limits).to(source.device),
            SPECIAL_TOKENS,
            self._decode,
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
