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
from bleuprint.model.backends import compiles_by_default
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.training.data_loader import LocalUpdate
from bleuprint.training.gradient_sum import GradientSum
from bleuprint.training.graphs import Graphs
from bleuprint.training.loss import batch_loss
from bleuprint.training.loss_scale import LOWEST_PLAUSIBLE_SCALE
from bleuprint.training.lr_schedule import learning_rate
from bleuprint.training.optimizer import ACTIVATION_DTYPES, FlatOptimizer

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
        loss_norm_scale: Three numbers that are being copied from the GPU: the summed loss, the norm
            of the gradient, and the scale of the loss (without a scale, the norm again).
        copied: The event of the GPU after which these numbers can be read; None on CPUs.
    """

    number: int
    plan: PlannedUpdate
    learning_rate: float
    counts: UpdateCounts
    losses: Tensor
    loss_norm_scale: Tensor
    copied: torch.cuda.Event | None


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
        model.activation_dtype = ACTIVATION_DTYPES.get(settings.precision)
        torch.set_float32_matmul_precision(_MATMUL_PRECISION[settings.precision])
        is_compiled = settings.compile
        if is_compiled is None:
            is_compiled = compiles_by_default(group.device)
        model.is_compiled = is_compiled
        if model.is_compiled:
            # Layer by layer saves time: all encoder layers share one compiled function, and so do
            # all decoder layers.
            for layer in chain(model.encoder, model.decoder):
                layer.compile(dynamic=True, backend=COMPILER)

    def update(self, number: int, local: LocalUpdate) -> PendingUpdate:
        """Compute an update of the weights: gradients of all batches, then a step of the optimizer.

        On a GPU, this only starts the computation. The CPU does not wait for the result, so that it
        can prepare the next update meanwhile.

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
        # The gradient is summed over all processes, even if one of them ran out of memory: the
        # others wait for its part.
        self._gradient_sum.finish()
        if self._group.any(losses is None):
            self.free()
            raise OutOfMemory
        assert losses is not None
        norm = self._norm_of_rank_0(self.optimizer.grad_norm())
        rate = learning_rate(self._settings.lr_schedule, number, self.model.settings.d_model)
        self.optimizer.step(rate, norm)
        loss = self._group.all_reduce(losses.sum())
        # Without a scale, a number that is not used takes its place.
        loss_scale = self.optimizer.loss_scale
        scale = norm if loss_scale is None else loss_scale.value
        # One copy of three numbers takes less time than three copies.
        loss_norm_scale, copied = self._start_copy(
            torch.stack((loss, norm.double(), scale.double()))
        )
        return PendingUpdate(
            number=number,
            plan=local.update,
            learning_rate=rate,
            counts=counts,
            losses=losses,
            loss_norm_scale=loss_norm_scale,
            copied=copied,
        )

    def _start_copy(self, tensor: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """Start to copy a tensor from the GPU to the CPU, without waiting for the GPU.

        Args:
            tensor: The tensor, on the device of this process.

        Returns:
            The copy, and an event. Before the copy is read, `event.synchronize()` must be called,
            which waits until the GPU has written it. On CPUs, there is no event: it is None.
        """
        copy = tensor.to("cpu", non_blocking=True)
        if self._group.device.type != "cuda":
            return copy, None
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record()
        return copy, copied

    def free(self) -> None:
        """Free as much GPU memory as possible, after a batch did not fit into it.

        The part of the gradient that was computed is thrown away. CUDA graphs are dropped; they can
        be recorded again. torch gives back the memory that it keeps for later tensors, so that
        other libraries, such as cuBLAS, can allocate it.
        """
        self.optimizer.zero_grad()
        self._graphs.clear()
        if self._group.device.type == "cuda":
            torch.cuda.empty_cache()

    def read_stats(self, pending: PendingUpdate) -> UpdateStats:
        """Return the statistics of an update, after waiting until a GPU has computed it.

        In float16, the gradient overflows now and then, that is, it contains infinity or NaN. The
        optimizer has then skipped the update. The statistics contain the gradient norm of the last
        update whose norm was finite.

        Args:
            pending: The update, as `update` returned it.

        Raises:
            UserError: The training diverged: the loss is not finite; or the gradient is not finite,
                and this is not an overflow of float16.
        """
        if pending.copied is not None:
            pending.copied.synchronize()
        loss, norm, scale = pending.loss_norm_scale.tolist()
        is_norm_finite = math.isfinite(norm)
        # In float16, the loss is multiplied by a scale. If the scale is large, it explains why the
        # gradient is not finite. If it is very small, the model itself has diverged.
        can_overflow = self.optimizer.loss_scale is not None and scale >= LOWEST_PLAUSIBLE_SCALE
        is_norm_plausible = is_norm_finite or can_overflow
        has_diverged = not (math.isfinite(loss) and is_norm_plausible)
        if has_diverged:
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
        """Return the gradient norm that rank 0 has computed, on all processes.

        Rank 0 is the first process. Machines may round differently, but all processes must clip the
        gradient by the same norm: otherwise their weights would slowly become different.

        Args:
            norm: The norm of the gradient that this process has computed.
        """
        if self._group.size == 1:
            return norm
        # All other processes contribute 0 to the sum, so it is the norm of rank 0.
        if not self._group.is_main:
            norm = torch.zeros_like(norm)
        return self._group.all_reduce(norm)

    def _count(self, local: LocalUpdate) -> UpdateCounts:
        """Count the tokens and floating-point operations of an update, over all processes.

        Args:
            local: This process's share of the batches of the update.
        """
        # A process may have no batch, and np.concatenate needs at least one array. So the list
        # begins with an array of 0 pairs.
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
        """Run this process's batches of an update forward and backward, and add up their gradients.

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
            batch: The parts of the batch. It usually has one part; BPE-dropout may make it so long
                that it is divided into several.
            number: The number of the update, from 1.
            index: The index of the batch in the update.
            tokens: The number of target tokens of the update, by which the gradient is divided.
            is_last: Whether this is the process's last batch of the update. The gradient is then
                complete, and is summed over processes while it is still computed.

        Returns:
            The loss of the batch, summed over its target tokens.
        """
        self._seed_dropout(number, index)
        total_loss = torch.zeros((), dtype=torch.float64, device=self._group.device)
        for part_index, part in enumerate(batch):
            if isinstance(part, PackedBatch) and self._is_launch_bound(part):
                # A CUDA graph launches all kernels at once, which is faster for a small batch. Sums
                # over processes cannot begin within a graph; they begin after it.
                total_loss += self._graphs(part, tokens)
                continue
            is_last_part = part_index == len(batch) - 1
            if is_last and is_last_part:
                self._gradient_sum.overlap()
            total_loss += self._backward(part.to(self._group.device), tokens)
        return total_loss

    def _seed_dropout(self, number: int, index: int) -> None:
        """Seed torch's random numbers for a batch, so that its dropout is always the same.

        It does not depend on the process that computes the batch, on earlier batches, or on whether
        the training was interrupted.

        Args:
            number: The number of the update, from 1.
            index: The index of the batch in the update.
        """
        # A hash of the three numbers. Updates are counted from 0 here, as in earlier versions, so
        # that results stay the same.
        seeds = np.random.SeedSequence((self._seed, number - 1, index))
        seed_of_64_bits = int(seeds.generate_state(1, np.uint64)[0])
        # torch accepts seeds of 63 bits.
        torch.manual_seed(seed_of_64_bits >> 1)

    def _backward(self, batch: TrainingBatch, tokens: Tensor | int) -> Tensor:
        """Run a batch forward and backward, which adds its gradient to the gradient of the update.

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
        """Return whether a batch is so small that launching its GPU kernels takes most of the time.

        Such a batch is computed by a CUDA graph, which launches all kernels at once.

        Args:
            batch: The batch.
        """
        if self.model.layer_drop > 0:
            # LayerDrop skips random layers. A graph would always skip the layers that were skipped
            # when it was recorded.
            return False
        if not self.model.settings.is_built_in:
            # Own code may decide in Python what it computes. A graph would always repeat what it
            # decided when the graph was recorded.
            return False
        return self._flops(batch.lengths) < _LAUNCH_FLOPS

    def _divergence_error(self, pending: PendingUpdate, mean_loss: float, norm: float) -> UserError:
        """Return the error for a training whose loss or gradient is infinite or NaN.

        It names the sentence pairs of the first batch whose loss is not finite, if there is one:
        they may be the cause.

        Args:
            pending: The update.
            mean_loss: The loss per target token.
            norm: The norm of the gradient.
        """
        message = f"the loss of update {pending.number} is {mean_loss}, its gradient's norm {norm}"
        # 1 for each bad batch. Each process only knows its own batches, so the marks of all
        # processes are added.
        is_bad = (~pending.losses.isfinite()).double()
        bad_batches = self._group.all_reduce(is_bad).nonzero().flatten().tolist()
        if bad_batches:
            rows = pending.plan.batches[bad_batches[0]].rows
            # Rows are counted from 0, but users count lines from 1.
            line_numbers = [str(row + 1) for row in rows[:_NAMED_PAIRS].tolist()]
            if len(rows) > _NAMED_PAIRS:
                line_numbers.append("...")
            pairs = ", ".join(line_numbers)
            message += f". The first such batch contains the training pairs {pairs}"
        return UserError(
            f"{message}. Lower the learning rate (train.lr_schedule) or lengthen its warmup"
        )


@contextmanager
def detect_out_of_memory() -> Iterator[None]:
    """Return a context that turns every error about a lack of memory into `OutOfMemory`.

    Callers need one class to catch: torch and Python raise different errors on CPUs and on GPUs.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory from None
        raise
