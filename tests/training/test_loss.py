"""The loss by hand."""

import math

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
    """The loss of given logits: of a projection that changes nothing."""
    size = logits.size(1)
    projection = Linear(size, size, bias=False).to(logits.dtype)
    projection.weight.data = torch.eye(size, dtype=logits.dtype)
    return linear_cross_entropy(logits, projection, labels, smoothing, target)


# two tokens with logits 0 and ln 3: probabilities 1/4 and 3/4
LOGITS = torch.tensor([[0.0, math.log(3)]])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_blocks_of_any_size_give_torchs_loss_and_gradients(rows, bias, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_BYTES", {"cpu": rows * 11 * 4})
    torch.manual_seed(1)
    projection = Linear(6, 11, bias=bias)
    hidden, labels = torch.randn(8, 6, requires_grad=True), torch.randint(1, 11, (8,))
    inputs = [hidden, *projection.parameters()]
    logits = functional.linear(hidden, projection.weight, projection.bias)
    theirs = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    ours = linear_cross_entropy(hidden, projection, labels, 0.1)
    torch.testing.assert_close(ours, theirs)
    expected = torch.autograd.grad(theirs / 7, inputs)
    for one, two in zip(torch.autograd.grad(ours / 7, inputs), expected, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3, 0.9])
def test_each_label_smoothing_gives_torchs_loss_and_gradient(smoothing):
    torch.manual_seed(2)
    logits = torch.randn(8, 11, requires_grad=True)
    labels = torch.randint(1, 11, (8,))
    theirs = functional.cross_entropy(
        logits,
        labels,
        label_smoothing=smoothing,
        reduction="sum",
    )
    ours = smoothed_loss(logits, labels, smoothing)
    torch.testing.assert_close(ours, theirs)
    (our_gradient,) = torch.autograd.grad(ours, logits)
    (their_gradient,) = torch.autograd.grad(theirs, logits)
    torch.testing.assert_close(our_gradient, their_gradient)


@pytest.mark.parametrize("size", [15, 16, 1001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_vocabulary_loses_no_digit(dtype, size):
    torch.manual_seed(1)
    logits = (10 * torch.randn(33, size)).to(dtype).requires_grad_()
    labels = torch.randint(0, size, (33,))  # a label may be padding's number
    projection = Linear(size, size, bias=False)
    projection.weight.data = torch.eye(size)
    projection.copies = torch.eye(size, dtype=dtype), None
    exact = logits.detach().double().requires_grad_()
    theirs = functional.cross_entropy(exact, labels, label_smoothing=0.1, reduction="sum")
    ours = linear_cross_entropy(logits, projection, labels, 0.1)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-6, atol=0)
    theirs.backward()
    ours.backward()
    rounding = 1e-5 if dtype == torch.float32 else 0.01
    torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=rounding, atol=1e-6)


def test_a_logit_that_is_no_number_is_a_loss_that_is_none():
    for bad in (math.nan, math.inf):
        loss = smoothed_loss(torch.tensor([[0.0, bad, 1.0]]), torch.tensor([1]), 0.1)
        assert not loss.isfinite()


def test_half_precision_logits_lose_nothing_in_the_sum():
    projection = Linear(2, 2, bias=False)
    projection.weight.data = torch.eye(2)
    projection.copies = projection.weight.detach().bfloat16(), None
    hidden = LOGITS.to(torch.bfloat16).repeat(3000, 1).requires_grad_()
    value = linear_cross_entropy(hidden, projection, torch.ones(3000, dtype=torch.long), 0.0)
    value.backward()
    assert value.dtype == projection.weight.grad.dtype == torch.float32
    assert value.item() == pytest.approx(-3000 * math.log(3 / 4), rel=1e-2)
    # 3000 times -1/4 for the label, whose hidden states are about (0, ln 3)
    assert projection.weight.grad[1, 1].item() == pytest.approx(-750 * math.log(3), rel=1e-2)


@pytest.mark.parametrize("smoothing", [0.1, 0.3])
def test_smoothing_over_the_others_is_the_annotated_transformers(smoothing):
    # whose divergence from the smoothed target is cross-entropy less the target's entropy
    torch.manual_seed(1)
    logits, targets = torch.randn(7, 11, requires_grad=True), torch.randint(1, 11, (7,))
    smoothed = torch.full((7, 11), smoothing / 9)
    smoothed.scatter_(1, targets[:, None], 1 - smoothing)
    smoothed[:, PAD] = 0.0
    divergence = torch.nn.KLDivLoss(reduction="sum")(logits.log_softmax(-1), smoothed)
    entropy = -(smoothed * smoothed.clamp(min=1e-30).log()).sum()
    ours = smoothed_loss(logits, targets, smoothing, "non_target")
    torch.testing.assert_close(ours, divergence + entropy)
    found, expected = (torch.autograd.grad(loss, logits) for loss in (ours, divergence))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("target", ["uniform", "non_target"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_the_loss_of_gpus_is_that_of_cpus(smoothing, target):
    """But for labels that are PAD, and columns that fill up the vocabulary."""
    torch.manual_seed(1)
    logits, labels = 5 * torch.randn(9, 13, dtype=torch.float64), torch.randint(1, 13, (9,))
    logits.requires_grad_()
    expected = smoothed_loss(logits, labels, smoothing, target)
    (gradient,) = torch.autograd.grad(expected, logits)
    wider = functional.pad(logits.detach(), (0, 3, 0, 2), value=7.0)
    padded = functional.pad(labels, (0, 2), value=PAD)
    found, ours = module.plain_loss(
        wider, padded, 13, module._target_distribution(13, smoothing, target)
    )
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(ours, functional.pad(gradient, (0, 3, 0, 2)))


def test_rows_are_filled_up_where_the_memory_has_room():
    vector = torch.arange(200 * 3.0)
    matrix = vector[30 : 30 + 65 * 3].view(65, 3)
    assert torch.equal(aligned_rows(matrix), vector[30 : 30 + 128 * 3].view(128, 3))
    assert torch.equal(aligned_rows(vector[530:550]), vector[530:594])
    assert aligned_rows(alone := torch.ones(65, 3)) is alone
    assert torch.equal(aligned_rows(whole := torch.ones(64, 3)), whole)
