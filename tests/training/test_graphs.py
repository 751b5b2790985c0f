"""Batches of few shapes go through the same buffers, as recorded kernels read them."""

import pytest
import torch

import systems
from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model.transformer import Transformer
from bleuprint.training import graphs as graphs_module
from bleuprint.training.train_step import TrainStep
from own_code import write_module
from trainings import ONE_PROCESS


def batch_of(token, length, count):
    """Make a batch of pairs whose sides repeat one token."""
    sentences = [[token] * length + [2]] * count
    return PackedBatch.from_ids(PairIds(sentences, sentences))


def three_short_batches_and_a_long_one():
    """Make four batches of two shapes: three of four short pairs, and one of 30 longer pairs."""
    return [
        batch_of(token=5, length=3, count=4),
        batch_of(token=6, length=3, count=4),
        batch_of(token=7, length=9, count=30),
        batch_of(token=8, length=3, count=4),
    ]


def train_on_batches(monkeypatch, batches, are_recorded):
    """Compute the gradient of some batches, with dropout.

    A batch is recorded if it takes fewer operations than a limit: recording pays for small ones.

    Args:
        monkeypatch: The fixture of pytest.
        batches: The batches.
        are_recorded: Whether all batches or none are below the limit.

    Returns:
        The loss of each batch, and the training step.
    """
    limit = 1e18 if are_recorded else 0
    monkeypatch.setattr("bleuprint.training.train_step._LAUNCH_FLOPS", limit)
    torch.manual_seed(1)
    step = TrainStep(
        Transformer(systems.model(dropout=0.1), 11, 11), systems.train(), 1, ONE_PROCESS
    )
    losses = []
    for number, batch in enumerate(batches):
        losses.append(step.accumulate_gradient([batch], 1, number, 50).item())
    return losses, step


def test_recorded_batches_give_the_same_losses_and_gradient(monkeypatch):
    """Batches of one shape are copied into the buffers that the recorded kernels read."""
    batches = three_short_batches_and_a_long_one()
    expected_losses, expected_step = train_on_batches(monkeypatch, batches, are_recorded=False)

    losses, step = train_on_batches(monkeypatch, batches, are_recorded=True)

    assert losses == expected_losses
    # A buffer that still contained an earlier batch would repeat the loss of that batch.
    assert len(set(losses)) == len(batches)
    assert torch.equal(step.optimizer.gradient, expected_step.optimizer.gradient)


def test_a_graph_is_recorded_for_each_shape(monkeypatch):
    """Three of the four batches have one shape, and share its graph of recorded kernels."""
    batches = three_short_batches_and_a_long_one()
    shape_count = 2

    _, step = train_on_batches(monkeypatch, batches, are_recorded=True)

    assert len(step._graphs._graphs) == shape_count


def test_large_batches_are_not_recorded(monkeypatch):
    """The limit is 0 operations, so that all batches are too large to be recorded."""
    batches = three_short_batches_and_a_long_one()

    _, step = train_on_batches(monkeypatch, batches, are_recorded=False)

    assert len(step._graphs._graphs) == 0


def test_shapes_beyond_the_maximum_number_of_graphs_are_computed_without_recording(monkeypatch):
    """Recorded graphs take memory. Of the two shapes here, only the first is recorded."""
    batches = three_short_batches_and_a_long_one()
    expected_losses, _ = train_on_batches(monkeypatch, batches, are_recorded=False)
    monkeypatch.setattr(graphs_module, "_MAX_GRAPHS", 1)

    losses, step = train_on_batches(monkeypatch, batches, are_recorded=True)

    assert losses == expected_losses
    assert len(step._graphs._graphs) == 1


@pytest.mark.parametrize(("layer_drop", "expected_graphs"), [(0.0, 1), (0.5, 0)])
def test_only_models_without_layer_drop_are_recorded(layer_drop, expected_graphs):
    """Layer drop skips other layers in each update; a recording would repeat those of the first."""
    model = Transformer(systems.model(layer_drop=layer_drop), 11, 11)
    step = TrainStep(model, systems.train(), 1, ONE_PROCESS)

    step.accumulate_gradient([batch_of(token=5, length=3, count=4)], 1, 0, 50)

    assert len(step._graphs._graphs) == expected_graphs


OWN_PART = """\
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, settings, kind):
        super().__init__()
        self.linear = nn.Linear(settings.d_model, settings.d_model)

    def forward(self, x):
        return self.linear(x)
"""


def test_models_with_own_code_are_not_recorded(tmp_path, monkeypatch):
    """Own code may decide in Python what it computes; a recording would repeat one decision."""
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, "part", OWN_PART)
    model = Transformer(systems.model(feed_forward="own.part"), 11, 11)
    step = TrainStep(model, systems.train(), 1, ONE_PROCESS)

    step.accumulate_gradient([batch_of(token=5, length=3, count=4)], 1, 0, 50)

    assert len(step._graphs._graphs) == 0
