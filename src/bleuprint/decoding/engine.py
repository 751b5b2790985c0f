"""Engines: what searches for the translations of many sentences, with torch or CTranslate2."""

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
from bleuprint.decoding.beam_search import Reorderable, Symbols, beam_search
from bleuprint.decoding.limits import BATCH_TOKENS, Found, empty_outputs, limits_of
from bleuprint.model.linear import pack_weights
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import Progress

State = TypeVar("State", bound=Reorderable)

SYMBOLS = Symbols(begin=BOS, end=EOS, unknown=UNK)


class Engine(Protocol):
    """Finds outputs as `Decode` asks; `longest`: the most units of a source, its end counted."""

    @property
    def longest(self) -> int: ...

    def search(
        self,
        sources: Sequence[Sentence] | Sentences,
        lengths: Lengths,
        best: int = 1,
        progress: str | None = None,
    ) -> Found:
        """The `best` outputs of each sentence (ids with EOS, of these lengths), in their order.

        Those of an empty one: one without words.
        """


class Decoder(Protocol[State]):
    """What can translate with torch: a model, or several as one."""

    settings: Model

    @property
    def device(self) -> torch.device: ...

    def init_cache(self, source: Tensor) -> State: ...

    def step(self, words: Tensor, state: State) -> tuple[Tensor, State]: ...


def engine_of(model: Transformer, corpus: BinaryCorpus, decode: Decode) -> Engine:
    """The engine that `decode` names, for a model trained on this corpus's units."""
    check_beam(decode, model)
    if decode.engine == "pytorch":
        pack_weights(model)
        return TorchEngine(model, decode)
    from bleuprint.decoding.ctranslate2_engine import CTranslate2Engine

    return CTranslate2Engine(model, corpus, decode)


def check_beam(decode: Decode, model: Transformer) -> None:
    """Raise UserError if the beam is wider than there are units to go on with."""
    if decode.beam > (units := model.projection.out_features):
        raise UserError(f"a beam of {decode.beam} is wider than the vocabulary of {units} units")


class TorchEngine:
    """Our search, over batches of sentences of like length."""

    def __init__(self, decoder: Decoder[State], decode: Decode) -> None:
        self._decoder, self._decode = decoder, decode
        self.longest = decoder.settings.max_positions

    def search(
        self,
        sources: Sequence[Sentence] | Sentences,
        lengths: Lengths,
        best: int = 1,
        progress: str | None = None,
    ) -> Found:
        """See `Engine`."""
        found = empty_outputs(len(lengths))
        bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 1]  # nothing but EOS translates to nothing
        bar.advance(len(lengths) - len(order))
        batches = batch_by_size(lengths, lengths, order, self._batch_tokens(lengths))

        def search(rows: Indices) -> Found:
            ids = pad([sources[row] for row in rows.tolist()]).to(self._decoder.device)
            return self._search(ids, lengths[rows], best)

        together = _side_by_side(search, batches, self._decoder.device)
        for rows, outputs in zip(batches, together, strict=True):
            for row, hypotheses in zip(rows.tolist(), outputs, strict=True):
                found[row] = hypotheses
            bar.advance(len(rows))
        return found

    def _batch_tokens(self, lengths: Lengths) -> int:
        """Source positions of a batch: so many that each thread gets as many batches, all alike."""
        longest, total = int(lengths.max(initial=1)), int(lengths.sum())
        most = max(BATCH_TOKENS // self._decode.beam, longest)
        threads = _threads(self._decoder.device)
        batches = -(-max(1, total) // (most * threads)) * threads
        return min(most, -(-total // batches) + longest)

    @torch.inference_mode()
    def _search(self, source: Tensor, lengths: Lengths, best: int) -> Found:
        limits = limits_of(lengths, self._decode, self.longest)
        return beam_search(
            self._decoder.step,
            self._decoder.init_cache(source),
            torch.from_numpy(limits).to(source.device),
            SYMBOLS,
            self._decode,
            best,
        )


def _threads(device: torch.device) -> int:
    """How many batches are searched at once: an accelerator takes one after the other."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def _side_by_side(
    search: Callable[[Indices], Found], batches: Sequence[Indices], device: torch.device
) -> Iterator[Found]:
    """What `search` finds for each batch; on a CPU as many at once as torch has threads.

    Products of so few rows gain little from a second thread; a second batch gains all of it.
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
            # what a thread sets is set for the threads to come, too
            torch.set_num_threads(threads)
