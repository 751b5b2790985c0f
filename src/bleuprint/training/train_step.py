"""One update of the weights, computed by any number of processes together.

Each process adds up the gradients of its batches; the sum over processes is divided by the number
of target tokens of the whole update. So the result does not depend on the number of processes,
except for rounding.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
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

# The number of sentence pairs that an error message names.
_NAMED_PAIRS = 5
# How torch multiplies matrices in float32, by the setting `train.precision`.
_MATMUL_PRECISION = {
    "float32": "highest",
    "tf32": "high",
    "bfloat16": "high",
    "float16": "high",
}
# The compiler of torch.compile.
COMPILER = "inductor"
# Batches with fewer floating-point operations are computed by CUDA graphs. With an H200, which
# reaches 2e14 FLOP/s, launching 12 compiled layers and their gradients kernel by kernel took 50 ms.
# For larger batches, graphs would occupy memory and save no time.
_LAUNCH_FLOPS = 1e13
# The lowest compute capability of the GPUs that torch compiles for (by Triton).
_MIN_COMPILE_CAPABILITY = (7, 0)


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of an update, over all processes.

    Attributes:
        loss: The loss in nats, summed over target tokens.
        grad_norm: The norm of the gradient before clipping.
        learning_rate: The learning rate.
        source_tokens: The number of source tokens, without padding.
        target_tokens: The number of target tokens, without padding.
        flops: The floating-point operations.
    """

    loss: float
    grad_norm: float
    learning_rate: float
    source_tokens: int
    target_tokens: int
    flops: int


class UpdateCounts(NamedTuple):
    """What an update computes, over all processes.

    Attributes:
        source_tokens: The number of source tokens, without padding.
        target_tokens: The number of target tokens, without padding.
        flops: The floating-point operations.
    """

    source_tokens: int
    target_tokens: int
    flops: int


@dataclass(frozen=True)
class PendingUpdate:
    """An update that the device may still compute; its statistics are read later.

    Attributes:
        number: The number of the update, from 1.
        plan: Its batches.
        learning_rate: The learning rate.
        counts: Tokens and floating-point operations.
        losses: The summed loss of each batch, on the device; 0 for batches of other processes.
        figures: Three numbers on their way to the CPU: the summed loss, the norm of the gradient,
            and the scale of the loss (without a scale, the norm again).
        arrived: The event on a GPU after which `figures` are there; None on CPUs.
    """

    number: int
    plan: PlannedUpdate
    learning_rate: float
    counts: UpdateCounts
    losses: Tensor
    figures: Tensor
    arrived: torch.cuda.Event | None


class OutOfMemory(Exception):
    """A process ran out of memory; if this happens in an update, the weights are unchanged."""


