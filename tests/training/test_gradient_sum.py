"""Gradients are summed in buckets, in one order, while the backward pass goes on."""

import pytest
import torch

import systems
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group, PendingSum
from bleuprint.training import gradient_sum
from bleuprint.training.gradient_sum import GradientSum
from bleuprint.training.loss import batch_loss
from bleuprint.training.optimizer import FlatOptimizer
from trainings import ALONE

IDS = [[4, 5, 6, 2], [7, 2]]


class Beside(Group):
    """With another process that has the same gradient: a sum is twice the vector."""

    def start_all_reduce(self, tensor):
        started.append((tensor.storage_offset(), tensor.numel()))
        tensor.mul_(2)
        return PendingSum()


started: list[tuple[int, int]] = []


@pytest.mark.parametrize("layer_drop", [0.0, 0.5])
@pytest.mark.parametrize("bucket", [1, 3000, 10**9])
def test_each_number_is_summed_once_after_it_is_complete(bucket, layer_drop, monkeypatch):
    monkeypatch.setattr(gradient_sum, "_BUCKET_ELEMENTS", bucket)
    orders, overlapped = set(), []
    for seed in range(4):
        alone, _ = passes(seed, layer_drop, ALONE)
        found, early = passes(seed, layer_drop, Beside(0, 2, torch.device("cpu")))
        torch.testing.assert_close(found, 2 * alone)
        orders.add(tuple(started))
        overlapped.append(early)
    (order,) = orders
    ends = [first + count for first, count in order]
    assert ends[0] == len(found) and ends[1:] == [first for first, _ in order[:-1]]
    assert order[-1][0] == 0
    if layer_drop:
        assert min(overlapped) < len(order)
    else:
        assert {*overlapped} == {len(order)}


def passes(seed, layer_drop, group):
    """The sum of the gradient of two passes, and the buckets that were begun in the second."""
    torch.manual_seed(1)
    model = Transformer(systems.model(encoder_layers=3, layer_drop=layer_drop), 11, 11)
    optimizer, batch = FlatOptimizer(model, systems.train()), Batch.from_ids(PairIds(IDS, IDS))
    summed = GradientSum(optimizer, group)
    started.clear()
    torch.manual_seed(seed)
    batch_loss(model, batch, 0.1).backward()
    assert not started
    summed.overlap()
    batch_loss(model, batch, 0.1).backward()
    early = len(started)
    summed.finish()
    return optimizer.gradient, early
