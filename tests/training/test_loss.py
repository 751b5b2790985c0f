"""The loss of a projection and cross-entropy: against torch's functions, and by hand."""

import ctypes
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.linear import Linear
from bleuprint.model.rows import aligned_rows
from bleuprint.training import loss as module
from bleuprint.training.loss import linear_cross_entropy

pytestmark = pytest.mark.usefixtures("with_and_without_native")


def smoothed_loss(logits, labels, smoothing, target="uniform"):
    """Return bleuprint's loss of logits; the projection is the identity matrix."""
    size = logits.size(1)
    projection = Linear(size, size, bias=False).to(logits.dtype)
    projection.weight.data = torch.eye(size, dtype=logits.dtype)
    return linear_cross_entropy(logits, projection, labels, smoothing, target)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("rows_per_block", [1, 3, 100])
def test_a_loss_computed_in_blocks_of_rows_has_torchs_value_and_gradients(
    rows_per_block, bias, monkeypatch
):
    """To save memory, the logits of eight rows are computed in blocks of 1, 3 or all rows."""
    vocabulary_size = 11
    bytes_per_row = vocabulary_size * 4  # float32
    monkeypatch.setattr(module, "_BLOCK_BYTES", {"cpu": rows_per_block * bytes_per_row})
    torch.manual_seed(1)
    projection = Linear(6, vocabulary_size, bias=bias)
    hidden = torch.randn(8, 6, requires_grad=True)
    labels = torch.randint(1, vocabulary_size, (8,))
    inputs = [hidden, *projection.parameters()]

    logits = functional.linear(hidden, projection.weight, projection.bias)
    torch_loss = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    loss = linear_cross_entropy(hidden, projection, labels, 0.1)

    torch.testing.assert_close(loss, torch_loss)
    # Division by 7 makes the gradient that arrives at the loss 1/7, which must not be taken for 1.
    torch_gradients = torch.autograd.grad(torch_loss / 7, inputs)
    gradients = torch.autograd.grad(loss / 7, inputs)
    for gradient, torch_gradient in zip(gradients, torch_gradients, strict=True):
        torch.testing.assert_close(gradient, torch_gradient)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3, 0.9])
def test_each_label_smoothing_gives_torchs_loss_and_gradient(smoothing):
    """Eight random rows of logits, for a vocabulary of 11 tokens."""
    torch.manual_seed(2)
    logits = torch.randn(8, 11, requires_grad=True)
    labels = torch.randint(1, 11, (8,))

    torch_loss = functional.cross_entropy(
        logits,
        labels,
        label_smoothing=smoothing,
        reduction="sum",
    )
    loss = smoothed_loss(logits, labels, smoothing)

    torch.testing.assert_close(loss, torch_loss)
    (gradient,) = torch.autograd.grad(loss, logits)
    (torch_gradient,) = torch.autograd.grad(torch_loss, logits)
    torch.testing.assert_close(gradient, torch_gradient)


