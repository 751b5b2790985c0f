"""One update of the weights, computed by any number of processes together."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from bleuprint.config.system import Train
from bleuprint.dataset.batch import Batch
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.training.data_loader import LocalUpdate
from bleuprint.training.loss import batch_loss
from bleuprint.training.lr_schedule import learning_rate
from bleuprint.training.optimizer import FlatOptimizer

# How many pairs of a batch an error message names.
_NAMED_PAIRS = 5
_MATMUL_PRECISION = {"float32": "highest", "tf32": "high", "bfloat16": "high"}


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of an update over all processes; `loss` is summed over target tokens, in nats."""

    loss: float
    grad_norm: float
    learning_rate: float
    source_tokens: int
    target_tokens: int
    flops: int


class OutOfMemory(Exception):
    """A process ran out of memory; in an update, the weights are unchanged."""


class TrainStep:
    """Computes updates of a model, together with the other processes of the group."""

    def __init__(self, model: Transformer, settings: Train, seed: int, group: Group) -> None:
        self.model, self._settings, self._seed, self._group = model, settings, seed, group
        self.optimizer = FlatOptimizer(model, settings)
        model.bfloat16_activations = settings.precision == "bfloat16"
        torch.set_float32_matmul_precision(_MATMUL_PRECISION[settings.precision])
        if settings.compile:
            # One by one: layers of a kind are equal, so that only the first is compiled.
            for layer in chain(model.encoder, model.decoder):
                layer.compile(dynamic=True)

    def update(self, number: int, local: LocalUpdate) -> UpdateStats:
        """Compute update `number` (from 1); `local` is this process's part.

        Raises OutOfMemory on all processes if one ran out of memory, and UserError if the loss or
        the gradient is not finite.
        """
        self.optimizer.zero_grad()
        source_tokens, tokens, flops = self._count(chain.from_iterable(local.batches))
        losses = self._accumulate_gradients(number, local, tokens)
        if self._group.any(losses is None):
            self.optimizer.zero_grad()
            if self._group.device.type == "cuda":
                torch.cuda.empty_cache()
            raise OutOfMemory
        assert losses is not None
        loss = float(self._group.all_reduce(losses.sum()))
        self._group.all_reduce(self.optimizer.gradient)
        # rank 0's norm for all: machines may round differently, and weights must stay equal
        norm = self._group.broadcast(self.optimizer.grad_norm())
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise self._divergence(number, local, losses, loss / tokens, norm)
        rate = learning_rate(self._settings.lr_schedule, number, self.model.settings.d_model)
        self.optimizer.step(rate, norm)
        return UpdateStats(loss, norm, rate, source_tokens, tokens, flops)

    def _count(self, batches: Iterable[Batch]) -> list[int]:
        """Source tokens, target tokens and FLOPs, summed over all processes."""
        model, vocabulary = self.model.settings, self.model.projection.out_features
        lengths = [pair for batch in batches for pair in batch.lengths]
        flops = sum(training_flops(model, vocabulary, *pair) for pair in lengths)
        counts = [sum(source for source, _ in lengths), sum(target for _, target in lengths), flops]
        shared = self._group.all_reduce(torch.tensor(counts, device=self._group.device))
        result: list[int] = shared.tolist()
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
                    losses[index] = self.accumulate_gradient(batch, number, index, tokens)
        except OutOfMemory:
            return None
        return losses

    def accumulate_gradient(
        self, batch: list[Batch], number: int, index: int, tokens: int
    ) -> Tensor:
        """Add the gradient of a batch, divided by `tokens` of the update; returns the loss sum."""
        settings, device = self._settings, self._group.device
        # Dropout depends on the batch's index in the training, not on the process that computes it.
        seeds = np.random.SeedSequence((self._seed, number - 1, index))
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]) >> 1)
        total = torch.zeros((), dtype=torch.float64, device=device)
        for part in batch:
            loss = batch_loss(
                self.model,
                part.to(device),
                settings.label_smoothing,
                settings.label_smoothing_target,
            )
            torch.autograd.backward(loss / tokens)
            total += loss.detach()
        return total

    def _divergence(
        self, number: int, local: LocalUpdate, losses: Tensor, loss: float, norm: float
    ) -> UserError:
        """The error for a loss that is not finite; names the first batch that has one."""
        message = f"the loss of update {number} is {loss}, its gradient's norm {norm}"
        bad = self._group.all_reduce((~losses.isfinite()).double()).nonzero().flatten().tolist()
        if bad:
            rows = local.update.batches[bad[0]].rows
            pairs = ", ".join(str(row + 1) for row in rows[:_NAMED_PAIRS].tolist())
            more = ", ..." if len(rows) > _NAMED_PAIRS else ""
            message += f"; it begins with the batch of training pairs {pairs}{more}"
        return UserError(
            f"{message}: lower the learning rate (train.lr_schedule) or lengthen its warmup"
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
