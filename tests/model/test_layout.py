"""Packed sentences are computed as padded ones are."""

import dataclasses
import sys
from types import SimpleNamespace

import pytest
import torch

import systems
from bleuprint.config.system import Dropout
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model import backends, packed_kernels
from bleuprint.model.backends import FLASH_ATTENTION, can_pack
from bleuprint.model.transformer import Transformer
from bleuprint.training.loss import batch_loss

VOCABULARY_SIZE = 23
EOS = 2


def sentence_pairs():
    """Return 11 pairs of 1 to 9 tokens with EOS; the lengths of a pair mostly differ."""
    sources = []
    targets = []
    for number in range(1, 12):
        sources.append([*range(4, 4 + number % 9), EOS])
        targets.append([*range(9, 9 + 2 * number % 9), EOS])
    return PairIds(sources, targets)


def loss_and_gradients(model, batch):
    """Return the loss of a batch, and its gradient by each parameter."""
    model.zero_grad()
    loss = batch_loss(model, batch, 0.1)
    loss.backward()
    return loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="default"),
        pytest.param(
            {"norm": "pre", "normalization": "rms", "activation": "swiglu"},
            id="pre norm, rms, swiglu",
        ),
        pytest.param(
            {"positional_encoding": "learned", "max_positions": 9, "tie_embeddings": "none"},
            id="learned positions, separate embeddings",
        ),
        pytest.param(
            {"positional_encoding": "none", "output_bias": True, "scale_attention": False},
            id="no positions, output bias, unscaled attention",
        ),
    ],
)
def test_packed_sentences_have_the_loss_and_gradients_of_padded_ones(changes):
    """Packed sentences stand one after the other; padded ones each in a row of the longest."""
    torch.manual_seed(1)
    settings = systems.model(encoder_layers=2, **changes)
    model = Transformer(settings, VOCABULARY_SIZE, VOCABULARY_SIZE).double()
    pairs = sentence_pairs()

    padded_loss, padded_gradients = loss_and_gradients(model, Batch.from_ids(pairs))
    packed_loss, packed_gradients = loss_and_gradients(model, PackedBatch.from_ids(pairs))

    torch.testing.assert_close(packed_loss, padded_loss)
    for packed, padded in zip(packed_gradients, padded_gradients, strict=True):
        torch.testing.assert_close(packed, padded, atol=1e-6, rtol=1e-5)


GPU = torch.device("cuda")


@pytest.fixture
def ampere_or_newer(monkeypatch):
    """Have torch describe a GPU of compute capability 9.0."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))


@pytest.mark.usefixtures("ampere_or_newer")
@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16], ids=str)
def test_sentences_are_packed_on_gpus_in_half_precision(precision):
    assert can_pack(systems.model(), precision, GPU)


@pytest.mark.usefixtures("ampere_or_newer")
@pytest.mark.parametrize(
    ("changes", "precision", "device"),
    [
        pytest.param({}, torch.bfloat16, torch.device("cpu"), id="on a CPU"),
        pytest.param({}, torch.float32, GPU, id="float32"),
        pytest.param({"dropout": Dropout(attention=0.1)}, torch.bfloat16, GPU, id="dropout"),
        pytest.param({"positional_encoding": "rotary"}, torch.bfloat16, GPU, id="rotary"),
        pytest.param({"d_v": 16}, torch.bfloat16, GPU, id="wider values than keys"),
        pytest.param({"d_k": 4}, torch.bfloat16, GPU, id="narrower keys than values"),
    ],
)
def test_sentences_are_padded_where_flash_attention_lacks_something(changes, precision, device):
    """Packed sentences need a GPU's flash attention, which lacks each of these cases."""
    model_settings = dataclasses.replace(systems.model(), **changes)

    assert not can_pack(model_settings, precision, device)


def test_sentences_are_not_packed_on_gpus_before_ampere(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))

    assert not can_pack(systems.model(), torch.bfloat16, GPU)


@pytest.mark.parametrize(
    ("head_width", "longest_sentence", "has_triton", "expected_kernel"),
    [
        pytest.param(64, 256, True, "bleuprint's", id="short sentences"),
        pytest.param(64, 384, True, "torch's", id="long sentences"),
        pytest.param(48, 256, True, "torch's", id="width that is no power of 2"),
        pytest.param(64, 256, False, "torch's", id="without Triton"),
    ],
)
def test_short_packed_sentences_are_attended_to_by_kernels_of_this_project(
    head_width, longest_sentence, has_triton, expected_kernel, monkeypatch
):
    """Both kernels are replaced by functions that return their name, since they need a GPU."""
    our_module = SimpleNamespace(packed_attention=lambda *_: ("bleuprint's", None))
    torch_module = SimpleNamespace(varlen_attn=lambda *_, **__: "torch's")
    monkeypatch.setitem(sys.modules, "bleuprint.model.packed_attention", our_module)
    monkeypatch.setitem(sys.modules, FLASH_ATTENTION, torch_module)
    monkeypatch.setattr(backends, "_HAS_TRITON", has_triton)
    query = key = value = torch.empty(9, 2, head_width)
    sentence_bounds = torch.tensor([0, 9])

    kernel_name = backends.packed_kernel("cuda", head_width, longest_sentence)
    attend = packed_kernels._KERNELS[kernel_name]
    output = attend(
        query, key, value, sentence_bounds, sentence_bounds, 128, longest_sentence, True
    )

    assert output == expected_kernel