@pytest.mark.parametrize("vocabulary_size", [15, 16, 1001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_loss_and_gradient_agree_with_torchs_in_float64(dtype, vocabulary_size):
    """The projection is the identity matrix, so that the hidden values are the logits."""
    torch.manual_seed(1)
    logits = (10 * torch.randn(33, vocabulary_size)).to(dtype).requires_grad_()
    labels = torch.randint(0, vocabulary_size, (33,))  # PAD, number 0, is also a valid label.
    projection = Linear(vocabulary_size, vocabulary_size, bias=False)
    projection.weight.data = torch.eye(vocabulary_size)
    projection.copies = torch.eye(vocabulary_size, dtype=dtype), None

    exact_logits = logits.detach().double().requires_grad_()
    exact_loss = functional.cross_entropy(
        exact_logits, labels, label_smoothing=0.1, reduction="sum"
    )
    loss = linear_cross_entropy(logits, projection, labels, 0.1)
    exact_loss.backward()
    loss.backward()

    torch.testing.assert_close(loss.double(), exact_loss, rtol=1e-6, atol=0)
    # The gradient has the format of the logits: bfloat16 keeps 8 bits of each number.
    rounding = 1e-5 if dtype == torch.float32 else 0.01
    torch.testing.assert_close(logits.grad.double(), exact_logits.grad, rtol=rounding, atol=1e-6)


@pytest.mark.parametrize("bad_logit", [math.nan, math.inf])
def test_the_loss_is_not_finite_if_a_logit_is_not_finite(bad_logit):
    loss = smoothed_loss(torch.tensor([[0.0, bad_logit, 1.0]]), torch.tensor([1]), 0.1)

    assert not loss.isfinite()


def test_the_loss_of_3000_bfloat16_rows_is_summed_in_float32():
    """A sum in bfloat16, of 8 bits, would stop growing after a few hundred rows.

    All rows are equal, so loss and gradient are those of one row times the number of rows.
    """
    row_count = 3000
    # Logits 0 and ln 3 of two tokens: probabilities 1/4 and 3/4.
    row_logits = torch.tensor([[0.0, math.log(3)]], dtype=torch.bfloat16)
    labels = torch.ones(row_count, dtype=torch.long)  # always the second token
    projection = Linear(2, 2, bias=False)
    projection.weight.data = torch.eye(2)
    projection.copies = projection.weight.detach().bfloat16(), None

    loss = linear_cross_entropy(
        row_logits.repeat(row_count, 1).requires_grad_(), projection, labels, 0.0
    )
    loss.backward()

    weight_gradient = projection.weight.grad
    assert loss.dtype == weight_gradient.dtype == torch.float32
    assert loss.item() == pytest.approx(-row_count * math.log(3 / 4), rel=1e-2)
    # Each row adds (probability - 1) x hidden value, for the label's logit.
    expected_gradient = row_count * (3 / 4 - 1) * math.log(3)
    assert weight_gradient[1, 1].item() == pytest.approx(expected_gradient, rel=1e-2)


@pytest.mark.parametrize("smoothing", [0.1, 0.3])
def test_label_smoothing_over_non_targets_is_that_of_the_annotated_transformer(smoothing):
    """The Annotated Transformer divides the smoothed mass among tokens other than label and PAD.

    Its KL divergence is the cross-entropy minus the entropy of the smoothed labels.
    """
    vocabulary_size = 11
    torch.manual_seed(1)
    logits = torch.randn(7, vocabulary_size, requires_grad=True)
    labels = torch.randint(1, vocabulary_size, (7,))
    other_tokens = vocabulary_size - 2  # all but label and PAD
    smoothed_labels = torch.full((7, vocabulary_size), smoothing / other_tokens)
    smoothed_labels.scatter_(1, labels[:, None], 1 - smoothing)
    smoothed_labels[:, PAD] = 0.0

    divergence = torch.nn.KLDivLoss(reduction="sum")(logits.log_softmax(-1), smoothed_labels)
    entropy = -(smoothed_labels * smoothed_labels.clamp(min=1e-30).log()).sum()
    loss = smoothed_loss(logits, labels, smoothing, "non_target")

    torch.testing.assert_close(loss, divergence + entropy)
    gradient = torch.autograd.grad(loss, logits)
    expected_gradient = torch.autograd.grad(divergence, logits)
    torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("target", ["uniform", "non_target"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_gpu_loss_ignores_padding_rows_and_columns_and_equals_the_cpu_loss(smoothing, target):
    """GPUs compute with row and column counts that are multiples of 8, so both are filled up."""
    vocabulary_size = 13
    torch.manual_seed(1)
    logits = 5 * torch.randn(9, vocabulary_size, dtype=torch.float64)
    labels = torch.randint(1, vocabulary_size, (9,))
    logits.requires_grad_()
    cpu_loss = smoothed_loss(logits, labels, smoothing, target)
    (cpu_gradient,) = torch.autograd.grad(cpu_loss, logits)
    three_columns_two_rows = (0, 3, 0, 2)  # as torch's `pad` expects it: 13 + 3, 9 + 2

    gpu_loss, gpu_gradient = module.plain_loss(
        functional.pad(logits.detach(), three_columns_two_rows, value=7.0),
        functional.pad(labels, (0, 2), value=PAD),
        vocabulary_size,
        module._target_distribution(vocabulary_size, smoothing, target),
    )

    torch.testing.assert_close(gpu_loss, cpu_loss.detach())
    # The gradient of padding is 0.
    torch.testing.assert_close(gpu_gradient, functional.pad(cpu_gradient, three_columns_two_rows))


def test_rows_of_a_view_are_extended_to_a_multiple_of_64_from_the_memory_behind_it():
    """Products with 64, 128, ... rows are faster; the extra rows contain whatever follows."""
    columns = 3
    start = 30
    storage = torch.arange(200.0 * columns)
    matrix_of_65_rows = storage[start : start + 65 * columns].view(65, columns)

    extended = aligned_rows(matrix_of_65_rows)

    matrix_of_128_rows = storage[start : start + 128 * columns].view(128, columns)
    assert torch.equal(extended, matrix_of_128_rows)


def test_a_view_of_a_vector_is_extended_to_a_multiple_of_64():
    storage = torch.arange(600.0)

    assert torch.equal(aligned_rows(storage[530:550]), storage[530 : 530 + 64])


def test_a_matrix_without_memory_behind_it_is_not_extended():
    matrix = torch.ones(65, 3)

    assert aligned_rows(matrix) is matrix


def test_a_matrix_of_64_rows_is_not_extended():
    matrix = torch.ones(64, 3)

    assert torch.equal(aligned_rows(matrix), matrix)


def test_the_target_distribution_stays_in_memory_while_cpp_reads_it(monkeypatch):
    """Memory freed too early would be reused by another thread, and C++ would read its numbers.

    In place of the C++ function, a Python function allocates arrays of the same size, as another
    thread would, and then reads the three probabilities through their address.
    """
    distribution = module._target_distribution(11, 0.1, "uniform")
    read_distributions = []

    def cross_entropy(_logits, _is_bfloat16, _labels, _rows, _columns, probabilities, _threads):
        arrays_of_other_threads = [np.full(3, 9.0) for _ in range(100)]
        address = ctypes.cast(probabilities, ctypes.POINTER(ctypes.c_double))
        read_distributions.append(tuple(address[:3]))
        return float(len(arrays_of_other_threads))

    library = SimpleNamespace(cross_entropy=cross_entropy)
    monkeypatch.setattr(module.native, "library", lambda: library)

    module._native_loss(torch.randn(8, 11), torch.randint(1, 11, (8,)), distribution)

    assert read_distributions == [tuple(distribution)]
