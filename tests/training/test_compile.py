"""Compiled layers are few, whatever the batches, and give what the others give."""

import pytest
import torch

import systems
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model import backends, packed_kernels
from bleuprint.model.transformer import Transformer
from bleuprint.training import train_step
from bleuprint.training.train_step import TrainStep
from trainings import ALONE

# pairs, and the lengths of their sides: batches with padding and without
SIZES = [(7, 9, 12), (20, 3, 5), (5, 17, 17), (30, 12, 4), (3, 2, 2), (11, 8, 8)]


def pairs(count, source, target):
    sides = ([[*range(4, 4 + n), 2]] * count for n in (source, target))
    shorter = [[4, 2]]
    return PairIds(*([*side, *shorter] for side in sides))


# encoder and decoder layers, of padded batches with a mask and without
@pytest.mark.parametrize(("kind", "graphs"), [(Batch, 4), (PackedBatch, 2)])
def test_batches_of_many_sizes_are_compiled_once(kind, graphs, monkeypatch):
    monkeypatch.setattr(train_step, "COMPILER", "eager")
    monkeypatch.setitem(
        packed_kernels._KERNELS, "by sentence", lambda q, k, v, *_: q * k.mean() + v.mean()
    )
    monkeypatch.setattr(train_step, "_LAUNCH_FLOPS", 0)
    # Loading it takes a second, so that collecting the tests does not.
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    found = []
    for compiled in (False, True):
        torch.manual_seed(1)
        model = Transformer(systems.model(encoder_layers=3, decoder_layers=2), 37, 37)
        step = TrainStep(model, systems.train(compile=compiled), 1, ALONE)
        counters.clear()
        for index, size in enumerate(SIZES):
            step.accumulate_gradient([kind.from_ids(pairs(*size))], 1, index, 100)
        found.append(step.optimizer.gradient)
    torch.testing.assert_close(*found)
    assert counters["stats"]["unique_graphs"] == graphs


@pytest.mark.parametrize(
    ("device", "capability", "compiler", "headers", "expected"),
    [
        ("cuda", (9, 0), True, True, True),
        ("cuda", (6, 0), True, True, False),
        ("cuda", (9, 0), None, True, False),
        ("cuda", (9, 0), True, False, False),
        ("cpu", (9, 0), True, True, False),
    ],
)
def test_gpus_that_the_compiler_knows_compile_by_default(
    device, capability, compiler, headers, expected, monkeypatch
):
    monkeypatch.setattr(backends, "find_spec", lambda _: True)
    monkeypatch.setattr(backends.Path, "exists", lambda _: headers)
    monkeypatch.setattr(backends, "which", lambda name: compiler and name)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert train_step.compiles(torch.device(device)) == expected
