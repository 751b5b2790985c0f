"""One update of the weights, computed by any number of processes together."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from bleuprint.config.system import Train
from bleuprint.dataset.batching import PlannedUpdate
from bleuprint.dataset.packed_batch import PackedBatch, TrainingBatch
from bleuprint.model.backends import has_triton
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.training.data_loader import LocalUpdate
from bleuprint.training.gradient_sum import GradientSum
from bleuprint.training.graphs import Graphs
from bleuprint.training.loss import batch_loss
from bleuprint.training.loss_scale import LOWEST
from bleuprint.training.lr_schedule import learning_rate
from bleuprint.training.optimizer import ACTIVATIONS, FlatOptimizer

# How many pairs of a batch an error message names.
_NAMED_PAIRS = 5
_MATMUL_PRECISION = {
    "float32": "highest",
    **dict.fromkeys(("tf32", "bfloat16", "float16"), "high"),
}
COMPILER = "inductor"
# Beside an H200, which reaches 2e14 FLOP/s, launching 12 compiled layers and their gradients took
# 50 ms, kernel by kernel. Of larger batches graphs would hold the memory for nothing.
_LAUNCH_FLOPS = 1e13
# The least compute capability of the GPUs that torch compiles for (Triton).
_COMPILES_FROM = (7, 0)


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of an update over all processes; `loss` is summed over target tokens, in nats."""

    loss: float
    grad_norm: float
    learning_rate: float
    source_tokens: int
    target_tokens: int
    flops: int


@dataclass(frozen=True)
class PendingUpdate:
    """An update that the device may still compute: its statistics are read later.

    `counts`: source tokens, target tokens and FLOPs. `figures`: the summed loss, the norm and the
    scale of the loss, on their way to the CPU, where they are once `arrived`. `losses`: of each
    batch, on the device.
    """

    number: int
    plan: PlannedUpdate
    learning_rate: float
    counts: list[int]
    losses: Tensor
    figures: Tensor
    arrived: torch.cuda.Event | None


class OutOfMemory(Exception):
    """A process ran out of memory; in an update, the weights are unchanged."""


