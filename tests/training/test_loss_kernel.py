"""The kernel of the loss; BLEUPRINT_TEST_DEVICE=cpu runs it in Triton's interpreter."""

import os

import pytest
import torch

from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.training.loss import TargetDistribution, _target_distribution, plain_loss
from requirements import GPU, needs

DEVICE = torch.device(os.environ.get("BLEUPRINT_TEST_DEVICE", "cuda"))
pytestmark = [
    pytest.mark.gpu,
    needs(GPU, DEVICE.type != "cuda" or torch.cuda.is_available()),
]


@pytest.fixture
def fused_loss(monkeypatch):
    """Return the function that computes the loss by one Triton kernel."""
    if DEVICE.type == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton", reason=GPU)
    from bleuprint.training.loss_kernel import fused_loss

    return fused_loss


@pytest.mark.parametrize(
    ("vocabulary_size", "columns"),
    [
        # A program of the kernel reads 4,096 logits at once.
        pytest.param(13, 16, id="fewer logits than a program reads at once"),
        pytest.param(4096, 4096, id="as many logits as a program reads at once"),
        pytest.param(9001, 9024, id="more logits than a program reads at once"),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float16, 1e-3)], ids=["32", "16"]
)
@pytest.mark.parametrize(("smoothing", "target"), [(0.0, "uniform"), (0.1, "non_target")])
def test_the_kernel_gives_the_loss_and_gradient_of_torch_in_float64(
    fused_loss, smoothing, target, dtype, tolerance, vocabulary_size, columns
):
    """The rows of logits have more columns than the vocabulary has tokens; these are padding."""
    torch.manual_seed(1)
    logits = (5 * torch.randn(9, columns)).to(DEVICE, dtype)
    labels = torch.randint(1, vocabulary_size, (9,))
    labels[-2:] = PAD  # Two rows without label.
    labels = labels.to(DEVICE)
    distribution = _target_distribution(vocabulary_size, smoothing, target)
    expected_loss, expected_gradient = plain_loss(
        logits.double(), labels, vocabulary_size, distribution
    )

    loss, gradient = fused_loss(logits.clone(), labels, vocabulary_size, distribution)

    assert loss.item() == pytest.approx(expected_loss.item(), rel=1e-6)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("logit", [float("nan"), float("inf")])
def test_a_logit_that_is_not_finite_makes_the_loss_not_finite(fused_loss, logit):
    """A training ends with an error then; a finite loss would hide that it diverged."""
    logits = torch.tensor([[0.0, logit, 1.0]], device=DEVICE)
    labels = torch.tensor([1], device=DEVICE)
    distribution = TargetDistribution(other_token=0.01, label=0.97, pad=0.01)

    loss, _ = fused_loss(logits, labels, 3, distribution)

    assert not loss.isfinite()