class TrainStep:
    """Computes updates of a model, together with the other processes of the training.

    Attributes:
        model: The model.
        optimizer: Its optimizer.
    """

    def __init__(self, model: Transformer, settings: Train, seed: int, group: Group) -> None:
        """Prepare a model for training: its precision, and whether it is compiled.

        Args:
            model: The model, on its device.
            settings: The settings of the training.
            seed: The seed of the training, for dropout.
            group: The processes of the training.
        """
        self.model = model
        self.optimizer = FlatOptimizer(model, settings)
        self._settings = settings
        self._seed = seed
        self._group = group
        self._gradient_sum = GradientSum(self.optimizer, group)
        self._graphs = Graphs(self._backward, self.optimizer.gradient)
        # The norm of the gradient of the last update in which it was finite.
        self._last_norm = 0.0
        model.activation_dtype = ACTIVATIONS.get(settings.precision)
        torch.set_float32_matmul_precision(_MATMUL_PRECISION[settings.precision])
        model.is_compiled = compiles(group.device) if settings.compile is None else settings.compile
        if model.is_compiled:
            # One by one: the layers of a side are equal, so only the first one is compiled.
            for layer in chain(model.encoder, model.decoder):
                layer.compile(dynamic=True, backend=COMPILER)

    def update(self, number: int, local: LocalUpdate) -> PendingUpdate:
        """Compute an update of the weights.

        This does not wait for a GPU, which may be one update behind.

        Args:
            number: The number of the update, from 1.
            local: This process's share of its batches.

        Raises:
            OutOfMemory: On all processes, if one of them ran out of memory; the weights are
                unchanged then.
        """
        self.optimizer.zero_grad()
        counts = self._count(local)
        losses = self._accumulate_gradients(number, local, counts.target_tokens)
        self._gradient_sum.finish()
        if self._group.any(losses is None):
            self.free()
            raise OutOfMemory
        assert losses is not None
        norm = self._use_norm_of_rank_0(self.optimizer.grad_norm())
        rate = learning_rate(self._settings.lr_schedule, number, self.model.settings.d_model)
        self.optimizer.step(rate, norm)
        loss = self._group.all_reduce(losses.sum())
        loss_scale = self.optimizer.loss_scale
        scale = norm if loss_scale is None else loss_scale.value
        figures = torch.stack((loss, norm.double(), scale.double()))
        # On a GPU, the copy has only been ordered now; the event tells when it has arrived.
        figures = figures.to("cpu", non_blocking=True)
        arrived = None
        if self._group.device.type == "cuda":
            arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            arrived.record()
        return PendingUpdate(
            number=number,
            plan=local.update,
            learning_rate=rate,
            counts=counts,
            losses=losses,
            figures=figures,
            arrived=arrived,
        )

    def free(self) -> None:
        """Free the memory of what can be computed again, after an update did not fit into it."""
        self.optimizer.zero_grad()
        self._graphs.clear()
        if self._group.device.type == "cuda":
            torch.cuda.empty_cache()

    def read_stats(self, pending: PendingUpdate) -> UpdateStats:
        """Return the statistics of an update, after waiting until the device has computed it.

        In float16 the gradient may be not finite: then the update was skipped (see `LossScale`),
        and the statistics contain the norm of the update before.

        Raises:
            UserError: The loss is not finite, or the gradient is not and float16 is no reason.
        """
        if pending.arrived is not None:
            pending.arrived.synchronize()
        loss, norm, scale = pending.figures.tolist()
        is_norm_finite = math.isfinite(norm)
        # The scale of the loss may be too large for float16, unless it is very small already.
        is_scaled = self.optimizer.loss_scale is not None and scale >= LOWEST
        if not math.isfinite(loss) or not (is_norm_finite or is_scaled):
            mean_loss = loss / pending.counts.target_tokens
            raise self._divergence_error(pending, mean_loss, norm)
        if is_norm_finite:
            self._last_norm = norm
        return UpdateStats(
            loss=loss,
            grad_norm=self._last_norm,
            learning_rate=pending.learning_rate,
            source_tokens=pending.counts.source_tokens,
            target_tokens=pending.counts.target_tokens,
            flops=pending.counts.flops,
        )

    def _use_norm_of_rank_0(self, norm: Tensor) -> Tensor:
        """Return the norm that rank 0 computed, on all processes.

        Machines may round differently, but all must clip equally, so that their weights stay equal.
        The norm is sent by a sum, in which all other processes have 0.
        """
        if self._group.size == 1:
            return norm
        return self._group.all_reduce(norm if self._group.is_main else torch.zeros_like(norm))

    def _count(self, local: LocalUpdate) -> UpdateCounts:
        """Return the tokens and floating-point operations of an update, over all processes."""
        # A process may have no batch.
        lengths = [np.zeros((0, 2), np.int64)]
        for batch in local.batches:
            for part in batch:
                lengths.append(part.lengths)
        pair_lengths = np.concatenate(lengths)
        tokens = pair_lengths.sum(0).tolist()
        counts = torch.from_numpy(np.array([*tokens, self._flops(pair_lengths)]))
        return UpdateCounts(*self._group.all_reduce(counts).tolist())

    def _flops(self, pair_lengths: NDArray[np.int64]) -> int:
        """Return the floating-point operations of training on some sentence pairs.

        Args:
            pair_lengths: The lengths of both sides of each pair, (pairs, 2).
        """
        flops = training_flops(
            self.model.settings,
            self.model.projection.out_features,
            pair_lengths[:, 0],
            pair_lengths[:, 1],
        )
        return int(flops.sum())

    def _accumulate_gradients(
        self, number: int, local: LocalUpdate, target_tokens: int
    ) -> Tensor | None:
        """Add the gradients of this process's batches.

        Args:
            number: The number of the update.
            local: This process's share of its batches.
            target_tokens: The number of target tokens of the whole update.

        Returns:
            The summed loss of each batch of the update, 0 for batches of other processes; None if
            this process ran out of memory.
        """
        losses = torch.zeros(
            len(local.update.batches), dtype=torch.float64, device=self._group.device
        )
        try:
            with detect_out_of_memory():
                for index, batch in zip(local.batch_indices, local.batches, strict=True):
                    is_last = index == local.batch_indices[-1]
                    losses[index] = self.accumulate_gradient(
                        batch, number, index, target_tokens, is_last
                    )
        except OutOfMemory:
            return None
        return losses

    def accumulate_gradient(
        self,
        batch: list[TrainingBatch],
        number: int,
        index: int,
        tokens: int,
        is_last: bool = False,
    ) -> Tensor:
        """Add the gradient of a batch, divided by the target tokens of the update.

        Args:
            batch: The parts of the batch.
            number: The number of the update, from 1.
            index: The index of the batch in the update.
            tokens: The number of target tokens of the update.
            is_last: Whether this is the process's last batch of the update. Then the gradient is
                summed over processes while it is computed.

        Returns:
            The summed loss of the batch.
        """
        self._seed_dropout(number, index)
        total_loss = torch.zeros((), dtype=torch.float64, device=self._group.device)
        for part_index, part in enumerate(batch):
            if isinstance(part, PackedBatch) and self._is_launch_bound(part):
                # Sums over processes cannot begin within a graph; they begin after it.
                total_loss += self._graphs(part, tokens)
                continue
            is_last_part = part_index == len(batch) - 1
            if is_last and is_last_part:
                self._gradient_sum.overlap()
            total_loss += self._backward(part.to(self._group.device), tokens)
        return total_loss

    def _seed_dropout(self, number: int, index: int) -> None:
        """Seed the random generator for a batch.

        The seed depends on the batch's place in the training, not on the process that computes it
        or on the batches before.
        """
        seeds = np.random.SeedSequence((self._seed, number - 1, index))
        seed = int(seeds.generate_state(1, np.uint64)[0])
        # torch takes seeds of 63 bits.
        torch.manual_seed(seed >> 1)

    def _backward(self, batch: TrainingBatch, tokens: Tensor | int) -> Tensor:
        """Compute the loss of a batch, and add its gradient divided by `tokens`."""
        loss = batch_loss(
            self.model,
            batch,
            self._settings.label_smoothing,
            self._settings.label_smoothing_target,
        )
        loss_scale = self.optimizer.loss_scale
        scaled_loss = loss if loss_scale is None else loss * loss_scale.value
        torch.autograd.backward(scaled_loss / tokens)
        return loss.detach()

    def _is_launch_bound(self, batch: PackedBatch) -> bool:
        """Return whether a GPU computes a batch faster than its kernels are launched one by one.

        With LayerDrop, a graph would repeat the layers that were drawn when it was recorded.
        """
        return not self.model.layer_drop and self._flops(batch.lengths) < _LAUNCH_FLOPS

    def _divergence_error(self, pending: PendingUpdate, mean_loss: float, norm: float) -> UserError:
        """Return the error for a loss or gradient that is not finite.

        It names the first batch whose loss is not finite, which may be another process's.
        """
        message = f"the loss of update {pending.number} is {mean_loss}, its gradient's norm {norm}"
        is_bad = (~pending.losses.isfinite()).double()
        bad_batches = self._group.all_reduce(is_bad).nonzero().flatten().tolist()
        if bad_batches:
            rows = pending.plan.batches[bad_batches[0]].rows
            # Messages count lines from 1, rows are counted from 0.
            line_numbers = [str(row + 1) for row in rows[:_NAMED_PAIRS].tolist()]
            if len(rows) > _NAMED_PAIRS:
                line_numbers.append("...")
            pairs = ", ".join(line_numbers)
            message += f"; it begins with the batch of training pairs {pairs}"
        return UserError(
            f"{message}: lower the learning rate (train.lr_schedule) or lengthen its warmup"
        )


def compiles(device: torch.device) -> bool:
    """Return whether torch compiles for a device: for GPUs that Triton supports."""
    return (
        device.type == "cuda"
        and has_triton()
        and torch.cuda.get_device_capability(device) >= _MIN_COMPILE_CAPABILITY
    )


@contextmanager
def detect_out_of_memory() -> Iterator[None]:
    """Raise OutOfMemory in place of the errors by which CPUs and CUDA report a lack of memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory from None
        raise
