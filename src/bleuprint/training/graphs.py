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
_MOST = 128
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
        self._pool: Any = None  # of memory, which all graphs share

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

    def _record(self, batch: PackedBatch) -> _Graph:
        device = self._gradient.device
        places = batch.map(lambda tensor: tensor.to(device, copy=True))
        tokens, loss = torch.ones((), device=device), torch.zeros((), device=device)

        def compute() -> None:
            loss.copy_(self._compute(places, tokens))

        if device.type != "cuda":
            return _Graph(places, tokens, loss, compute)
        before, graph = self._gradient.clone(), torch.cuda.CUDAGraph()
        with torch.random.fork_rng([device]):
            stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(stream):
                for _ in range(_WARM_UP):
                    compute()
            torch.cuda.current_stream(device).wait_stream(stream)
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            # other threads, such as the one that reads ahead, may allocate meanwhile
            with torch.cuda.graph(graph, self._pool, capture_error_mode="thread_local"):
                compute()
        self._gradient.copy_(before)
        return _Graph(places, tokens, loss, graph.replay)
