"""Batches of few shapes go through the same buffers, as recorded kernels read them."""

import pytest
import torch

import systems
from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model.transformer import Transformer
from bleuprint.training import graphs as graphs_module
from bleuprint.training.train_step import TrainStep
from trainings import ALONE


def batch_of(token, length, count):
    """Make a batch of pairs whose sides repeat one token."""
    sentences = [[token] * length + [2]] * count
    return PackedBatch.from_ids(PairIds(sentences, sentences))


# Two shapes: three batches of four short pairs, and one of 30 longer pairs.
SHAPE_COUNT = 2
BATCHES = [batch_of(5, 3, 4), batch_of(6, 3, 4), batch_of(7, 9, 30), batch_of(8, 3, 4)]


def train_on_batches(monkeypatch, are_recorded):
    """Compute the gradient of BATCHES.

    A batch is recorded if it takes fewer operations than a limit: recording pays for small ones.

    Returns:
        The loss of each batch, and the training step.
    """
    limit = 1e18 if are_recorded else 0
    monkeypatch.setattr("bleuprint.training.train_step._LAUNCH_FLOPS", limit)
    torch.manual_seed(1)
    step = TrainStep(Transformer(systems.model(dropout=0.1), 11, 11), systems.train(), 1, ALONE)
    losses = []
    for number, batch in enumerate(BATCHES):
        losses.append(step.accumulate_gradient([batch], 1, number, 50).item())
    return losses, step


def test_recorded_batches_give_the_same_losses_and_gradient(monkeypatch):
    expected_losses, expected_step = train_on_batches(monkeypatch, are_recorded=False)

    losses, step = train_on_batches(monkeypatch, are_recorded=True)

    assert losses == expected_losses
    assert len(set(losses)) == len(BATCHES)  # Buffers with an old batch would repeat a loss.
    assert torch.equal(step.optimizer.gradient, expected_step.optimizer.gradient)


def test_a_graph_is_recorded_for_each_shape(monkeypatch):
    _, step = train_on_batches(monkeypatch, are_recorded=True)

    assert len(step._graphs._graphs) == SHAPE_COUNT


def test_large_batches_are_not_recorded(monkeypatch):
    _, step = train_on_batches(monkeypatch, are_recorded=False)

    assert not step._graphs._graphs


def test_shapes_beyond_the_maximum_number_of_graphs_are_computed_without_recording(monkeypatch):
    expected_losses, _ = train_on_batches(monkeypatch, are_recorded=False)
    monkeypatch.setattr(graphs_module, "_MAX_GRAPHS", 1)

    losses, step = train_on_batches(monkeypatch, are_recorded=True)

    assert losses == expected_losses
    assert len(step._graphs._graphs) == 1


@pytest.mark.parametrize(("layer_drop", "is_recorded"), [(0.0, True), (0.5, False)])
def test_a_model_with_layer_drop_is_not_recorded(layer_drop, is_recorded):
    """Each update would run other layers than the recorded ones."""
    model = Transformer(systems.model(layer_drop=layer_drop), 11, 11)
    step = TrainStep(model, systems.train(), 1, ALONE)

    step.accumulate_gradient([BATCHES[0]], 1, 0, 50)

    assert bool(step._graphs._graphs) == is_recorded
