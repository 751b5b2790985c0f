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

UNITS = 23
# sentences of 1 to 9 tokens, EOS included
PAIRS = PairIds(
    [[*range(4, 4 + n % 9), 2] for n in range(1, 12)],
    [[*range(9, 9 + 2 * n % 9), 2] for n in range(1, 12)],
)


def gradients(model, batch):
    model.zero_grad()
    loss = batch_loss(model, batch, 0.1)
    loss.backward()
    return loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"norm": "pre", "normalization": "rms", "activation": "swiglu"},
        {"positional_encoding": "learned", "max_positions": 9, "tie_embeddings": "none"},
        {"positional_encoding": "none", "output_bias": True, "scale_attention": False},
    ],
)
def test_loss_and_gradients_are_those_of_padded_sentences(shape):
    torch.manual_seed(1)
    model = Transformer(systems.model(encoder_layers=2, **shape), UNITS, UNITS).double()
    expected, theirs = gradients(model, Batch.from_ids(PAIRS))
    found, ours = gradients(model, PackedBatch.from_ids(PAIRS))
    torch.testing.assert_close(found, expected)
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5)


def test_only_what_the_kernel_of_gpus_takes_is_packed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    gpu, capability, bfloat16 = torch.device("cuda"), (9, 0), torch.bfloat16
    model = systems.model()
    assert can_pack(model, bfloat16, gpu) and can_pack(model, torch.float16, gpu)
    assert not can_pack(model, bfloat16, torch.device("cpu"))
    assert not can_pack(model, torch.float32, gpu)
    dropout = Dropout(attention=0.1)
    for other in ({"dropout": dropout}, {"positional_encoding": "rotary"}, {"d_v": 16}, {"d_k": 4}):
        assert not can_pack(dataclasses.replace(model, **other), bfloat16, gpu)
    capability = (7, 5)
    assert not can_pack(model, bfloat16, gpu)


@pytest.mark.parametrize(
    ("size", "longest", "triton", "kernel"),
    [
        (64, 256, True, "ours"),
        (64, 384, True, "torch's"),
        (48, 256, True, "torch's"),
        (64, 256, False, "torch's"),
    ],
)
def test_short_sentences_have_our_kernels(size, longest, triton, kernel, monkeypatch):
    ours = SimpleNamespace(packed_attention=lambda *_: ("ours", None))
    monkeypatch.setitem(sys.modules, "bleuprint.model.packed_attention", ours)
    monkeypatch.setitem(
        sys.modules, FLASH_ATTENTION, SimpleNamespace(varlen_attn=lambda *_, **__: "torch's")
    )
    monkeypatch.setattr(backends, "_HAS_TRITON", triton)
    heads, bounds = [torch.empty(9, 2, size)] * 3, [torch.tensor([0, 9])] * 2
    attend = packed_kernels._KERNELS[backends.packed_kernel("cuda", size, longest)]
    assert attend(*heads, *bounds, 128, longest, True) == kernel
