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
    """How many tokens an update of the weights processes, and what it costs, over all processes.

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
    """An update of the weights that a GPU may still compute; its statistics are read later.

    Attributes:
        number: The number of the update, from 1.
        plan: The batches of the update.
        learning_rate: The learning rate.
        counts: The numbers of tokens and floating-point operations.
        losses: The summed loss of each batch, on the GPU; 0 for batches of other processes.
        figures: Three numbers that are being copied from the GPU: the summed loss, the norm of the
            gradient, and the scale of the loss (without a scale, the norm again).
        arrived: The event of the GPU after which `figures` can be read; None on CPUs.
    """

    number: int
    plan: PlannedUpdate
    learning_rate: float
    counts: UpdateCounts
    losses: Tensor
    figures: Tensor
    arrived: torch.cuda.Event | None


class OutOfMemory(Exception):
    """A process ran out of memory. If this happens in an update, the weights are unchanged."""


class TrainStep:
    """Computes updates of a model, together with the other processes of the training.

    Attributes:
        model: The model.
        optimizer: Its optimizer.
    """

    def __init__(self, model: Transformer, settings: Train, seed: int, group: Group) -> None:
        """Prepare a model for training: create its optimizer, set its precision, compile it.

        Args:
            model: The model, on its device.
            settings: The settings of the training.
            seed: The seed of the training, for dropout.
            group: The processes that train together.
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
            # Layer by layer: all encoder layers share one compiled function, as do all decoder
            # layers, which saves time.
            for layer in chain(model.encoder, model.decoder):
                layer.compile(dynamic=True, backend=COMPILER)

    def update(self, number: int, local: LocalUpdate) -> PendingUpdate:
        """Compute an update of the weights: gradients of all batches, then a step of the optimizer.

        On a GPU, this only orders the computation. The CPU does not wait for its result, and can
        prepare the next update.

        Args:
            number: The number of the update, from 1.
            local: This process's share of the batches of the update.

        Returns:
            The update, whose statistics `read_stats` reads later.

        Raises:
            OutOfMemory: A process ran out of memory. All processes raise it, and the weights are
                unchanged.
        """
        self.optimizer.zero_grad()
        counts = self._count(local)
        losses = self._accumulate_gradients(number, local, counts.target_tokens)
        self._gradient_sum.finish()
        if self._group.any(losses is None):
            self.free()
            raise OutOfMemory
        assert losses is not None
        norm = self._norm_of_rank_0(self.optimizer.grad_norm())
        rate = learning_rate(self._settings.lr_schedule, number, self.model.settings.d_model)
        self.optimizer.step(rate, norm)
        loss = self._group.all_reduce(losses.sum())
        loss_scale = self.optimizer.loss_scale
        scale = norm if loss_scale is None else loss_scale.value
        figures, arrived = self._start_copy(torch.stack((loss, norm.double(), scale.double())))
        return PendingUpdate(
            number=number,
            plan=local.update,
            learning_rate=rate,
            counts=counts,
            losses=losses,
            figures=figures,
            arrived=arrived,
        )

    def _start_copy(self, figures: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """Start to copy a tensor from the GPU to the CPU, without waiting for it.

        Args:
            figures: The tensor. On CPUs it is returned itself.

        Returns:
            The copy, and the event of the GPU after which it can be read; None on CPUs.
        """
        copy = figures.to("cpu", non_blocking=True)
        if self._group.device.type != "cuda":
            return copy, None
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return copy, arrived

    def free(self) -> None:
        """Free GPU memory and set the gradient to 0, after a batch did not fit into the memory.

        CUDA graphs are dropped; they can be recorded again. torch gives back the memory that it
        keeps for later tensors, so that other libraries can allocate.
        """
        self.optimizer.zero_grad()
        self._graphs.clear()
        if self._group.device.type == "cuda":
            torch.cuda.empty_cache()

    def read_stats(self, pending: PendingUpdate) -> UpdateStats:
        """Return the statistics of an update, after waiting until a GPU has computed it.

        In float16, the gradient overflows now and then, that is, it is not finite. Then the
        optimizer has skipped the update, and the statistics contain the gradient norm of the update
        before.

        Args:
            pending: The update, as `update` returned it.

        Raises:
            UserError: The training diverged: the loss is not finite; or the gradient is not finite,
                and this is not an overflow of float16.
        """
        if pending.arrived is not None:
            pending.arrived.synchronize()
        loss, norm, scale = pending.figures.tolist()
        is_norm_finite = math.isfinite(norm)
        # In float16, the loss is multiplied by a scale, which may have been too large. If it is
        # very small already, it is not the reason.
        can_overflow = self.optimizer.loss_scale is not None and scale >= LOWEST
        if not math.isfinite(loss) or not (is_norm_finite or can_overflow):
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

    def _norm_of_rank_0(self, norm: Tensor) -> Tensor:
        """Return the norm of the gradient that rank 0 has computed, on all processes.

        Machines may round differently, but all must clip the gradient by the same norm, so that
        their weights stay equal.

        Args:
            norm: The norm of the gradient that this process has computed.
        """
        if self._group.size == 1:
            return norm
        # Summed over all processes, zeros of the others leave the norm of rank 0.
        if not self._group.is_main:
            norm = torch.zeros_like(norm)
        return self._group.all_reduce(norm)

    def _count(self, local: LocalUpdate) -> UpdateCounts:
        """Count the tokens and floating-point operations of an update, over all processes.

        Args:
            local: This process's share of the batches of the update.
        """
        # It begins with an array of no pairs, since a process may have no batch.
        lengths = [np.zeros((0, 2), np.int64)]
        for batch in local.batches:
            for part in batch:
                lengths.append(part.lengths)
        pair_lengths = np.concatenate(lengths)
        tokens = pair_lengths.sum(0).tolist()
        counts = torch.from_numpy(np.array([*tokens, self._flops(pair_lengths)]))
        return UpdateCounts(*self._group.all_reduce(counts).tolist())

    def _flops(self, pair_lengths: NDArray[np.int64]) -> int:
        """Return how many floating-point operations the training on sentence pairs takes.

        Args:
            pair_lengths: The source and target length of each pair in tokens, (pairs, 2).
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
        """Add up the gradients of this process's batches of an update.

        Args:
            number: The number of the update, from 1.
            local: This process's share of the batches of the update.
            target_tokens: The number of target tokens of the update, over all processes. Gradients
                are divided by it.

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
        """Run a batch forward and backward, which adds its gradient to the gradient of the update.

        Args:
            batch: The batch, in one part, or in several if it is too long for one.
            number: The number of the update, from 1.
            index: The index of the batch in the update.
            tokens: The number of target tokens of the update, by which the gradient is divided.
            is_last: Whether this is the process's last batch of the update. Then the gradient is
                summed over processes while it is computed.

        Returns:
            The loss of the batch, summed over its target tokens.
        """
        self._seed_dropout(number, index)
        total_loss = torch.zeros((), dtype=torch.float64, device=self._group.device)
        for part_index, part in enumerate(batch):
            if isinstance(part, PackedBatch) and self._is_launch_bound(part):
                # A CUDA graph launches all kernels at once. Sums over processes cannot begin within
                # it; they begin after it.
                total_loss += self._graphs(part, tokens)
                continue
            is_last_part = part_index == len(batch) - 1
            if is_last and is_last_part:
                self._gradient_sum.overlap()
            total_loss += self._backward(part.to(self._group.device), tokens)
        return total_loss

    def _seed_dropout(self, number: int, index: int) -> None:
        """Seed torch's random numbers for a batch.

        So its dropout does not depend on the process that computes it, on earlier batches, or on
        whether the training was interrupted.

        Args:
            number: The number of the update, from 1.
            index: The index of the batch in the update.
        """
        seeds = np.random.SeedSequence((self._seed, number - 1, index))
        seed = int(seeds.generate_state(1, np.uint64)[0])
        # torch takes seeds of 63 bits.
        torch.manual_seed(seed >> 1)

    def _backward(self, batch: TrainingBatch, tokens: Tensor | int) -> Tensor:
        """Run a batch forward and backward.

        Args:
            batch: The batch, on the model's device.
            tokens: The number of target tokens of the update, by which the gradient is divided.

        Returns:
            The loss of the batch, summed over its target tokens.
        """
        loss = batch_loss(
            self.model,
            batch,
            self._settings.label_smoothing,
            self._settings.label_smoothing_target,
        )
        # In float16, the loss is multiplied by a scale, so that small gradients do not become 0.
        loss_scale = self.optimizer.loss_scale
        scaled_loss = loss if loss_scale is None else loss * loss_scale.value
        torch.autograd.backward(scaled_loss / tokens)
        return loss.detach()

    def _is_launch_bound(self, batch: PackedBatch) -> bool:
        """Return whether launching the kernels of a batch takes longer than computing them.

        Such a batch is computed by a CUDA graph, whose kernels are launched at once.

        Args:
            batch: The batch.
        """
        # With LayerDrop, a graph would always skip the layers that were skipped when it was
        # recorded.
        return not self.model.layer_drop and self._flops(batch.lengths) < _LAUNCH_FLOPS

    def _divergence_error(self, pending: PendingUpdate, mean_loss: float, norm: float) -> UserError:
        """Return the error for a training whose loss or gradient is not finite.

        It names the sentence pairs of the first batch whose loss is not finite, if there is one.

        Args:
            pending: The update.
            mean_loss: The loss per target token.
            norm: The norm of the gradient.
        """
        message = f"the loss of update {pending.number} is {mean_loss}, its gradient's norm {norm}"
        # Each process knows the losses of its own batches; the sum marks those of all processes.
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
    """Return whether torch.compile is used on a device: on GPUs that Triton supports."""
    return (
        device.type == "cuda"
        and has_triton()
        and torch.cuda.get_device_capability(device) >= _MIN_COMPILE_CAPABILITY
    )


@contextmanager
def detect_out_of_memory() -> Iterator[None]:
    """Return a context that turns errors about a lack of memory into OutOfMemory.

    torch and Python report a lack of memory by different errors, on CPUs and on GPUs.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory from None
        raise
