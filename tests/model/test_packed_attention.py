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
# Around 32 tokens, which a kernel processes at a time, and multiples of 32.
QUERY_LENGTHS = [1, 5, 31, 32, 33, 70, 64, 17]
KEY_LENGTHS = [7, 1, 40, 32, 90, 3, 65, 16]
LONGEST = 128


@pytest.fixture
def packed_attention(monkeypatch):
    """Return attention by kernels of Triton, on a CPU by its interpreter."""
    if DEVICE.type == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton", reason=GPU)
    from bleuprint.model.packed_attention import packed_attention

    return packed_attention


def sentence_offsets(lengths):
    """Return where each packed sentence begins, and where the last one ends."""
    return torch.tensor([0, *lengths]).cumsum(0).int().to(DEVICE)


def joint_projections(lengths, heads, head_width):
    """Return random queries, keys and values, which are parts of one matrix, as in the model."""
    joint = torch.randn(sum(lengths), 3 * heads * head_width).half().to(DEVICE)
    parts = []
    for part in joint.split(heads * head_width, 1):
        parts.append(part.view(-1, heads, head_width).detach().requires_grad_())
    return parts


def assert_relatively_near(actual, expected):
    """Fail unless a tensor differs from another by less than a thousandth of its norm."""
    difference = actual.double() - expected
    assert difference.norm() < 1e-3 * expected.norm()


@pytest.mark.parametrize(
    ("heads", "head_width", "is_causal"),
    [(2, 16, False), (2, 64, False), (4, 32, True), (2, 128, True)],
)
def test_attention_and_gradients_are_those_of_each_sentence_alone(
    packed_attention, heads, head_width, is_causal
):
    """A batch of eight packed sentences; the reference attends in each alone, in float64.

    Causal attention, of the decoder, has queries and keys of the same sentences.
    """
    torch.manual_seed(1)
    key_lengths = QUERY_LENGTHS if is_causal else KEY_LENGTHS
    query_offsets = sentence_offsets(QUERY_LENGTHS)
    key_offsets = sentence_offsets(key_lengths)
    query = joint_projections(QUERY_LENGTHS, heads, head_width)[0]
    _, key, value = joint_projections(key_lengths, heads, head_width)
    inputs = [query, key, value]
    exact_inputs = [tensor.detach().double().requires_grad_() for tensor in inputs]

    arguments = (*inputs, query_offsets, key_offsets, LONGEST, is_causal)
    outputs, _ = packed_attention(*arguments)
    expected = _attend_by_sentence(
        *exact_inputs, query_offsets, key_offsets, LONGEST, LONGEST, is_causal
    )
    output_gradient = torch.randn_like(outputs)
    gradients = torch.autograd.grad(outputs, inputs, output_gradient)
    expected_gradients = torch.autograd.grad(expected, exact_inputs, output_gradient.double())

    assert_relatively_near(outputs, expected)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert_relatively_near(gradient, expected_gradient)
    # torch.compile needs a correct schema, output shapes and gradient of the operator.
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(packed_attention, arguments, test_utils=checks)
