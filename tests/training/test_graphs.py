"""Batches of few shapes go through the same buffers, as recorded kernels read them."""

import pytest
import torch

import systems
from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model.transformer import Transformer
from bleuprint.training import graphs as module
from bleuprint.training.train_step import TrainStep
from trainings import ALONE


def batch(first, length, count):
    sentences = [[first] * length + [2]] * count
    return PackedBatch.from_ids(PairIds(sentences, sentences))


BATCHES = [batch(5, 3, 4), batch(6, 3, 4), batch(7, 9, 30), batch(8, 3, 4)]


def gradient(flops, monkeypatch):
    """The losses, the gradient, and the graphs if batches below `flops` are recorded."""
    monkeypatch.setattr("bleuprint.training.train_step._LAUNCH_FLOPS", flops)
    torch.manual_seed(1)
    step = TrainStep(Transformer(systems.model(dropout=0.1), 11, 11), systems.train(), 1, ALONE)
    losses = [step.accumulate_gradient([each], 1, n, 50).item() for n, each in enumerate(BATCHES)]
    return losses, step.optimizer.gradient, step._graphs


def test_recorded_batches_give_the_same_gradient(monkeypatch):
    losses, expected, none = gradient(0, monkeypatch)
    found_losses, found, graphs = gradient(1e18, monkeypatch)
    assert found_losses == losses and len(set(losses)) == len(BATCHES)
    assert torch.equal(found, expected)
    assert len(graphs._graphs) == 2 and not none._graphs


def test_more_shapes_than_are_kept_are_computed_all_the_same(monkeypatch):
    losses, _, _ = gradient(0, monkeypatch)
    monkeypatch.setattr(module, "_MAX_GRAPHS", 1)
    found, _, graphs = gradient(1e18, monkeypatch)
    assert found == losses and len(graphs._graphs) == 1


@pytest.mark.parametrize("layer_drop", [0.0, 0.5])
def test_layers_that_are_drawn_are_not_recorded(layer_drop):
    model = Transformer(systems.model(layer_drop=layer_drop), 11, 11)
    step = TrainStep(model, systems.train(), 1, ALONE)
    step.accumulate_gradient([BATCHES[0]], 1, 0, 50)
    assert bool(step._graphs._graphs) == (not layer_drop)
