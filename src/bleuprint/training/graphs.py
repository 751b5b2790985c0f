"""CUDA graphs: the kernels of a batch's forward and backward pass, recorded once for each shape.

The kernels of a small model take less time than launching them one by one. A recorded graph is
launched as a whole. It always reads its batch from the same memory, so each batch is first copied
there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bleuprint.dataset.packed_batch import PackedBatch

# The largest number of graphs, which need some MB each. Batches of further shapes are computed
# without a graph.
_MAX_GRAPHS = 256
# The number of passes before a recording, in which libraries allocate and compile what they need.
_WARM_UP_PASSES = 2


@dataclass(frozen=True)
class _Graph:
    """A recorded pass, with the memory that it reads and writes.

    Attributes:
        batch: The batch that the kernels read.
        tokens: The number of target tokens that the loss is divided by, a scalar.
        loss: The loss that the kernels write, a scalar.
        replay: A function that launches the kernels.
    """

    batch: PackedBatch
    tokens: Tensor
    loss: Tensor
    replay: Callable[[], None]


class Graphs:
    """Computes losses and gradients of batches by recorded kernels.

    On CPUs, where kernels cannot be recorded, the computation is called each time, after the same
    copies: so tests on CPUs run this code as well.
    """

    def __init__(
        self, compute: Callable[[PackedBatch, Tensor | int], Tensor], gradient: Tensor
    ) -> None:
        """Create an empty collection of graphs.

        Args:
            compute: A function of a batch and the number of target tokens that the loss is divided
                by. It computes the loss, and adds the gradient to `gradient`.
            gradient: The flat gradient.
        """
        self._compute = compute
        self._gradient = gradient
        self._graphs: dict[tuple[int, ...], _Graph] = {}
        # The memory and the stream of all graphs, which exist from the first recording on.
        self._memory_pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    def __call__(self, batch: PackedBatch, tokens: int) -> Tensor:
        """Compute a batch: add its gradient, and return its loss.

        Args:
            batch: The batch, on the CPU.
            tokens: The number of target tokens that the loss is divided by for the gradient.

        Returns:
            The summed loss, a scalar. The next call may overwrite it.
        """
        graph = self._graphs.get(batch.shape)
        if graph is None:
            if len(self._graphs) == _MAX_GRAPHS:
                return self._compute(batch.to(self._gradient.device), tokens)
            graph = self._record(batch)
            self._graphs[batch.shape] = graph
        for graph_tensor, tensor in zip(graph.batch.tensors, batch.tensors, strict=True):
            graph_tensor.copy_(tensor, non_blocking=True)
        graph.tokens.fill_(tokens)
        graph.replay()
        return graph.loss

    def clear(self) -> None:
        """Free the memory of all graphs."""
        self._graphs.clear()
        self._memory_pool = None

    def _record(self, batch: PackedBatch) -> _Graph:
        """Record the passes of batches with the shape of `batch`; the gradient does not change."""
        device = self._gradient.device
        graph_batch = batch.map(lambda tensor: tensor.to(device, copy=True))
        tokens = torch.ones((), device=device)
        loss = torch.zeros((), device=device)

        def compute() -> None:
            """Compute the batch in the memory of the graph."""
            loss.copy_(self._compute(graph_batch, tokens))

        replay: Callable[[], None] = compute
        if device.type == "cuda":
            # The passes before a recording add to the gradient.
            gradient_before = self._gradient.clone()
            replay = self._record_cuda(compute).replay
            self._gradient.copy_(gradient_before)
        return _Graph(graph_batch, tokens, loss, replay)

    def _record_cuda(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Record a function's kernels, after some passes in which libraries prepare themselves.

        Kernels are recorded on a stream of their own, which first waits for the current stream.
        """
        device = self._gradient.device
        current_stream = torch.cuda.current_stream(device)
        self._memory_pool = self._memory_pool or torch.cuda.graph_pool_handle()
        self._stream = self._stream or torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        # The random state is restored, so that dropout does not depend on recordings.
        with torch.random.fork_rng([device]):
            self._stream.wait_stream(current_stream)
            with torch.cuda.stream(self._stream):
                for _ in range(_WARM_UP_PASSES):
                    compute()
            current_stream.wait_stream(self._stream)
            try:
                return self._capture(compute)
            except RuntimeError as error:
                # Ending a recording after an error raises another error. The first one, such as a
                # lack of memory, is its context.
                raise error.__context__ or error from None
            finally:
                torch.cuda.set_stream(current_stream)

    def _capture(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Return the graph of the kernels that a function launches."""
        graph = torch.cuda.CUDAGraph()
        # With "thread_local", other threads may allocate during the recording, such as the one that
        # reads batches ahead.
        with torch.cuda.graph(
            graph,
            pool=self._memory_pool,
            stream=self._stream,
            capture_error_mode="thread_local",
        ):
            compute()
        return graph
