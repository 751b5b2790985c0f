"""CUDA graphs: the kernels of a batch's passes, recorded once for each shape and launched together.

A small model's kernels take less time than launching them one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bleuprint.dataset.packed_batch import PackedBatch

# The most graphs, some MB each; batches of further shapes are computed without.
_MOST = 256
# Passes before a recording, in which libraries allocate and compile what they need.
_WARM_UP = 2


@dataclass(frozen=True)
class _Graph:
    """Where the recorded kernels read a batch and its divisor and write its loss."""

    batch: PackedBatch
    tokens: Tensor
    loss: Tensor
    replay: Callable[[], None]


class Graphs:
    """Calls `compute` (forward and backward, which adds to `gradient`) by recorded kernels.

    On CPUs, where there is nothing to record, it is called each time, with the same copies.
    """

    def __init__(
        self, compute: Callable[[PackedBatch, Tensor | int], Tensor], gradient: Tensor
    ) -> None:
        self._compute, self._gradient = compute, gradient
        self._graphs = dict[tuple[int, ...], _Graph]()
        # memory and a stream that all graphs share
        self._pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    def __call__(self, batch: PackedBatch, tokens: int) -> Tensor:
        """The loss of a batch, to be used before the next call."""
        if batch.shape not in self._graphs:
            if len(self._graphs) == _MOST:
                return self._compute(batch.to(self._gradient.device), tokens)
            self._graphs[batch.shape] = self._record(batch)
        graph = self._graphs[batch.shape]
        for place, tensor in zip(graph.batch.tensors, batch.tensors, strict=True):
            place.copy_(tensor, non_blocking=True)
        graph.tokens.fill_(tokens)
        graph.replay()
        return graph.loss

    def clear(self) -> None:
        """Give back the memory of all graphs."""
        self._graphs.clear()
        self._pool = None

    def _record(self, batch: PackedBatch) -> _Graph:
        device = self._gradient.device
        places = batch.map(lambda tensor: tensor.to(device, copy=True))
        tokens, loss = torch.ones((), device=device), torch.zeros((), device=device)

        def compute() -> None:
            loss.copy_(self._compute(places, tokens))

        if device.type != "cuda":
            return _Graph(places, tokens, loss, compute)
        before, current = self._gradient.clone(), torch.cuda.current_stream(device)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        self._stream = self._stream or torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.random.fork_rng([device]):
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                for _ in range(_WARM_UP):
                    compute()
            current.wait_stream(self._stream)
            try:
                graph = self._capture(compute)
            except RuntimeError as error:  # of the end of a recording, after the one within
                raise error.__context__ or error from None
            finally:
                torch.cuda.set_stream(current)
        self._gradient.copy_(before)
        return _Graph(places, tokens, loss, graph.replay)

    def _capture(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # other threads, such as the one that reads ahead, may allocate meanwhile
        with torch.cuda.graph(graph, self._pool, self._stream, "thread_local"):
            compute()
        return graph
