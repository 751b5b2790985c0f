"""Gradients are summed in buckets, in one order, while the backward pass goes on."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import systems
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group, PendingSum
from bleuprint.training import gradient_sum
from bleuprint.training.gradient_sum import GradientSum
from bleuprint.training.loss import batch_loss
from bleuprint.training.optimizer import FlatOptimizer
from trainings import ONE_PROCESS


@dataclass(frozen=True)
class Bucket:
    """A part of the gradient: numbers `start` to `end`."""

    start: int
    end: int


class GroupOfTwins(Group):
    """A process with a twin that has the same gradient, so that a sum is twice the gradient.

    Attributes:
        buckets: The buckets whose sum has started.
    """

    def __init__(self):
        super().__init__(0, 2, torch.device("cpu"))
        self.buckets = []

    def start_all_reduce(self, tensor):
        start = tensor.storage_offset()
        self.buckets.append(Bucket(start, start + tensor.numel()))
        tensor.mul_(2)
        return PendingSum()


@dataclass(frozen=True)
class TwoPasses:
    """The result of two backward passes, the second of which overlaps with the sum.

    Attributes:
        gradient: The gradient after the sum.
        buckets: The buckets in the order in which their sums started.
        overlapped_count: How many of them started before the second backward pass had ended.
    """

    gradient: Tensor
    buckets: list[Bucket]
    overlapped_count: int


def run_two_passes(seed, layer_drop, group):
    """Compute the gradient of two passes of a batch in a group.

    Args:
        seed: The seed that decides which layers are dropped.
        layer_drop: The probability that a layer is skipped.
        group: The group of processes.
    """
    torch.manual_seed(1)
    model = Transformer(systems.model(encoder_layers=3, layer_drop=layer_drop), 11, 11)
    optimizer = FlatOptimizer(model, systems.train())
    sentences = [[4, 5, 6, 2], [7, 2]]
    batch = Batch.from_ids(PairIds(sentences, sentences))
    buckets = getattr(group, "buckets", [])
    gradient_sum = GradientSum(optimizer, group)
    torch.manual_seed(seed)
    batch_loss(model, batch, 0.1).backward()
    assert not buckets  # The gradient of the first pass is not complete.
    gradient_sum.overlap()
    batch_loss(model, batch, 0.1).backward()
    overlapped_count = len(buckets)
    gradient_sum.finish()
    return TwoPasses(optimizer.gradient, list(buckets), overlapped_count)


layer_drops = pytest.mark.parametrize("layer_drop", [0.0, 0.5])
seeds = pytest.mark.parametrize("seed", range(4))


@pytest.fixture(params=[1, 3000, 10**9], autouse=True)
def _bucket_elements(request, monkeypatch):
    """The minimum size of a bucket: each weight alone, several weights, and one bucket for all."""
    monkeypatch.setattr(gradient_sum, "_BUCKET_ELEMENTS", request.param)


@layer_drops
@seeds
def test_the_sum_of_two_processes_with_the_same_gradient_is_twice_the_gradient(seed, layer_drop):
    """The second process is simulated: it has the same gradient of two passes as the first."""
    from_one_process = run_two_passes(seed, layer_drop, ONE_PROCESS)
    summed = run_two_passes(seed, layer_drop, GroupOfTwins())

    torch.testing.assert_close(summed.gradient, 2 * from_one_process.gradient)


@layer_drops
@seeds
def test_the_buckets_cover_the_gradient_once_from_its_end_to_its_start(seed, layer_drop):
    """The backward pass computes the last layers first, so their numbers are summed first.

    A number in two buckets would be summed twice; one in no bucket would differ between processes.
    """
    passes = run_two_passes(seed, layer_drop, GroupOfTwins())

    expected_end = len(passes.gradient)
    for bucket in passes.buckets:
        assert bucket.end == expected_end
        expected_end = bucket.start
    assert expected_end == 0


@layer_drops
def test_the_order_of_buckets_does_not_depend_on_the_dropped_layers(layer_drop):
    """Processes that sum buckets in different orders would wait for each other for ever."""
    orders = [run_two_passes(seed, layer_drop, GroupOfTwins()).buckets for seed in range(4)]

    assert orders == [orders[0]] * 4


@seeds
def test_without_layer_drop_all_sums_start_during_the_backward_pass(seed):
    passes = run_two_passes(seed, 0.0, GroupOfTwins())

    assert passes.overlapped_count == len(passes.buckets)


def test_with_layer_drop_some_sums_start_after_the_backward_pass():
    """A dropped layer computes no gradient, so its sum waits for the end of the pass.

    Each of the four seeds drops other layers; at least one of them drops any.
    """
    late_counts = []
    for seed in range(4):
        passes = run_two_passes(seed, layer_drop=0.5, group=GroupOfTwins())
        sums_after_the_pass = len(passes.buckets) - passes.overlapped_count
        late_counts.append(sums_after_the_pass)

    assert max(late_counts) > 0
