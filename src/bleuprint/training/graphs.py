"""CUDA graphs: the kernels of a batch's forward and backward pass, recorded once for each shape.

Launching the kernels of a small model one by one takes longer than computing them. A CUDA graph is
a recorded sequence of kernels, which is launched as a whole. A graph fits batches of one shape. It
always reads and writes the same memory, so each batch is first copied there.

`Graphs` is the class that the training uses.
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
    """The recorded forward and backward pass of a batch, with the memory that it reads and writes.

    Attributes:
        batch: The memory from which the kernels read a batch.
        tokens: The memory from which they read the number of target tokens by which the loss is
            divided, a scalar.
        loss: The memory to which they write the loss, a scalar.
        replay: A function that launches the kernels.
    """

    batch: PackedBatch
    tokens: Tensor
    loss: Tensor
    replay: Callable[[], None]


class Graphs:
    """Computes losses and gradients of batches by CUDA graphs, one for each shape of a batch.

    On CPUs nothing can be recorded. There the computation is called each time, after the same
    copies, so that tests on CPUs run this code as well.
    """

    def __init__(
        self, compute: Callable[[PackedBatch, Tensor | int], Tensor], gradient: Tensor
    ) -> None:
        """Start without CUDA graphs. They are recorded when batches of new shapes come.

        Args:
            compute: The function whose GPU kernels are recorded. It computes the loss of a batch,
                and adds its gradient, divided by a number of target tokens, to `gradient`.
            gradient: The gradient of all parameters, as one vector.
        """
        self._compute = compute
        self._gradient = gradient
        self._graphs: dict[tuple[int, ...], _Graph] = {}
        # The memory and the stream that all graphs share. The first recording creates them.
        self._memory_pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    def __call__(self, batch: PackedBatch, tokens: int) -> Tensor:
        """Run a batch forward and backward: add its gradient, and return its loss.

        The first batch of each shape is recorded.

        Args:
            batch: The batch, on the CPU.
            tokens: The number of target tokens by which the gradient is divided.

        Returns:
            The loss, summed over target tokens, a scalar. The next call may overwrite it.
        """
        graph = self._graphs.get(batch.shape)
        if graph is None:
            if len(self._graphs) == _MAX_GRAPHS:
                # More graphs would take too much memory, so this batch is computed without one.
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
        """Record the forward and backward pass of a batch as a CUDA graph.

        The memory that the graph reads and writes is allocated here. Recording leaves the gradient
        of the model as it was.

        Args:
            batch: A batch. The graph can compute all batches of the same shape.
        """
        device = self._gradient.device
        # A copy, because later batches are written to this memory.
        graph_batch = batch.map(lambda tensor: tensor.to(device, copy=True))
        tokens = torch.ones((), device=device)
        loss = torch.zeros((), device=device)

        def compute() -> None:
            """Run the batch in the graph's memory forward and backward, and store its loss."""
            loss.copy_(self._compute(graph_batch, tokens))

        # On CPUs `compute` itself is called.
        replay: Callable[[], None] = compute
        if device.type == "cuda":
            # `_record_cuda` calls `compute` some times, which adds to the gradient.
            gradient_before = self._gradient.clone()
            replay = self._record_cuda(compute).replay
            self._gradient.copy_(gradient_before)
        return _Graph(graph_batch, tokens, loss, replay)

    def _record_cuda(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Record the kernels that a function launches as a CUDA graph.

        The function is called a few times before the recording. In these calls, libraries allocate
        and compile what they need, which cannot be recorded.

        A stream is a queue of kernels. CUDA cannot record the default stream, so another stream is
        used. Before the calls it waits for the current stream, and afterwards the current stream
        waits for it.

        Args:
            compute: The function.
        """
        device = self._gradient.device
        current_stream = torch.cuda.current_stream(device)
        self._memory_pool = self._memory_pool or torch.cuda.graph_pool_handle()
        self._stream = self._stream or torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        # The random state is restored afterwards, so that dropout does not depend on recordings.
        with torch.random.fork_rng([device]):
            self._stream.wait_stream(current_stream)
            with torch.cuda.stream(self._stream):
                for _ in range(_WARM_UP_PASSES):
                    compute()
            current_stream.wait_stream(self._stream)
            try:
                return self._capture(compute)
            except RuntimeError as error:
                # If the function fails, for example for lack of memory, torch tries to end the
                # recording, and that fails as well. The first error, the context of the second one,
                # says what is wrong.
                raise error.__context__ or error from None
            finally:
                # After a failure, torch may leave the stream of the recording as the current one.
                torch.cuda.set_stream(current_stream)

    def _capture(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Call a function, and return the kernels that it launches as a CUDA graph."""
        graph = torch.cuda.CUDAGraph()
        # With "thread_local", other threads may allocate GPU memory during the recording. The
        # thread that reads batches ahead does.
        with torch.cuda.graph(
            graph,
            pool=self._memory_pool,
            stream=self._stream,
            capture_error_mode="thread_local",
        ):
            compute()
        return graph
