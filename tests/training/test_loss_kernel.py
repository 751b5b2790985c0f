"""The kernel of the loss; BLEUPRINT_TEST_DEVICE=cpu runs it in Triton's interpreter."""

import os

import pytest
import torch

from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.training.loss import _target_distribution, plain_loss
from requirements import GPU, needs

DEVICE = torch.device(os.environ.get("BLEUPRINT_TEST_DEVICE", "cuda"))
pytestmark = [
    pytest.mark.gpu,
    needs(GPU, DEVICE.type != "cuda" or torch.cuda.is_available()),
]


@pytest.fixture
def fused_loss(monkeypatch):
    if DEVICE.type == "cpu":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton", reason=GPU)
    from bleuprint.training.loss_kernel import fused_loss

    return fused_loss


# fewer, as many and more tokens than a program reads at once
@pytest.mark.parametrize(("size", "columns"), [(13, 16), (4096, 4096), (9001, 9024)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(("smoothing", "target"), [(0.0, "uniform"), (0.1, "non_target")])
def test_loss_and_gradient_are_those_in_float64(
    fused_loss, smoothing, target, dtype, size, columns
):
    torch.manual_seed(1)
    logits = (5 * torch.randn(9, columns)).to(DEVICE, dtype)
    labels = torch.randint(1, size, (9,))
    labels[-2:] = PAD
    given = labels.to(DEVICE), size, _target_distribution(size, smoothing, target)
    expected, gradient = plain_loss(logits.double(), *given)
    found, ours = fused_loss(logits.clone(), *given)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    rounding = 1e-6 if dtype == torch.float32 else 1e-3
    torch.testing.assert_close(ours.double(), gradient, rtol=rounding, atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_logit_that_is_no_number_is_a_loss_that_is_none(fused_loss, bad):
    logits = torch.tensor([[0.0, bad, 1.0]], device=DEVICE)
    loss, _ = fused_loss(logits, torch.tensor([1], device=DEVICE), 3, (0.01, 0.97, 0.01))
    assert not loss.isfinite()
