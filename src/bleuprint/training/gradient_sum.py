"""The sum of the gradient over processes, while the backward pass still computes the rest of it.

The gradient is divided into buckets. The backward pass goes from the last layer to the first, so
the last bucket is complete first, and its sum begins while earlier layers are still computed.
torch's DistributedDataParallel does the same; here it works on one flat vector, and after any
number of backward passes.
"""

from torch import Tensor, nn

from bleuprint.runtime.distributed.group import Group, PendingSum
from bleuprint.training.optimizer import FlatOptimizer

# The least size of a bucket, in elements of 4 bytes: 25 MB, as in DistributedDataParallel.
# Parameters are not cut.
_BUCKET_ELEMENTS = 25_000_000 // 4


class GradientSum:
    """Sums the gradient over the processes of a training, during the last backward pass.

    The gradient is a vector, which is divided into parts, called buckets. The backward pass goes
    from the last layer to the first, so the last bucket is complete first. Its sum begins while the
    gradients of earlier layers are still computed.

    All processes sum the buckets in the same order, whichever gradients they have: LayerDrop skips
    layers, and a process may have no batch at all.
    """

    def __init__(self, optimizer: FlatOptimizer, group: Group) -> None:
        """Divide the gradient into buckets, which are summed over the processes one by one.

        torch is asked to call `_mark_complete` for each parameter, so that the sum of a bucket
        begins as soon as the gradients of its parameters are computed.

        Args:
            optimizer: The optimizer, whose gradient is one vector for all parameters.
            group: The processes that train together. With a single one, nothing is summed.
        """
        self._gradient = optimizer.gradient
        self._group = group
        # The buckets, in the order in which they are summed.
        self._buckets: list[slice] = []
        # The number of parameters in each bucket.
        self._parameter_counts: list[int] = []
        # The number of parameters in each bucket whose gradient is not complete yet. It is None
        # except during the last backward pass of an update: before that, no gradient is complete.
        self._missing_counts: list[int] | None = None
        # The sums that have begun. Buckets are summed in order, so these are the first ones.
        self._pending_sums: list[PendingSum] = []
        self._divide_into_buckets(optimizer)

    def _divide_into_buckets(self, optimizer: FlatOptimizer) -> None:
        """Cut the vector of all gradients into buckets, from its end to its start.

        The backward pass computes the gradients in this order, so the first bucket is complete
        first. A bucket begins where the gradient of a parameter begins. It has at least 25 MB, so
        that there are few sums; only the last bucket may be smaller.

        Args:
            optimizer: The optimizer, with its parameters and where each begins in the vector.
        """
        bucket_end = self._gradient.numel()
        parameter_count = 0
        starts = list(zip(optimizer.parameters, optimizer.starts, strict=True))
        for parameter, start in reversed(starts):
            parameter_count += 1
            if self._group.size > 1:  # A single process has nothing to sum.
                self._watch(parameter, bucket=len(self._buckets))
            is_full = bucket_end - start >= _BUCKET_ELEMENTS
            is_first_parameter = start == 0
            if is_full or is_first_parameter:
                self._buckets.append(slice(start, bucket_end))
                self._parameter_counts.append(parameter_count)
                bucket_end = start
                parameter_count = 0

    def overlap(self) -> None:
        """Let sums begin during the next backward pass, while it computes earlier layers.

        Call this before the last backward pass of this process in an update. Each backward pass of
        an update adds to the gradient, so it is not complete before the last one.
        """
        self._missing_counts = self._parameter_counts.copy()

    def finish(self) -> None:
        """Begin the sums that have not begun yet, and wait for all sums of the update.

        Some have not begun if LayerDrop has skipped a layer: its gradients never become complete.
        On a GPU, the CPU does not wait: it only orders the GPU to finish the sums before it uses
        the gradient again.

        Raises:
            PeerLost: Another process has ended.
        """
        self._missing_counts = None
        while len(self._pending_sums) < len(self._buckets):
            self._start_next_sum()
        for pending_sum in self._pending_sums:
            pending_sum.wait()
        self._pending_sums.clear()

    def _watch(self, parameter: nn.Parameter, bucket: int) -> None:
        """Call `_mark_complete` whenever a backward pass has computed a parameter's gradient.

        Args:
            parameter: The parameter.
            bucket: The index of its bucket.
        """

        def hook(_parameter: Tensor) -> None:
            """Count the gradient as complete; torch calls this after adding to it."""
            self._mark_complete(bucket)

        parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]

    def _mark_complete(self, bucket: int) -> None:
        """Note that the gradient of one more parameter is complete, and begin sums if possible.

        All processes must sum the buckets in the same order. So a bucket is summed once it and all
        buckets before it are complete.

        Args:
            bucket: The index of the bucket.
        """
        if self._missing_counts is None:
            return  # A later backward pass will still add to the gradient.
        self._missing_counts[bucket] -= 1
        while len(self._pending_sums) < len(self._buckets):
            next_bucket = len(self._pending_sums)
            if self._missing_counts[next_bucket] > 0:
                return
            self._start_next_sum()

    def _start_next_sum(self) -> None:
        """Begin to sum the next bucket over all processes, without waiting for the result."""
        next_bucket = self._buckets[len(self._pending_sums)]
        pending_sum = self._group.start_all_reduce(self._gradient[next_bucket])
        self._pending_sums.append(pending_sum)
