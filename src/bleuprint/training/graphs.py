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

    A CUDA graph is a recorded sequence of kernels, which is launched at once: a small model's
    kernels take less time than launching them one by one. A graph always reads and writes the same
    memory, so each batch is first copied to where its graph reads it.

    On CPUs nothing can be recorded. There the computation is called each time, after the same
    copies, so that tests on CPUs run this code as well.
    """

    def __init__(
        self, compute: Callable[[PackedBatch, Tensor | int], Tensor], gradient: Tensor
    ) -> None:
        """Start without CUDA graphs, which are recorded sequences of kernels.

        Args:
            compute: The function to record. It computes the loss of a batch, and adds its gradient,
                divided by a number of target tokens, to `gradient`.
            gradient: The gradient of all parameters, as one vector.
        """
        self._compute = compute
        self._gradient = gradient
        self._graphs: dict[tuple[int, ...], _Graph] = {}
        # The memory and the stream of all graphs, which exist from the first recording on.
        self._memory_pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    def __call__(self, batch: PackedBatch, tokens: int) -> Tensor:
        """Run a batch forward and backward: add its gradient, and return its loss.

        The kernels of the first batch of a shape are recorded as a CUDA graph. Batches of the same
        shape are computed by this graph, which launches all kernels at once.

        Args:
            batch: The batch, on the CPU.
            tokens: The number of target tokens by which the gradient is divided.

        Returns:
            The loss, summed over target tokens, a scalar. The next call may overwrite it.
        """
        graph = self._graphs.get(batch.shape)
        if graph is None:
            if len(self._graphs) == _MAX_GRAPHS:
                # There is no memory for more graphs, so this batch is computed without one.
                return self._compute(batch.to(self._gradient.device), tokens)
            graph = self._record(batch)
            self._graphs[batch.shape] = graph
        # The graph reads its own copy of the batch and the number of tokens.
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

        A graph always reads and writes the same memory, which is allocated here. The gradient of
        the model does not change.

        Args:
            batch: A batch. The graph computes all batches of its shape.
        """
        device = self._gradient.device
        graph_batch = batch.map(lambda tensor: tensor.to(device, copy=True))
        tokens = torch.ones((), device=device)
        loss = torch.zeros((), device=device)

        def compute() -> None:
            """Run the batch in the graph's memory forward and backward, and store its loss."""
            loss.copy_(self._compute(graph_batch, tokens))

        replay: Callable[[], None] = compute
        if device.type == "cuda":
            # The passes before a recording add to the gradient.
            gradient_before = self._gradient.clone()
            replay = self._record_cuda(compute).replay
            self._gradient.copy_(gradient_before)
        return _Graph(graph_batch, tokens, loss, replay)

    def _record_cuda(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Record the kernels that a function launches as a CUDA graph, after calling it some times.

        In the first calls, libraries allocate and compile what they need, which cannot be recorded.
        CUDA records kernels on another stream than the current one. A stream is a queue of kernels,
        so each stream must wait for the other one.

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
                # After an error in the function, such as a lack of memory, ending the recording
                # raises another error. The first one is its context.
                raise error.__context__ or error from None
            finally:
                torch.cuda.set_stream(current_stream)

    def _capture(self, compute: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Call a function, and return a CUDA graph: a recording of the kernels that it launches."""
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
