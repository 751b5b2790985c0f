"""An update reads nothing of what the device computes, so that the host is always ahead of it."""

from itertools import islice

import pytest
import torch

import systems
from bleuprint.config.optimization import Optimizer
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.batching import Position
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model import packed_kernels
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.training import data_loader
from bleuprint.training.data_loader import local_updates
from bleuprint.training.train_step import TrainStep

# A device without numbers: whatever reads one from it is an error, as is a product with a tensor of
# the CPU.
META = torch.device("meta")
READS = ("item", "tolist", "__float__", "__int__", "__bool__", "__index__", "numpy")


def updates(corpus, device, kind, monkeypatch, **settings):
    """A step on the device, and updates of batches of this kind."""
    monkeypatch.setattr(data_loader, "batch_class", lambda *_: kind)
    system = systems.system(
        model=systems.model(dropout=0.1), train=systems.train(max_tokens=100, **settings)
    )
    torch.manual_seed(3)
    size = len(corpus.segmentation("de").vocabulary)
    group = Group(0, 1, device)
    step = TrainStep(Transformer(system.model, size, size).to(device), system.train, 1, group)
    return step, islice(local_updates(corpus, system, 1, Position(), group), 5)


@pytest.mark.parametrize(
    ("precision", "kind"),
    [("float32", Batch), ("bfloat16", Batch), ("bfloat16", PackedBatch), ("float16", PackedBatch)],
)
def test_an_update_computes_where_nothing_can_be_read(corpus, monkeypatch, precision, kind):
    monkeypatch.setitem(
        packed_kernels._KERNELS, "by sentence", lambda q, k, v, *_: q * k.mean() + v.mean()
    )
    of = torch.Tensor.to
    monkeypatch.setattr(  # but its figures, at the end
        torch.Tensor, "to", lambda x, *to, **how: x if to == ("cpu",) else of(x, *to, **how)
    )
    step, planned = updates(corpus, META, kind, monkeypatch, precision=precision, ema=0.9)
    for number, local in enumerate(planned, 1):
        assert step.update(number, local).figures.device == META


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_updates_are_read_after_others_have_begun(corpus, monkeypatch, optimizer):
    """And no update reads a tensor on the CPU, where each read is possible."""
    given = corpus, torch.device("cpu"), Batch, monkeypatch
    step, planned = updates(*given, optimizer=Optimizer(name=optimizer))
    planned, reads = list(planned), []
    counts = [step._count(local) for local in planned]
    pending = []
    expected = [step.read_stats(step.update(n, local)) for n, local in enumerate(planned, 1)]
    step, _ = updates(*given, optimizer=Optimizer(name=optimizer))
    monkeypatch.setattr(step, "_count", lambda _: counts[len(pending)])
    with monkeypatch.context() as patch:
        for name in READS:
            of = getattr(torch.Tensor, name)
            patch.setattr(torch.Tensor, name, noted(of, reads))
        for number, local in enumerate(planned, 1):
            pending.append(step.update(number, local))
    assert reads == []
    assert [step.read_stats(each) for each in pending] == expected


def noted(of, calls):
    """The method `of`, which notes its calls."""

    def method(*given):
        calls.append(of.__name__)
        return of(*given)

    return method
