"""The sum of the gradient over processes, in buckets, while the backward pass computes the rest.

As torch's DistributedDataParallel does it, but on one flat vector, and after any number of passes.
"""

from torch import nn

from bleuprint.runtime.distributed.group import Group, PendingSum
from bleuprint.training.optimizer import FlatOptimizer

# The elements of a bucket, in parameters that are not cut: 25 MB, as in DistributedDataParallel.
_BUCKET = 25_000_000 // 4


class GradientSum:
    """Sums an optimizer's gradient over processes, its last elements first, as the pass has them.

    Buckets are started in one order on all processes, whichever gradients these have: LayerDrop
    leaves some out, and a process may have no batch at all.
    """

    def __init__(self, optimizer: FlatOptimizer, group: Group) -> None:
        self._gradient, self._group = optimizer.gradient, group
        self._buckets: list[slice] = []
        self._sizes: list[int] = []  # in parameters
        self._missing: list[int] | None = None  # of each bucket in the pass that runs
        self._pending: list[PendingSum] = []
        end, size = self._gradient.numel(), 0
        places = list(zip(optimizer.parameters, optimizer.starts, strict=True))
        for parameter, start in reversed(places):
            size += 1
            if group.size > 1:
                self._watch(parameter, len(self._buckets))
            if end - start >= _BUCKET or start == 0:
                self._buckets.append(slice(start, end))
                self._sizes.append(size)
                end, size = start, 0

    def overlap(self) -> None:
        """The backward pass that follows is the last of this process's update."""
        self._missing = self._sizes.copy()

    def finish(self) -> None:
        """Sum what is not yet summed; the vector may be read by the device. Raises PeerLost."""
        self._missing = None
        while len(self._pending) < len(self._buckets):
            self._start()
        for pending in self._pending:
            pending.wait()
        self._pending.clear()

    def _watch(self, parameter: nn.Parameter, bucket: int) -> None:
        hook = parameter.register_post_accumulate_grad_hook
        hook(lambda _: self._computed(bucket))  # type: ignore[no-untyped-call]

    def _computed(self, bucket: int) -> None:
        """A gradient of the bucket is complete."""
        if self._missing is None:
            return
        self._missing[bucket] -= 1
        while (next_one := len(self._pending)) < len(self._buckets) and not self._missing[next_one]:
            self._start()

    def _start(self) -> None:
        bucket = self._buckets[len(self._pending)]
        self._pending.append(self._group.start_all_reduce(self._gradient[bucket]))
