"""One update of a model's weights after the other, made together by any number of processes."""

import math
from collections.abc import Iterable
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
from bleuprint.training.data_loader import Share
from bleuprint.training.loss import batch_loss
from bleuprint.training.lr_schedule import learning_rate
from bleuprint.training.optimizer import FlatAdam

# Of the pairs of a batch that spoils the loss, so many are named.
_NAMED_PAIRS = 5
_PRODUCTS = {"float32": "highest", "tf32": "high", "bfloat16": "high"}


@dataclass(frozen=True)
class Outcome:
    """What an update did, over all processes; `loss` is summed over the target tokens, in nats."""

    loss: float
    norm: float
    rate: float
    source_tokens: int
    target_tokens: int
    flops: int


class OutOfMemory(Exception):
    """An update did not fit into the memory of some process; the weights are as they were."""


class Learner:
    """One process's part in the updates of a model."""

    def __init__(self, model: Transformer, settings: Train, seed: int, group: Group) -> None:
        self.model, self._settings, self._seed, self._group = model, settings, seed, group
        self.optimizer = FlatAdam(model, settings)
        torch.set_float32_matmul_precision(_PRODUCTS[settings.precision])
        if settings.compile:
            # One by one: they are alike, so that the first of each kind is the only one compiled.
            for layer in chain(model.encoder, model.decoder):
                layer.compile(dynamic=True)

    def update(self, number: int, share: Share) -> Outcome:
        """Make update `number` (from 1), of which `share` falls to this process.

        Raises OutOfMemory on every process if it did not fit on one, and UserError where the loss
        is no number.
        """
        self.optimizer.clear()
        source_tokens, tokens, flops = self._count(chain.from_iterable(share.batches))
        losses = self._learn_all(number, share, tokens)
        if self._group.any(losses is None):
            self.optimizer.clear()
            if self._group.device.type == "cuda":
                torch.cuda.empty_cache()
            raise OutOfMemory
        assert losses is not None
        loss = float(self._group.all_reduce(losses.sum()))
        self._group.all_reduce(self.optimizer.gradient)
        # one norm for all: machines may round it differently, and weights must stay the same
        norm = self._group.broadcast(self.optimizer.norm())
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise self._diverged(number, share, losses, loss / tokens, norm)
        rate = learning_rate(self._settings.lr_schedule, number, self.model.settings.d_model)
        self.optimizer.step(rate, norm)
        return Outcome(loss, norm, rate, source_tokens, tokens, flops)

    def try_out(self, batch: Batch) -> None:
        """Run a batch through all layers forward and backward, and forget it.

        Raises UserError if it does not fit.
        """
        fits, share = True, self.model.layer_drop
        self.model.layer_drop = 0.0
        try:
            self._learn([batch], number=1, place=0, tokens=1)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not for_memory(error):
                raise
            fits = False
        finally:
            self.model.layer_drop = share
        self.optimizer.clear()
        if self._group.any(not fits):
            pairs, length = batch.source.size(0), max(max(pair) for pair in batch.lengths)
            raise UserError(
                f"the largest batch, {pairs} pairs of up to {length} tokens, does not fit into the "
                f"memory of {self._group.device}: lower train.max_tokens "
                f"({self._settings.max_tokens}); train.tokens_per_update may stay"
            )

    def _count(self, batches: Iterable[Batch]) -> list[int]:
        """Source tokens, target tokens and FLOPs of these batches and all other processes'."""
        model, vocabulary = self.model.settings, self.model.projection.out_features
        lengths = [pair for batch in batches for pair in batch.lengths]
        flops = sum(training_flops(model, vocabulary, *pair) for pair in lengths)
        counts = [sum(source for source, _ in lengths), sum(target for _, target in lengths), flops]
        shared = self._group.all_reduce(torch.tensor(counts, device=self._group.device))
        result: list[int] = shared.tolist()
        return result

    def _learn_all(self, number: int, share: Share, tokens: int) -> Tensor | None:
        """Add up the gradients of a share; the summed loss of each batch of the update.

        Those that other processes have stand at 0. None if the memory did not suffice.
        """
        losses = torch.zeros(
            len(share.update.batches), dtype=torch.float64, device=self._group.device
        )
        try:
            for place, batch in zip(share.places, share.batches, strict=True):
                losses[place] = self._learn(batch, number, place, tokens)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not for_memory(error):
                raise
            return None
        return losses

    def _learn(self, batch: list[Batch], number: int, place: int, tokens: int) -> Tensor:
        """Add the gradient of the batch at `place` in an update of `tokens`; its summed loss."""
        settings, device = self._settings, self._group.device
        # Dropout depends on the batch's place in the training, not on the process that has it.
        seeds = np.random.SeedSequence((self._seed, number - 1, place))
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]) >> 1)
        half = settings.precision == "bfloat16"
        total = torch.zeros((), dtype=torch.float64, device=device)
        for part in batch:
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                loss = batch_loss(
                    self.model,
                    part.to(device),
                    settings.label_smoothing,
                    settings.label_smoothing_target,
                )
            torch.autograd.backward(loss / tokens)
            total += loss.detach()
        return total

    def _diverged(
        self, number: int, share: Share, losses: Tensor, loss: float, norm: float
    ) -> UserError:
        """The error that names the batch whose loss is no number, whichever process had it."""
        what = f"the loss of update {number} is {loss}, its gradient's norm {norm}"
        bad = self._group.all_reduce((~losses.isfinite()).double()).nonzero().flatten().tolist()
        if bad:
            rows = share.update.batches[bad[0]].rows
            pairs = ", ".join(str(row + 1) for row in rows[:_NAMED_PAIRS].tolist())
            more = ", ..." if len(rows) > _NAMED_PAIRS else ""
            what += f"; it begins with the batch of training pairs {pairs}{more}"
        return UserError(
            f"{what}: lower the learning rate (train.lr_schedule) or lengthen its warmup"
        )


def for_memory(error: Exception) -> bool:
    """Whether an error tells of memory: CPUs and CUDA have no one kind for it."""
    told = ("can't allocate memory", "out of memory", "ALLOC_FAILED")
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in told)
