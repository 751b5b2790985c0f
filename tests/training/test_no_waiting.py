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

# A device whose tensors have no numbers: to read one is an error, as is a product with a tensor of
# the CPU.
META = torch.device("meta")
CPU = torch.device("cpu")
# The methods of tensors that give numbers to Python, and so wait until a GPU has computed them.
READING_METHODS = ("item", "tolist", "__float__", "__int__", "__bool__", "__index__", "numpy")


def system_of(**train_settings):
    """Return a small system with dropout, and with these settings of its training."""
    train = systems.train(max_tokens=100, **train_settings)
    return systems.system(model=systems.model(dropout=0.1), train=train)


def new_train_step(corpus, system, device):
    """Return the training steps of a new model on a device."""
    torch.manual_seed(3)
    vocabulary_size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(system.model, vocabulary_size, vocabulary_size).to(device)
    return TrainStep(model, system.train, 1, Group(0, 1, device))


def first_updates(corpus, system, device):
    """Return the batches of the first five updates."""
    updates = local_updates(corpus, system, 1, Position(), Group(0, 1, device))
    return list(islice(updates, 5))


def replace_packed_attention(monkeypatch):
    """Let packed batches be computed on any device, by something else than attention.

    The kernels need a GPU.
    """
    monkeypatch.setitem(
        packed_kernels._KERNELS, "by sentence", lambda q, k, v, *_: q * k.mean() + v.mean()
    )


def keep_copies_on_meta(monkeypatch):
    """Leave tensors where they are that should be copied to the CPU.

    An update starts such a copy of its loss and gradient norm at its end, without waiting for it.
    """
    usual_to = torch.Tensor.to

    def to(tensor, *destination, **options):
        if destination == ("cpu",):
            return tensor
        return usual_to(tensor, *destination, **options)

    monkeypatch.setattr(torch.Tensor, "to", to)


@pytest.mark.parametrize(
    ("precision", "batch_class"),
    [
        pytest.param("float32", Batch, id="padded float32"),
        pytest.param("bfloat16", Batch, id="padded bfloat16"),
        pytest.param("bfloat16", PackedBatch, id="packed bfloat16"),
        pytest.param("float16", PackedBatch, id="packed float16"),
    ],
)
def test_updates_are_computed_on_a_device_from_which_nothing_can_be_read(
    corpus, monkeypatch, precision, batch_class
):
    """Tensors on the device `meta` have a shape but no numbers: reading one raises an error.

    On a GPU, reading a number would make the CPU wait for it, and then the GPU wait for the CPU.
    """
    replace_packed_attention(monkeypatch)
    keep_copies_on_meta(monkeypatch)
    monkeypatch.setattr(data_loader, "batch_class", lambda *_: batch_class)
    system = system_of(precision=precision, ema=0.9)
    step = new_train_step(corpus, system, META)

    for number, update in enumerate(first_updates(corpus, system, META), 1):
        pending = step.update(number, update)

        assert pending.loss_norm_scale.device == META


def record_calls(monkeypatch, method_names):
    """Return a list that grows: the name of each method of tensors at each of its calls."""
    calls = []
    for name in method_names:
        method = getattr(torch.Tensor, name)

        def recorded_method(*arguments, name=name, method=method):
            calls.append(name)
            return method(*arguments)

        monkeypatch.setattr(torch.Tensor, name, recorded_method)
    return calls


@pytest.mark.parametrize("optimizer_name", ["adam", "sgd"])
def test_an_update_calls_no_method_that_reads_a_tensor(corpus, monkeypatch, optimizer_name):
    """On a GPU, methods such as `item` and `tolist` wait until all computations have ended."""
    system = system_of(optimizer=Optimizer(name=optimizer_name))
    updates = first_updates(corpus, system, CPU)
    step = new_train_step(corpus, system, CPU)
    # Counting the tokens of an update reads tensors, but these are not computed by the device.
    token_counts = iter([step._count(update) for update in updates])
    monkeypatch.setattr(step, "_count", lambda _: next(token_counts))

    with monkeypatch.context() as patch:
        reading_calls = record_calls(patch, READING_METHODS)
        for number, update in enumerate(updates, 1):
            step.update(number, update)

    assert reading_calls == []


@pytest.mark.parametrize("optimizer_name", ["adam", "sgd"])
def test_statistics_read_after_later_updates_equal_those_read_at_once(corpus, optimizer_name):
    """While a GPU computes, the training starts the next update before it reads the last one."""
    system = system_of(optimizer=Optimizer(name=optimizer_name))
    updates = first_updates(corpus, system, CPU)
    step = new_train_step(corpus, system, CPU)
    stats_read_at_once = []
    for number, update in enumerate(updates, 1):
        stats_read_at_once.append(step.read_stats(step.update(number, update)))

    step = new_train_step(corpus, system, CPU)
    pending_updates = []
    for number, update in enumerate(updates, 1):
        pending_updates.append(step.update(number, update))
    stats_read_later = []
    for pending in pending_updates:
        stats_read_later.append(step.read_stats(pending))

    assert stats_read_later == stats_read_at_once
