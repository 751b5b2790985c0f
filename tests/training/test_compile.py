"""Compiled layers are few, whatever the batches, and give what the others give."""

from types import SimpleNamespace

import pytest
import torch

import systems
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model import backends, packed_kernels
from bleuprint.model.transformer import Transformer
from bleuprint.training import train_step
from bleuprint.training.train_step import TrainStep
from trainings import ONE_PROCESS


def pairs_of_lengths(count, source_length, target_length):
    """Return equally long sentence pairs, and one pair of two tokens, for which others are padded.

    Args:
        count: The number of equally long pairs.
        source_length: The number of source tokens of each, without EOS.
        target_length: The number of target tokens of each, without EOS.
    """
    source = [*range(4, 4 + source_length), 2]
    target = [*range(4, 4 + target_length), 2]
    short_sentence = [4, 2]
    return PairIds([source] * count + [short_sentence], [target] * count + [short_sentence])


PAIRS_OF_BATCHES = [
    pairs_of_lengths(7, 9, 12),
    pairs_of_lengths(20, 3, 5),
    pairs_of_lengths(5, 17, 17),
    pairs_of_lengths(30, 12, 4),
    pairs_of_lengths(3, 2, 2),
    pairs_of_lengths(11, 8, 8),
]


def gradient_of(batches, is_compiled):
    """Compute the gradient of some batches, with a new model of five layers."""
    torch.manual_seed(1)
    model = Transformer(systems.model(encoder_layers=3, decoder_layers=2), 37, 37)
    step = TrainStep(model, systems.train(compile=is_compiled), 1, ONE_PROCESS)
    for index, batch in enumerate(batches):
        step.accumulate_gradient([batch], 1, index, 100)
    return step.optimizer.gradient


@pytest.fixture(scope="module", params=[Batch, PackedBatch], ids=["padded", "packed"])
def compiled(request):
    """Compute the gradient of batches of six sizes without compiler and with it.

    Attributes of what it returns:
        batch_class: The class of the batches.
        plain_gradient: The gradient without compiler.
        gradient: The gradient with it.
        graph_count: How many functions the compiler has compiled.
    """
    # The import takes a second, which collecting the tests should not take.
    from torch._dynamo.utils import counters

    batches = [request.param.from_ids(pairs) for pairs in PAIRS_OF_BATCHES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_step, "COMPILER", "eager")
        patch.setattr(train_step, "_LAUNCH_FLOPS", 0)  # No batch is small enough for CUDA graphs.
        # The attention kernels for packed batches need a GPU. This replaces them.
        patch.setitem(
            packed_kernels._KERNELS, "by sentence", lambda q, k, v, *_: q * k.mean() + v.mean()
        )
        torch._dynamo.reset()
        plain_gradient = gradient_of(batches, is_compiled=False)
        counters.clear()
        gradient = gradient_of(batches, is_compiled=True)
    return SimpleNamespace(
        batch_class=request.param,
        plain_gradient=plain_gradient,
        gradient=gradient,
        graph_count=counters["stats"]["unique_graphs"],
    )


def test_compiled_layers_give_the_gradient_of_plain_layers(compiled):
    torch.testing.assert_close(compiled.plain_gradient, compiled.gradient)


def test_layers_are_compiled_once_for_batches_of_all_sizes(compiled):
    """The model has computed six batches of different sizes; compiling for each would take minutes.

    The three encoder layers share their compiled code, and so do the two decoder layers.
    """
    layer_kinds = 2  # encoder layer, decoder layer
    # Padded batches need code for sources with padding and for sources without.
    source_kinds = 1 if compiled.batch_class is PackedBatch else 2

    assert compiled.graph_count == layer_kinds * source_kinds


@pytest.mark.parametrize(
    ("device", "capability", "has_c_compiler", "has_python_headers", "is_compiled"),
    [
        pytest.param("cuda", (9, 0), True, True, True, id="new GPU, compiler and headers"),
        pytest.param("cuda", (6, 0), True, True, False, id="GPU too old for Triton"),
        pytest.param("cuda", (9, 0), False, True, False, id="no C compiler"),
        pytest.param("cuda", (9, 0), True, False, False, id="no headers of Python"),
        pytest.param("cpu", (9, 0), True, True, False, id="CPU"),
    ],
)
def test_models_are_compiled_by_default_on_gpus_for_which_triton_works(
    device, capability, has_c_compiler, has_python_headers, is_compiled, monkeypatch
):
    """Triton builds its GPU programs with a C compiler and the headers of Python."""
    # Simulate a machine on which Triton is installed.
    monkeypatch.setattr(backends, "find_spec", lambda _: True)
    monkeypatch.setattr(backends.Path, "exists", lambda _: has_python_headers)
    monkeypatch.setattr(backends, "which", lambda name: name if has_c_compiler else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)

    assert backends.compiles_by_default(torch.device(device)) == is_compiled