class TrainStep:
    """Computes updates of a model, together with the other processes of the group."""

    def __init__(self, model: Transformer, settings: Train, seed: int, group: Group) -> None:
        self.model, self._settings, self._seed, self._group = model, settings, seed, group
        self.optimizer = FlatOptimizer(model, settings)
        self._sum = GradientSum(self.optimizer, group)
        self._norm = 0.0
        model.activation_dtype = ACTIVATIONS.get(settings.precision)
        torch.set_float32_matmul_precision(_MATMUL_PRECISION[settings.precision])
        model.is_compiled = compiles(group.device) if settings.compile is None else settings.compile
        if model.is_compiled:
            # One by one: layers of a kind are equal, so that only the first is compiled.
            for layer in chain(model.encoder, model.decoder):
                layer.compile(dynamic=True, backend=COMPILER)
        self._graphs = Graphs(self._backward, self.optimizer.gradient)

    def update(self, number: int, local: LocalUpdate) -> PendingUpdate:
        """Compute update `number` (from 1); `local` is this process's part.

        Does not wait for a GPU, which may be an update behind. Raises OutOfMemory on all processes
        if one ran out of memory; the weights are unchanged then.
        """
        self.optimizer.zero_grad()
        counts = self._count(list(chain.from_iterable(local.batches)))
        losses = self._accumulate_gradients(number, local, counts[1])
        self._sum.finish()
        if self._group.any(losses is None):
            self.free()
            raise OutOfMemory
        assert losses is not None
        norm = self._of_main(self.optimizer.grad_norm())
        rate = learning_rate(self._settings.lr_schedule, number, self.model.settings.d_model)
        self.optimizer.step(rate, norm)
        loss, scale = self._group.all_reduce(losses.sum()), self.optimizer.loss_scale
        figures = torch.stack((loss, norm.double(), (scale.value if scale else norm).double()))
        figures = figures.to("cpu", non_blocking=True)
        arrived = None
        if self._group.device.type == "cuda":
            arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            arrived.record()
        return PendingUpdate(number, local.update, rate, counts, losses, figures, arrived)

    def free(self) -> None:
        """Give back what can be computed again, after an update that did not fit into memory."""
        self.optimizer.zero_grad()
        self._graphs.clear()
        if self._group.device.type == "cuda":
            torch.cuda.empty_cache()

    def read_stats(self, pending: PendingUpdate) -> UpdateStats:
        """The statistics of an update; waits until the device has computed it.

        Raises UserError if the loss or the gradient is not finite; in float16 the gradient may be,
        of an update that was left out (`LossScale`), which has the norm of the last one then.
        """
        if pending.arrived is not None:
            pending.arrived.synchronize()
        loss, norm, scale = pending.figures.tolist()
        scaled = self.optimizer.loss_scale is not None and scale >= LOWEST
        if not math.isfinite(loss) or not (math.isfinite(norm) or scaled):
            raise self._divergence(pending, loss / pending.counts[1], norm)
        self._norm = norm if math.isfinite(norm) else self._norm
        return UpdateStats(loss, self._norm, pending.learning_rate, *pending.counts)

    def _of_main(self, number: Tensor) -> Tensor:
        """Rank 0's, for all: machines may round differently, and weights must stay equal."""
        if self._group.size == 1:
            return number
        return self._group.all_reduce(number if self._group.is_main else torch.zeros_like(number))

    def _count(self, batches: list[TrainingBatch]) -> list[int]:
        """Source tokens, target tokens and FLOPs, summed over all processes."""
        model, vocabulary = self.model.settings, self.model.projection.out_features
        lengths = np.concatenate([np.zeros((0, 2), np.int64), *(each.lengths for each in batches)])
        flops = training_flops(model, vocabulary, lengths[:, 0], lengths[:, 1]).sum()
        counts = torch.from_numpy(np.array([*lengths.sum(0), flops]))
        result: list[int] = self._group.all_reduce(counts).tolist()
        return result

    def _accumulate_gradients(self, number: int, local: LocalUpdate, tokens: int) -> Tensor | None:
        """Add the gradients of this process's batches; returns the summed loss of each batch.

        Losses of other processes' batches are 0. Returns None if this process ran out of memory.
        """
        losses = torch.zeros(
            len(local.update.batches), dtype=torch.float64, device=self._group.device
        )
        try:
            with detect_out_of_memory():
                for index, batch in zip(local.batch_indices, local.batches, strict=True):
                    last = index == local.batch_indices[-1]
                    losses[index] = self.accumulate_gradient(batch, number, index, tokens, last)
        except OutOfMemory:
            return None
        return losses

    def accumulate_gradient(
        self,
        batch: list[TrainingBatch],
        number: int,
        index: int,
        tokens: int,
        last: bool = False,
    ) -> Tensor:
        """Add the gradient of a batch, divided by `tokens` of the update; returns the loss sum.

        `last`: the gradient is complete with it, and is summed over processes on the way.
        """
        # Dropout depends on the batch's index in the training, not on the process that computes it.
        seeds = np.random.SeedSequence((self._seed, number - 1, index))
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]) >> 1)
        total = torch.zeros((), dtype=torch.float64, device=self._group.device)
        for part in batch:
            if isinstance(part, PackedBatch) and self._launches_cost(part):
                total += self._graphs(part, tokens)
                continue  # the sums of its gradients begin after it
            if last and part is batch[-1]:
                self._sum.overlap()
            total += self._backward(part.to(self._group.device), tokens)
        return total

    def _backward(self, batch: TrainingBatch, tokens: Tensor | int) -> Tensor:
        settings, scale = self._settings, self.optimizer.loss_scale
        loss = batch_loss(
            self.model, batch, settings.label_smoothing, settings.label_smoothing_target
        )
        torch.autograd.backward((loss if scale is None else loss * scale.value) / tokens)
        return loss.detach()

    def _launches_cost(self, batch: PackedBatch) -> bool:
        """Whether a GPU computes the batch faster than its kernels are launched one by one."""
        model, vocabulary = self.model.settings, self.model.projection.out_features
        flops = training_flops(model, vocabulary, *batch.lengths.T).sum()
        return not self.model.layer_drop and flops < _LAUNCH_FLOPS

    def _divergence(self, pending: PendingUpdate, loss: float, norm: float) -> UserError:
        """The error for a loss that is not finite; names the first batch that has one."""
        message = f"the loss of update {pending.number} is {loss}, its gradient's norm {norm}"
        unlike = self._group.all_reduce((~pending.losses.isfinite()).double())
        if bad := unlike.nonzero().flatten().tolist():
            rows = pending.plan.batches[bad[0]].rows
            pairs = ", ".join(str(row + 1) for row in rows[:_NAMED_PAIRS].tolist())
            more = ", ..." if len(rows) > _NAMED_PAIRS else ""
            message += f"; it begins with the batch of training pairs {pairs}{more}"
        return UserError(
            f"{message}: lower the learning rate (train.lr_schedule) or lengthen its warmup"
        )


def compiles(device: torch.device) -> bool:
    """Whether torch compiles for the device: for GPUs, by Triton."""
    return (
        device.type == "cuda"
        and has_triton()
        and torch.cuda.get_device_capability(device) >= _COMPILES_FROM
    )


@contextmanager
def detect_out_of_memory() -> Iterator[None]:
    """Raise OutOfMemory for the errors by which CPUs and CUDA report it."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory from None
        raise
