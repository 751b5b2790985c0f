"""oneDNN's products are torch's own, and so are their gradients."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import requirements
from bleuprint.model import backends
from bleuprint.model import linear as module
from bleuprint.model.linear import Linear, pack_weights
from bleuprint.model.rows import pad_rows, unpad_rows
from bleuprint.runtime import processor
from processors import AMD, INTEL, OLD_AMD, OLD_INTEL

# processors, portable arithmetic, and whether float32 products are then oneDNN's
MULTIPLIERS = [
    (AMD, False, True),
    (AMD, True, True),
    (INTEL, False, False),
    (INTEL, True, True),
    (OLD_AMD, False, True),
    (OLD_INTEL, False, False),
    (OLD_INTEL, True, True),
    (replace(AMD, architecture="aarch64"), False, False),
]


@pytest.fixture(params=MULTIPLIERS, ids=lambda case: f"{case[0].vendor}-{case[1]}")
def by_onednn(request, monkeypatch):
    """Whether oneDNN multiplies in float32, on each of these processors."""
    if not backends.HAS_ONEDNN:
        pytest.skip(requirements.ONEDNN)
    this, is_portable, expected = request.param
    monkeypatch.setattr(processor, "THIS", this)
    monkeypatch.setattr(backends, "IS_PORTABLE", is_portable)
    return expected


def layers(inputs, outputs, bias):
    torch.manual_seed(1)
    ours, theirs = Linear(inputs, outputs, bias=bias), nn.Linear(inputs, outputs, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def inputs(kind, width):
    torch.manual_seed(2)
    made = {
        "rows": lambda: torch.randn(5, width),
        "one": lambda: torch.randn(1, width),
        "none": lambda: torch.randn(0, width),
        "sentences": lambda: torch.randn(3, 4, width),
        "transposed": lambda: torch.randn(width, 6).t(),
        "every other": lambda: torch.randn(8, 2, width)[:, 1],
        "expanded": lambda: torch.randn(1, width).expand(7, width),
    }
    return made[kind]().requires_grad_()


KINDS = ["rows", "one", "none", "sentences", "transposed", "every other", "expanded"]


@pytest.mark.parametrize("this", [AMD, INTEL])
@pytest.mark.parametrize("small", [0, 1 << 17])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_torchs_forward_and_backward(kind, bias, small, this, monkeypatch):
    monkeypatch.setattr(backends, "_MIN_ONEDNN_GRADIENT", {torch.float32: small})
    monkeypatch.setattr(processor, "THIS", this)
    ours, theirs = layers(48, 33, bias)
    found = []
    for layer in (ours, theirs):
        x = inputs(kind, 48)
        y = layer(x)
        leaf = torch.autograd.grad(y.square().sum() + y.sum(), [x, *layer.parameters()])
        found.append([y, *leaf])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two)


def test_few_numbers_of_rows_occur():
    padded = {len(pad_rows(torch.ones(1, rows, 1))) for rows in range(1, 4097)}
    assert len(padded) == 64 + 32 + 32 + 64  # up to 1,024, in steps of 16, then to 4,096
    assert all(rows % 16 == 0 for rows in padded)
    x = torch.randn(5, 7, 3)
    rows = pad_rows(x)
    assert rows.shape == (48, 3) and not rows[35:].any()
    assert torch.equal(unpad_rows(rows, (5, 7)), x)


def test_packed_weights_are_the_same_weights(by_onednn):
    ours, theirs = layers(48, 33, True)
    pack_weights(ours)
    for kind in KINDS:
        x = inputs(kind, 48)
        with torch.inference_mode():
            if by_onednn:
                assert ours.packed is not None and ours.packed.is_mkldnn
            else:
                assert ours.packed is None
            torch.testing.assert_close(ours(x), theirs(x))
        # gradients are of the weight itself
        weights = [torch.autograd.grad(layer(x).sum(), layer.weight) for layer in (ours, theirs)]
        torch.testing.assert_close(*weights)
    assert ours.state_dict().keys() == theirs.state_dict().keys()


def test_who_multiplies(by_onednn, monkeypatch):
    """In float32 oneDNN, on Intel's processors MKL unless arithmetic is portable.

    torch's product in float64, and for gradients of small weights.
    """
    called = []
    product = module._onednn_product

    def counted(*arguments):
        called.append(arguments)
        return product(*arguments)

    monkeypatch.setattr(module, "_onednn_product", counted)
    monkeypatch.setattr(backends, "_MIN_ONEDNN_GRADIENT", {torch.float32: 65})  # more than 8 x 8
    ours, _ = layers(8, 8, True)
    x = torch.randn(2, 8)
    with torch.inference_mode():
        ours(x)
    assert len(called) == 1 * by_onednn
    ours(x.requires_grad_()).sum().backward()
    assert len(called) == 3 * by_onednn
    monkeypatch.setattr(backends, "_MIN_ONEDNN_GRADIENT", {torch.float32: 64})
    ours(x).sum().backward()
    assert len(called) == 6 * by_onednn
    assert ours.double()(x.double()).dtype == torch.float64
    assert len(called) == 6 * by_onednn


@pytest.mark.parametrize(
    ("this", "expected"),
    [(AMD, True), (INTEL, True), (OLD_AMD, False), (OLD_INTEL, False)],
)
def test_onednn_multiplies_in_bfloat16_where_the_processor_does(this, expected, monkeypatch):
    monkeypatch.setattr(backends, "HAS_ONEDNN", True)
    monkeypatch.setattr(processor, "THIS", this)
    assert backends.onednn_multiplies(torch.bfloat16) == expected
    assert not backends.onednn_multiplies(torch.float16)


@pytest.mark.parametrize("this", [AMD, INTEL])
@pytest.mark.parametrize("rows", [slice(0, 10), slice(10, None)], ids=["first", "last"])
def test_parts_of_a_matrix_are_taken(rows, this, monkeypatch):
    """Keys and values are computed by the last rows of the joint matrix."""
    monkeypatch.setattr(processor, "THIS", this)
    torch.manual_seed(3)
    weight, bias, x = torch.randn(30, 8), torch.randn(30), torch.randn(4, 8)
    found = module.linear(x, weight[rows], bias[rows])
    torch.testing.assert_close(found, x @ weight[rows].T + bias[rows])
