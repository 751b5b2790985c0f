"""The kernels of short sentences; BLEUPRINT_TEST_DEVICE=cpu runs them in Triton's interpreter."""

import os

import pytest
import torch

from bleuprint.model.packed_kernels import _attend_by_sentence
from requirements import GPU, needs

DEVICE = torch.device(os.environ.get("BLEUPRINT_TEST_DEVICE", "cuda"))
pytestmark = [
    pytest.mark.gpu,
    needs(GPU, DEVICE.type != "cuda" or torch.cuda.is_available()),
]
LENGTHS = [1, 5, 31, 32, 33, 70, 64, 17]  # about a tile's 32 and its multiples
OF_KEYS = [7, 1, 40, 32, 90, 3, 65, 16]


@pytest.fixture
def attend(monkeypatch):
    if DEVICE.type == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton", reason=GPU)
    from bleuprint.model.packed_attention import packed_attention

    return packed_attention


@pytest.mark.parametrize(
    ("heads", "size", "causal"), [(2, 16, False), (2, 64, False), (4, 32, True), (2, 128, True)]
)
def test_attention_and_gradients_are_those_of_each_sentence_alone(attend, heads, size, causal):
    torch.manual_seed(1)
    lengths = LENGTHS, (LENGTHS if causal else OF_KEYS)
    offsets = [torch.tensor([0, *side]).cumsum(0).int().to(DEVICE) for side in lengths]
    joint = [torch.randn(sum(side), 3 * heads * size).half().to(DEVICE) for side in lengths]
    inputs = [
        side.split(heads * size, 1)[index].view(-1, heads, size).detach().requires_grad_()
        for index, side in enumerate((joint[0], joint[1], joint[1]))
    ]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    found, _ = attend(*inputs, *offsets, 128, causal)
    expected = _attend_by_sentence(*exact, *offsets, 128, 128, causal)
    gradient = torch.randn_like(found)
    ours = torch.autograd.grad(found, inputs, gradient)
    theirs = torch.autograd.grad(expected, exact, gradient.double())
    given = *inputs, *offsets, 128, causal
    checks = "test_schema", "test_faketensor", "test_autograd_registration"
    torch.library.opcheck(attend, given, test_utils=checks)
    for one, two in zip((found, *ours), (expected, *theirs), strict=True):
        assert (one.double() - two).norm() < 1e-3 * two.norm()
